#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/divide_up.h"
#include "base/mapped_file.h"
#include "base/parse_number.h"
#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "train/token_cache.h"

namespace limpid {
namespace {

constexpr const char* kStateFormat = "limpid training state";

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the SHA-256 of the first numbers of each tensor that does not learn. Training changes
// nearly all numbers of a tensor, so the first 16,384 tell one model from another, and the 1.2
// billion of Llama 3.2 1B need not be read.
std::string frozen_digest(std::span<const Parameter> parameters) {
  constexpr size_t kNumbers = 16384;
  Sha256 digest;
  for (const Parameter& parameter : parameters) {
    if (parameter.learns) continue;
    const std::span<const float> values = parameter.value->f32();
    digest.update(std::as_bytes(std::span(parameter.name)));
    digest.update(std::as_bytes(values.first(std::min(values.size(), kNumbers))));
  }
  return digest.hex();
}

}  // namespace

Trainer::Trainer(const Checkpoint& checkpoint, std::unique_ptr<Executor> executor,
                 const TrainingOptions& options, DocumentView documents, DocumentView held_out)
    : options_(options),
      documents_(std::move(documents)),
      held_out_(std::move(held_out)),
      model_(checkpoint, std::move(executor), options.model),
      sampler_(documents_, options.seq_len, options.seed),
      pool_(options.n_threads),
      optimizer_(options.optimizer, model_.parameters()),
      gradient_sum_(model_.parameters(), options.grad_accum, options.ranks, pool_),
      loss_scale_(options.model.tape.dtype) {
  if (!has_held_out()) return;
  held_out_sampler_.emplace(held_out_, options.seq_len, options.seed);
  for (int64_t i = 0; i < n_held_out_batches(); ++i)
    n_held_out_targets_ += held_out_batch(i).n_targets();
  LIMPID_CHECK(
      ArgumentError, n_held_out_targets_ > 0,
      "no held-out sequence of {} tokens has a token to learn; choose other data to hold out",
      options.seq_len);
}

// Draws a micro-batch again. The sampler stays where it is.
Batch Trainer::batch_at(int64_t position) {
  const int64_t now = sampler_.position();
  sampler_.set_position(position);
  Batch batch = sampler_.next(options_.batch_size);
  sampler_.set_position(now);
  return batch;
}

// Computes the gradients of all micro-batches, on this rank and the others. Returns the sum of the
// losses of each.
std::vector<double> Trainer::losses_of(std::span<const int64_t> positions, float factor) {
  Ranks& ranks = *options_.ranks;
  return ranks.compute(std::ssize(positions), [&](int64_t i) {
    const Batch batch = batch_at(positions[static_cast<size_t>(i)]);
    gradient_sum_.begin_round(i / ranks.size());
    model_.begin_gradients();
    double loss = 0;
    if (batch.n_targets() > 0) {
      loss = sum_of(model_.losses_and_gradients(
          batch, factor, [&](int64_t block) { gradient_sum_.complete(block); }));
    }
    model_.finish_gradients();
    gradient_sum_.finish_round();
    return loss;
  });
}

// The gradients of micro-batches are divided by the number of targets in all of them: the mean over
// the step's targets, whatever their number in each. With 10 and 30 targets each one counts 1/40. A
// mean of the two means would give each of the first ten three times the weight of the others.
//
// So all of them are drawn once for that number and a second time to learn from: a step may have
// more tokens than fit into memory.
StepReport Trainer::measure() {
  std::vector<int64_t> positions;  // of the micro-batches
  int64_t n_targets = 0;
  int64_t n_tokens = n_tokens_;
  const int64_t position = sampler_.position();
  for (int64_t i = 0; i < options_.grad_accum; ++i) {
    positions.push_back(sampler_.position());
    const Batch batch = sampler_.next(options_.batch_size);
    n_targets += batch.n_targets();
    n_tokens += batch.n_tokens();
  }
  next_position_ = sampler_.position();
  sampler_.set_position(position);
  const auto factor = static_cast<float>(loss_scale_.value()) / static_cast<float>(n_targets);
  const std::vector<double> losses = losses_of(positions, factor);
  const double loss = sum_of(losses);
  StepReport report{n_updates(), loss / static_cast<double>(n_targets),
                    options_.schedule.at(n_updates()),
                    optimizer_.gradient_norm(pool_) / loss_scale_.value(), n_tokens};
  report.loss_scale = loss_scale_.value();
  report.skipped = !std::isfinite(report.grad_norm) && loss_scale_.can_fall();
  if (!std::isfinite(report.loss) || (!std::isfinite(report.grad_norm) && !report.skipped)) {
    // The micro-batch to search is the first whose loss is not finite. If all losses are finite, it
    // is the first one.
    const auto is_bad = [](double value) { return !std::isfinite(value); };
    const auto bad = std::ranges::find_if(losses, is_bad);
    const auto i = bad == losses.end() ? 0 : bad - losses.begin();
    fail_diverged(batch_at(positions[static_cast<size_t>(i)]), report.loss, report.grad_norm);
  }
  return report;
}

void Trainer::update(const StepReport& measured) {
  sampler_.set_position(next_position_);
  n_tokens_ = measured.n_tokens;
  if (measured.skipped) {
    optimizer_.skip_step();
    loss_scale_.skipped();
    return;
  }
  optimizer_.step(measured.lr, measured.grad_norm, pool_, 1 / loss_scale_.value());
  loss_scale_.updated();
  model_.refresh();
}

void Trainer::fail_diverged(const Batch& batch, double loss, double norm) {
  const std::string place = model_.find_non_finite(batch);
  const std::string where = place.empty() ? "" : fmt::format(", first in {}", place);
  if (n_updates() == 0) {
    throw DivergedError(
        fmt::format("the loss is {} and the norm of the gradient {}{}, before any update: the "
                    "weights that training began with are damaged",
                    std::abs(loss), std::abs(norm), where));
  }
  throw DivergedError(fmt::format(
      "training diverged at step {}: the loss is {}, the norm of the gradient {}{}; lower the "
      "learning rate or make the warm-up longer",
      n_updates(), std::abs(loss), std::abs(norm), where));  // the sign of a NaN means nothing
}

// ---- held-out loss ------------------------------------------------------------------------------

int64_t Trainer::n_held_out_windows() const {
  const int64_t n = held_out_sampler_->windows_per_epoch();
  return options_.eval_windows > 0 ? std::min(options_.eval_windows, n) : n;
}

int64_t Trainer::n_held_out_batches() const {
  return divide_up(n_held_out_windows(), options_.batch_size);
}

// The windows are spread over all of the held-out data.
Batch Trainer::held_out_batch(int64_t i) const {
  const int64_t n_all = held_out_sampler_->windows_per_epoch();
  const int64_t n = n_held_out_windows();
  Batch batch;
  for (int64_t w = i * options_.batch_size; w < std::min(n, (i + 1) * options_.batch_size); ++w)
    held_out_sampler_->append_window(w * n_all / n, batch);
  return batch;
}

double Trainer::held_out_loss() {
  const auto losses = options_.ranks->compute(n_held_out_batches(), [&](int64_t i) {
    const Batch batch = held_out_batch(i);
    return batch.n_targets() == 0 ? 0.0 : sum_of(model_.losses(batch));
  });
  return sum_of(losses) / static_cast<double>(n_held_out_targets_);
}

// ---- state --------------------------------------------------------------------------------------

const std::vector<Trainer::Digest>& Trainer::digests() {
  const auto digest = [&](const DocumentView& documents) {
    return token_digest(documents.begins, documents.ids, documents.learned, pool_);
  };
  if (digests_.empty()) {
    digests_ = {
        {"data", digest(documents_),
         "is of other data: the texts, or how they are tokenized, have changed"},
        {"held_out", digest(held_out_),
         "is of other held-out data (RunSettings::val): the text, or how it is tokenized, has "
         "changed"},
        // In a run with LoRA, the tensors of its base.
        {"frozen", frozen_digest(model_.parameters()),
         "is of another model: the tensors that do not learn have changed"}};
  }
  return digests_;
}

// The scale of the loss is a power of two, so its exponent says it exactly.
void Trainer::save_state(const std::string& path) {
  std::vector<NamedTensor> tensors;
  for (const StateTensor& state : optimizer_.state())
    tensors.push_back({state.name, *state.tensor});
  std::map<std::string, std::string> metadata = {
      {"format", kStateFormat},
      {"updates", std::to_string(n_updates())},
      {"skipped", std::to_string(optimizer_.n_skipped())},
      {"position", std::to_string(sampler_.position())},
      {"tokens", std::to_string(n_tokens_)},
      {"loss_scale_exponent", std::to_string(std::ilogb(loss_scale_.value()))},
      {"loss_scale_steps", std::to_string(loss_scale_.n_good_steps())}};
  for (const Digest& of : digests()) metadata[of.key] = of.digest;
  write_safetensors(path, metadata, tensors);
}

void Trainer::load_state(const std::string& path) {
  const auto file = MappedFile::open(path);
  const SafetensorsFile saved = parse_safetensors(path, file->bytes());
  const auto number = [&](const char* name, int64_t least, int64_t most) {
    const auto found = saved.metadata.find(name);
    const auto value = parse_number<int64_t>(found == saved.metadata.end() ? "" : found->second);
    if (!value || *value < least || *value > most)
      throw_format_error(path, name,
                         "is missing or out of range; the file is not a training state");
    return *value;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;  // steps will add to it
  const auto count = [&](const char* name) { return number(name, 0, kMost); };
  for (const StateTensor& state : optimizer_.state()) {
    const auto found = std::ranges::find(saved.tensors, state.name, &SafetensorsTensor::name);
    if (found == saved.tensors.end())
      throw_format_error(path, state.name, "is missing; the state is of another run");
    const TensorView wanted = *state.tensor;
    if (found->view.dtype != wanted.dtype || found->view.shape != wanted.shape) {
      throw_format_error(path, state.name, "is {}, expected {}; the state is of another model",
                         found->view.to_string(), wanted.to_string());
    }
    std::copy_n(found->view.data, wanted.n_bytes(), state.tensor->data());
  }
  const int64_t n_updates = count("updates");
  optimizer_.set_n_steps(n_updates, number("skipped", 0, n_updates));
  if (loss_scale_.is_dynamic())
    loss_scale_.set(std::ldexp(1.0, static_cast<int>(number("loss_scale_exponent", -16, 40))),
                    count("loss_scale_steps"));
  for (const Digest& of : digests()) {
    const auto found = saved.metadata.find(of.key);  // absent from states of earlier versions
    LIMPID_CHECK(ArgumentError, found == saved.metadata.end() || found->second == of.digest,
                 "{} {}", path, of.problem);
  }
  sampler_.set_position(count("position"));
  n_tokens_ = count("tokens");
}

}  // namespace limpid
