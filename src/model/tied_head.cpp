#include "model/tied_head.h"

namespace limpid {

void tie_shared_head(Checkpoint& checkpoint) {
  constexpr const char* kHead = "output.weight";
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  const TensorView* head = checkpoint.find(kHead);
  const bool same = embedding != nullptr && head != nullptr && head->data != nullptr &&
                    head->data == embedding->data && head->dtype == embedding->dtype &&
                    head->shape == embedding->shape;
  if (!same) return;
  checkpoint.tensors.erase(kHead);
  std::erase(checkpoint.tensor_order, kHead);
  checkpoint.left.emplace_back("output.weight (the same bytes as token_embd.weight)");
}

}  // namespace limpid
