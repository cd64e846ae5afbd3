#include "train/parameters.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {

std::shared_ptr<Checkpoint> copy_to_f32(const Checkpoint& checkpoint) {
  auto copy = std::make_shared<Checkpoint>(checkpoint);
  const DecoderSpec spec = read_spec(checkpoint);
  std::set<std::string, std::less<>> interleaved;  // tensors whose rows are interleaved pairs
  for (const TensorEntry& entry : tensor_table(checkpoint, spec).entries) {
    if (entry.row_order == RowOrder::kInterleavedPairs) interleaved.insert(entry.name);
  }
  copy->row_order = RowOrder::kHalfSplit;
  copy->derived.clear();
  copy->owned.clear();
  for (const auto& [name, view] : checkpoint.tensors) {
    Tensor storage;
    const TensorView source = checkpoint.read(name, storage);
    Tensor value(DType::kF32, source.shape);
    const std::vector<float> stored = decode(source);
    leave_file(checkpoint, {source.data, source.n_bytes()});
    const int64_t width = source.shape.rank() == 1 ? 1 : source.shape.cols();
    for (int64_t r = 0; r < std::ssize(stored) / width; ++r) {
      const int64_t to =
          interleaved.contains(name) ? half_split_row(r, spec.head_dim, spec.rope.n_rot) : r;
      std::copy_n(stored.data() + r * width, width, value.f32().data() + to * width);
    }
    copy->add(name, std::move(value));
  }
  return copy;
}

std::vector<Parameter> make_parameters(const Checkpoint& checkpoint) {
  std::vector<Parameter> parameters;
  for (const auto& [name, view] : checkpoint.tensors) {
    const auto owner = std::ranges::find_if(
        checkpoint.owned,
        [data = view.data](const auto& tensor) { return tensor->data() == data; });
    LIMPID_CHECK(ArgumentError, owner != checkpoint.owned.end(), "{}: {} is not in memory",
                 checkpoint.path, name);
    parameters.push_back({name, *owner, {}});
  }
  return parameters;
}

}  // namespace limpid
