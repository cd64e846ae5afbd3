#include "layouts/tied_head.h"

#include <cstring>
#include <string_view>

#include "base/check.h"

namespace limpid {
namespace {

constexpr const char* kHead = "output.weight";
constexpr const char* kTheirHead = "lm_head.weight";  // Hugging Face's name, for messages

// Removes the output matrix from the tensors and records why it is unused.
void leave_head(Checkpoint& checkpoint, std::string_view name, std::string_view why) {
  checkpoint.erase(kHead);
  checkpoint.unused_tensors.push_back(fmt::format("{} ({})", name, why));
}

// Whether both matrices have the same bytes. To know it, both are read, up to the first difference.
bool equals_embedding(const Checkpoint& checkpoint) {
  if (checkpoint.find("token_embd.weight") == nullptr) return false;
  Tensor storage[2];
  const TensorView embedding = checkpoint.read("token_embd.weight", storage[0]);
  const TensorView head = checkpoint.read(kHead, storage[1]);
  return embedding.dtype == head.dtype && embedding.shape == head.shape &&
         std::memcmp(embedding.data, head.data, head.n_bytes()) == 0;
}

}  // namespace

void tie_shared_head(Checkpoint& checkpoint) {
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  const TensorView* head = checkpoint.find(kHead);
  const bool same = embedding != nullptr && head != nullptr && head->data != nullptr &&
                    head->data == embedding->data && head->dtype == embedding->dtype &&
                    head->shape == embedding->shape;
  if (same) leave_head(checkpoint, kHead, "the same bytes as token_embd.weight");
}

void resolve_output_weight(Checkpoint& checkpoint, std::optional<bool> tied) {
  if (!tied) return tie_shared_head(checkpoint);
  const bool there = checkpoint.find(kHead) != nullptr;
  if (!*tied && !there) {
    throw_format_error(checkpoint.path, kTheirHead,
                       "is missing, and tie_word_embeddings is not true");
  }
  if (*tied && there && equals_embedding(checkpoint))
    leave_head(checkpoint, kTheirHead, "the embeddings are tied");
}

}  // namespace limpid
