#include "train/parameters.h"

#include "base/check.h"
#include "tensor/codec.h"

namespace limpid {

std::shared_ptr<Checkpoint> copy_to_f32(const Checkpoint& checkpoint) {
  auto copy = std::make_shared<Checkpoint>(checkpoint);
  copy->derived.clear();
  copy->owned.clear();
  for (const std::string& name : checkpoint.tensor_order) {
    Tensor storage;
    const TensorView source = checkpoint.read(name, storage);
    auto value = std::make_shared<Tensor>(DType::kF32, source.shape);
    for (int64_t r = 0; r < source.shape.rows(); ++r) {
      decode_row(source.dtype, source.row(r),
                 value->f32().subspan(r * source.shape.cols(), source.shape.cols()));
    }
    copy->tensors[name] = value->view();
    copy->owned.push_back(std::move(value));
  }
  return copy;
}

std::vector<Parameter> make_parameters(const Checkpoint& checkpoint) {
  LIMPID_CHECK(ArgumentError, checkpoint.owned.size() == checkpoint.tensor_order.size(),
               "{}: not a copy in memory", checkpoint.path);
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < checkpoint.owned.size(); ++i)
    parameters.push_back({checkpoint.tensor_order[i], checkpoint.owned[i], {}, true});
  return parameters;
}

}  // namespace limpid
