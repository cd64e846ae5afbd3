#include "quantize/input_means.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "executor/executors.h"
#include "model/decoder_from_checkpoint.h"
#include "model/model.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {
namespace {

// A sample of typical uses: prose, a story, facts, a dialogue, code, numbers, other languages.
constexpr std::string_view kText =
    "The river rises in the hills to the north of the town and runs for some forty miles "
    "before it meets the sea. In the nineteenth century its banks were lined with mills, and "
    "the water that turned their wheels was led through narrow channels cut into the rock. "
    "Most of them are gone. What is left is a museum, two bridges of stone, and a path on "
    "which people walk on Sundays.\n"
    "\n"
    "\"I do not know,\" she said, \"but I would like to find out.\" He laughed, opened the "
    "door and let the cold air in. On 12 March 1947 the committee met again; it voted 7 to 2 "
    "for the new law, which was published in the same year by the University Press in London.\n"
    "\n"
    "Question: How many days are there in a leap year?\n"
    "Answer: A leap year has 366 days, one more than a common year, because the Earth takes "
    "about 365.2422 days to travel around the Sun.\n"
    "\n"
    "def mean(values):\n"
    "    total = 0.0\n"
    "    for value in values:\n"
    "        total += value\n"
    "    return total / len(values)\n"
    "\n"
    "To make bread, mix 500 g of flour with water, salt and yeast, wait for an hour, and bake "
    "it at 220 degrees. La lune se lève sur la mer. Der Zug hat heute zehn Minuten Verspätung. "
    "今天天气很好，我们去公园散步。\n";

constexpr size_t kTokensAtATime = 128;  // between two calls of `progress`
constexpr size_t kFewestTokens = 16;    // for a useful mean

std::vector<int32_t> tokens_for(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  LIMPID_CHECK(UnsupportedError, has_tokenizer(checkpoint), "the model has no tokenizer");
  const std::vector<TokenId> ids = tokenizer_from(checkpoint)->encode(kText);
  std::vector<int32_t> tokens(ids.begin(), ids.end());
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(spec.n_ctx_train)));
  LIMPID_CHECK(UnsupportedError, tokens.size() >= kFewestTokens,
               "the model has room for only {} tokens", tokens.size());
  for (const int32_t id : tokens) {
    LIMPID_CHECK(UnsupportedError, id >= 0 && id < spec.vocab_size,
                 "the tokenizer produces token {}, but the model has {} tokens", id,
                 spec.vocab_size);
  }
  return tokens;
}

// Computes the mean of each column, and the variance averaged over the columns: the mean of x^2
// less the square of the mean.
InputMean mean_of(const InputRecorder::Sums& sums) {
  const auto n = static_cast<double>(sums.n_rows);
  const auto n_cols = static_cast<double>(sums.values.size());
  InputMean result;
  double squares_of_means = 0;
  for (const double sum : sums.values) {
    result.mean.push_back(static_cast<float>(sum / n));
    squares_of_means += sum / n * (sum / n);
  }
  // A lower bound for the variance. Without it, an input that is almost constant would make every
  // error except the one along the mean free of cost.
  constexpr double kLeastShare = 0.01;
  const double squares = sums.squares / n;
  const double variance = std::max(squares - squares_of_means, kLeastShare * squares) / n_cols;
  result.variance = static_cast<float>(variance);
  return result;
}

std::map<std::string, InputMean, std::less<>> run_over_text(
    const Checkpoint& checkpoint, int n_threads,
    const std::function<bool(uint64_t, uint64_t)>& progress) {
  auto executor = std::make_unique<InputRecorder>(make_cpu_executor({.n_threads = n_threads}));
  InputRecorder& recorder = *executor;
  const DecoderSpec spec = read_spec(checkpoint);
  const std::vector<int32_t> tokens = tokens_for(checkpoint, spec);
  LoadOptions load;
  load.n_ctx = static_cast<int64_t>(tokens.size());
  const auto model =
      Model::load(std::make_shared<const Checkpoint>(checkpoint), std::move(executor), load);
  const auto cache = model->make_cache(load.n_ctx, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  for (size_t begin = 0; begin < tokens.size(); begin += kTokensAtATime) {
    LIMPID_CHECK(ResourceError, !progress || progress(begin, tokens.size()),
                 "{}: measuring was cancelled", checkpoint.path);
    const auto part =
        std::span(tokens).subspan(begin, std::min(kTokensAtATime, tokens.size() - begin));
    const StepItem item{sequence, part, StepItem::Outputs::kAll};
    model->step(*cache, {&item, 1});
  }
  std::map<std::string, InputMean, std::less<>> means;
  for (const auto& [name, sums] : recorder.sums()) {
    if (std::isfinite(sums.squares)) means[name] = mean_of(sums);
  }
  return means;
}

}  // namespace

std::string_view calibration_text() { return kText; }

InputMeans measure_inputs(const Checkpoint& checkpoint, int n_threads,
                          const std::function<bool(uint64_t, uint64_t)>& progress) {
  InputMeans result;
  try {
    result.of = run_over_text(checkpoint, n_threads, progress);
  } catch (const UnsupportedError& error) {
    result.not_measured =
        fmt::format("quantised without knowing the activations ({})", error.what());
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.data != nullptr) leave_file(checkpoint, {tensor.data, tensor.n_bytes()});
  }
  return result;
}

// The sums are in f64, and their order is fixed: row by row, column by column.
void InputRecorder::linear(const Activation& x, std::span<Projection> projections) {
  const auto n_cols = static_cast<size_t>(x.cols());
  std::vector<float> values(static_cast<size_t>(x.rows()) * n_cols);
  inner().read(x, values);
  const size_t first = inputs().positions.front() == 0 ? n_cols : 0;
  // GPT-2's Q, K and V are rows of the same tensor and have the same input.
  std::set<std::string> names;
  for (const Projection& projection : projections) names.insert(source(projection.weight).name);
  for (const std::string& name : names) {
    Sums& sums = sums_[name];
    sums.values.resize(n_cols);
    for (size_t row = first; row < values.size(); row += n_cols) {
      for (size_t i = 0; i < n_cols; ++i) {
        const double value = values[row + i];
        sums.values[i] += value;
        sums.squares += value * value;
      }
      ++sums.n_rows;
    }
  }
  inner().linear(x, projections);
}

}  // namespace limpid
