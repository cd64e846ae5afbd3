#include "model/merge_adapters.h"

#include <cmath>
#include <memory>
#include <vector>

#include "base/check.h"
#include "layouts/lora_adapter.h"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// The merged matrix in a plain type. Where a sum is too large for f16, it would become infinite.
Tensor in_type(const Checkpoint& source, const std::string& name, DType dtype, const Shape& shape,
               const std::vector<float>& values) {
  if (dtype == DType::kF32) return Tensor::of(shape, values);
  Tensor result(dtype, shape);
  encode_row(dtype, values, result.data());
  const std::vector<float> stored = decode(result.view());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(stored[i]) || !std::isfinite(values[i])) continue;
    throw_format_error(source.path, name,
                       "is {} with its adapters at element {}, which {} cannot represent; choose "
                       "bf16 or f32 for the result",
                       values[i], i, dtype_info(dtype).name);
  }
  return result;
}

// W + scale B A. `head_dim` > 0: the rows of W are interleaved pairs, those of B half-split over
// the whole head (tensor_table has refused adapters of heads that rotate only in part). The
// products are summed in f64, and rounded to f32 and then to `dtype`.
Tensor merged_matrix(const Checkpoint& source, const std::string& name, int64_t head_dim,
                     DType dtype) {
  Tensor storage;
  const TensorView base = source.read(name, storage);
  const std::vector<float> w = decode(base);
  std::vector<double> sums(w.begin(), w.end());
  const int64_t cols = base.shape.cols();
  for (int64_t i = 0; i < n_lora_adapters(source); ++i) {
    const LoraNames names = lora_names(name, i);
    if (source.find(names.a) == nullptr) continue;
    Tensor storage_a;
    Tensor storage_b;
    const std::vector<float> a = decode(source.read(names.a, storage_a));
    const std::vector<float> b = decode(source.read(names.b, storage_b));
    const double scale = source.metadata.number(lora_scale_key(i)).value_or(1.0);
    const int64_t rank = std::ssize(a) / cols;
    for (int64_t row = 0; row < base.shape.rows(); ++row) {
      const int64_t b_row = head_dim > 0 ? half_split_row(row, head_dim, head_dim) : row;
      for (int64_t r = 0; r < rank; ++r) {
        const double factor = scale * b[b_row * rank + r];
        for (int64_t col = 0; col < cols; ++col)
          sums[row * cols + col] += factor * a[r * cols + col];
      }
    }
  }
  const std::vector<float> rounded(sums.begin(), sums.end());
  for (size_t i = 0; i < w.size(); ++i) {
    if (std::isfinite(rounded[i]) || !std::isfinite(w[i])) continue;
    throw_format_error(source.path, name,
                       "is {} with its adapters at element {}: an adapter contains a NaN or an "
                       "infinity, or its scale is too large",
                       rounded[i], i);
  }
  return in_type(source, name, dtype, base.shape, rounded);
}

// The file type of GGUF is that of most weights. It is that of f32 where merging made most of them
// f32.
void correct_file_type(Checkpoint& merged) {
  constexpr const char* kKey = "general.file_type";
  constexpr int64_t kAllF32 = 0;
  int64_t n_f32 = 0;
  int64_t n_others = 0;
  for (const auto& [name, tensor] : merged.tensors)
    (tensor.dtype == DType::kF32 ? n_f32 : n_others) += tensor.shape.n_elements();
  if (merged.metadata.contains(kKey) && n_f32 > n_others)
    merged.metadata.set(kKey, {kAllF32, "u32"});
}

}  // namespace

Checkpoint merge_adapters(const Checkpoint& canonical, MergedType type) {
  const auto source = std::make_shared<const Checkpoint>(canonical);
  const DecoderSpec spec = read_spec(canonical);
  Checkpoint merged = canonical;
  merged.metadata.erase_below("lora.");
  std::erase_if(merged.tensors, [](const auto& entry) { return is_lora_tensor(entry.first); });
  std::erase_if(merged.tensor_order, is_lora_tensor);
  for (const TensorEntry& entry : tensor_table(canonical, spec).entries) {
    const std::string& name = entry.name;
    bool adapted = false;
    for (int64_t i = 0; i < n_lora_adapters(canonical); ++i)
      adapted = adapted || canonical.find(lora_names(name, i).a) != nullptr;
    if (!adapted) continue;
    const int64_t head_dim = entry.row_order == RowOrder::kInterleavedPairs ? spec.head_dim : 0;
    const DType base = canonical.find(name)->dtype;
    const bool is_half = base == DType::kF16 || base == DType::kBF16;
    const DType dtype = type == MergedType::kOfBase && is_half ? base : DType::kF32;
    merged.add_derived(name, dtype, entry.shape,
                       {"merged with an adapter", [source, name, head_dim, dtype] {
                          return merged_matrix(*source, name, head_dim, dtype);
                        }});
  }
  correct_file_type(merged);
  return merged;
}

}  // namespace limpid
