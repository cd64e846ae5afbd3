#include "train/parameters.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/codec.h"

namespace limpid {

std::shared_ptr<Checkpoint> copy_to_f32(const Checkpoint& checkpoint) {
  auto copy = std::make_shared<Checkpoint>(checkpoint);
  copy->derived.clear();
  copy->owned.clear();
  for (auto& [name, view] : copy->tensors) {
    Tensor storage;
    const TensorView source = checkpoint.read(name, storage);
    auto value = std::make_shared<Tensor>(DType::kF32, source.shape);
    for (int64_t r = 0; r < source.shape.rows(); ++r) {
      decode_row(source.dtype, source.row(r),
                 value->f32().subspan(r * source.shape.cols(), source.shape.cols()));
    }
    view = value->view();
    copy->owned.push_back(std::move(value));
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
    parameters.push_back({name, *owner, {}, true});
  }
  return parameters;
}

}  // namespace limpid
