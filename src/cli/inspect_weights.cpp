// `limpid inspect --weights`: the distribution and the largest singular values of each tensor, and
// how far another checkpoint is from it.
//
//   tensor              type  shape         rms  largest  -4 … 4 rms    largest values  rank
//   blk.0.attn_q.weight  f32  [576, 576]  0.071     1.13  ▁▁▂▃▅▇█▇▅▃▂▁  12.3 8.1 6.0      41
//
// What they tell: matrices that were trained have a bell with longer tails than a normal
// distribution, and a few singular values far above the others. The stable rank, the sum of the
// squares of the singular values over the largest square, counts the directions that matter: 1 for
// an outer product, about a quarter of the width for a square matrix of random numbers. A layer
// that is unlike its neighbours may be damaged, or was never trained.
#include <algorithm>
#include <cmath>
#include <set>

#include "cli/inspect.h"
#include "cli/json_format.h"
#include "insight/weight_statistics.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid::cli {
namespace {

// A character for each two bins. Heights are square roots, so that tails show.
std::string bars(const Json& histogram) {
  constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> heights;
  for (size_t i = 0; i + 1 < histogram.size(); i += 2)
    heights.push_back(std::sqrt(histogram[i].get<double>() + histogram[i + 1].get<double>()));
  const double most = std::max(1.0, *std::ranges::max_element(heights));
  std::string text;
  for (const double height : heights) text += kBars[std::lround(std::ceil(8 * height / most))];
  return text;
}

Json to_json(const std::string& name, const TensorView& view, const WeightStatistics& statistics) {
  return {{"name", name},
          {"type", dtype_info(view.dtype).name},
          {"shape", view.shape.dims()},
          {"mean", statistics.mean},
          {"rms", statistics.root_mean_square},
          {"largest", statistics.largest},
          {"histogram", statistics.histogram},
          {"singular_values", statistics.singular_values},
          {"stable_rank", statistics.stable_rank}};
}

// The tensors of a checkpoint whose rows are interleaved pairs (tensor/row_order.h).
struct PairedTensors {
  std::set<std::string, std::less<>> names;
  int64_t head_dim = 0;
  int64_t n_rot = 0;
};

// A checkpoint that Limpid cannot run does not tell the order of its rows: they stay as they are.
PairedTensors paired_tensors(const Checkpoint& checkpoint) {
  try {
    const DecoderSpec spec = read_spec(checkpoint);
    PairedTensors paired{{}, spec.head_dim, spec.rope.n_rot};
    for (const WeightSource& weight : weight_sources(checkpoint, spec))
      if (weight.row_order == RowOrder::kInterleavedPairs) paired.names.insert(weight.name);
    return paired;
  } catch (const Error&) {
    return {};
  }
}

// The values with the rows of Q and K in half-split order, whichever order the layout has.
std::vector<float> decode_half_split(const std::string& name, const TensorView& view,
                                     const PairedTensors& paired) {
  std::vector<float> stored = decode(view);
  if (!paired.names.contains(name)) return stored;
  std::vector<float> values(stored.size());
  const int64_t width = view.shape.rank() == 1 ? 1 : view.shape.cols();
  for (int64_t row = 0; row < std::ssize(stored) / width; ++row) {
    const int64_t to = half_split_row(row, paired.head_dim, paired.n_rot);
    std::copy_n(stored.data() + row * width, width, values.data() + to * width);
  }
  return values;
}

// How far the tensor of the other checkpoint is, or why that cannot be said.
std::string difference_text(const Json& tensor) {
  if (tensor["difference"].is_number()) return fmt::format("{:>10.3g}", tensor["difference"]);
  if (tensor["other_shape"].is_null()) return "not there";
  return fmt::format("of another shape, {}", tensor["other_shape"]);
}

}  // namespace

Json inspect_weights(const Checkpoint& checkpoint, const Checkpoint* other, int n_singular,
                     int n_threads) {
  ThreadPool pool(n_threads);
  ProgressBar bar("inspecting");
  const PairedTensors paired = paired_tensors(checkpoint);
  const PairedTensors other_paired = other == nullptr ? PairedTensors() : paired_tensors(*other);
  Json tensors = Json::array();
  const auto names = tensors_by_layer(checkpoint);
  for (const auto& [layer, name] : names) {
    Tensor storage;
    const TensorView view = checkpoint.read(name, storage);
    if (!is_float(view.dtype) && !is_quantized(view.dtype)) {
      print_log(fmt::format("{} is {}: left out", name, view.to_string()));
      continue;
    }
    const std::vector<float> values = decode_half_split(name, view, paired);
    const auto statistics = [&](const std::vector<float>& of) {
      return weight_statistics(of, view.shape.rows(), view.shape.cols(), n_singular, pool);
    };
    tensors.push_back(to_json(name, view, statistics(values)));
    if (other != nullptr) {
      const TensorView* second = other->find(name);
      Json& tensor = tensors.back();
      tensor["difference"] = nullptr;
      tensor["other_shape"] = second == nullptr ? Json() : Json(second->shape.dims());
      Tensor second_storage;
      if (second != nullptr && second->shape == view.shape) {
        const TensorView second_view = other->read(name, second_storage);
        const std::vector<float> second_values = decode_half_split(name, second_view, other_paired);
        tensor["difference"] = relative_difference(values, second_values);
        tensor["other"] = to_json(name, second_view, statistics(second_values));
      }
    }
    bar.show(tensors.size(), names.size(), name);
  }
  return {{"path", checkpoint.path},
          {"beside", other == nullptr ? Json() : Json(other->path)},
          {"tensors", std::move(tensors)}};
}

std::string weights_text(const Json& report) {
  const bool compares = !report["beside"].is_null();
  size_t width = 6;
  for (const Json& each : report["tensors"])
    width = std::max(width, each["name"].get_ref<const std::string&>().size());
  std::string text = fmt::format("{:<{}}  {:>6} {:>15} {:>9} {:>9}  {:<12}  {:<24} {:>8}{}\n",
                                 "tensor", width, "type", "shape", "rms", "largest", "-4 … 4 rms",
                                 "largest singular values", "rank", compares ? "  difference" : "");
  for (const Json& each : report["tensors"]) {
    std::string values;
    for (const Json& value : each["singular_values"]) values += fmt::format("{:.3g} ", value);
    text += fmt::format("{:<{}}  {:>6} {:>15} {:>9.3g} {:>9.3g}  {}  {:<24} {:>8}",
                        each["name"].get<std::string>(), width, each["type"], each["shape"],
                        each["rms"], each["largest"], bars(each["histogram"]), values,
                        values.empty() ? "" : fmt::format("{:.1f}", each["stable_rank"]));
    if (compares) text += "  " + difference_text(each);
    text += '\n';
  }
  return text;
}

}  // namespace limpid::cli
