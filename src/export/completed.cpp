#include "export/completed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>

#include "base/check.h"
#include "layouts/model_classes.h"
#include "layouts/rope_scaling.h"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr const char* kRopeFactors = "rope_freqs.weight";

Tensor zeros(const Shape& shape) { return {DType::kF32, shape}; }

// Makes a scaling that the user gave permanent: removes the mark and the table that it replaced.
void settle_rope(Checkpoint& checkpoint) {
  const std::string mark =
      fmt::format("{}.rope.scaling.overridden", model_class_of(checkpoint).architecture);
  if (!checkpoint.metadata.boolean(mark).value_or(false)) return;
  checkpoint.metadata.erase_below(mark);
  checkpoint.erase(kRopeFactors);
}

// Replaces Q, K and V by one matrix, attn_qkv: the rows of Q, then those of K, then those of V.
void join_rows(const std::shared_ptr<const Checkpoint>& source, const std::string& at,
               const std::string& part, Checkpoint& result) {
  const std::array<std::string, 3> names = {at + "attn_q" + part, at + "attn_k" + part,
                                            at + "attn_v" + part};
  const TensorView* first = source->find(names[0]);
  if (first == nullptr) return;
  for (const std::string& name : names) {
    const TensorView* tensor = source->find(name);
    if (tensor == nullptr || tensor->shape != first->shape || tensor->dtype != first->dtype) {
      throw_format_error(source->path, name, "is {}, but {} is {}",
                         tensor == nullptr ? "missing" : tensor->to_string(), names[0],
                         first->to_string());
    }
  }
  const bool is_vector = first->shape.rank() == 1;
  const Shape shape =
      is_vector ? Shape{3 * first->shape[0]} : Shape{3 * first->shape[0], first->shape[1]};
  const std::string joined = at + "attn_qkv" + part;
  const DType dtype = first->dtype;
  result.tensors[joined] = {dtype, shape, nullptr};
  result.derived[joined] = {"rows of Q, K and V joined", [source, names, shape, dtype] {
                              Tensor whole(dtype, shape);
                              std::byte* to = whole.data();
                              for (const std::string& name : names) {
                                Tensor storage;
                                const TensorView part = source->read(name, storage);
                                std::memcpy(to, part.data, part.n_bytes());
                                to += part.n_bytes();
                              }
                              return whole;
                            }};
  *std::ranges::find(result.tensor_order, names[0]) = joined;
  for (const std::string& name : names) result.erase(name);
}

// Gives a GPT-2 the fused attn_qkv and all biases. Zeros as biases do not change the result. With
// RMSNorm (microgpt), a GPT-2 has neither of them, and without a norm after the last block, no
// output_norm.bias says that there are biases; no other program supports these models anyway.
void complete_gpt2(Checkpoint& checkpoint) {
  const DecoderSpec spec = read_spec(checkpoint);
  if (spec.norm != NormKind::kLayer || spec.outer_norm != OuterNorm::kOutput) return;
  const auto source = std::make_shared<const Checkpoint>(checkpoint);
  for (int64_t i = 0; i < spec.n_layers; ++i) {
    for (const char* part : {".weight", ".bias"})
      join_rows(source, fmt::format("blk.{}.", i), part, checkpoint);
  }
  if (checkpoint.find("output_norm.bias") != nullptr) return;
  checkpoint.add("output_norm.bias", zeros(Shape{spec.d_model}));
  // From here on, tensor_table requires all biases.
  for (const TensorEntry& entry : tensor_table(checkpoint, spec).entries) {
    if (entry.name.ends_with(".bias") && checkpoint.find(entry.name) == nullptr)
      checkpoint.add(entry.name, zeros(entry.shape));
  }
}

}  // namespace

Checkpoint completed(Checkpoint canonical) {
  settle_rope(canonical);
  if (model_class_of(canonical).family == Family::kGpt2) complete_gpt2(canonical);
  return canonical;
}

Checkpoint with_named_scaling(Checkpoint canonical) {
  if (canonical.find(kRopeFactors) == nullptr) return canonical;
  const DecoderSpec spec = read_spec(canonical);
  Tensor storage;
  const auto scaling = find_rope_scaling(decode(canonical.read(kRopeFactors, storage)),
                                         rope_frequencies(spec.rope.base, spec.rope.n_rot));
  if (!scaling || canonical.metadata.contains(spec.architecture + ".rope.scaling.type"))
    return canonical;
  canonical.erase(kRopeFactors);
  set_rope_scaling_keys(canonical.metadata, spec.architecture, *scaling);
  return canonical;
}

// Example: a LlamaForCausalLM with `attention_bias` has biases for Q, K, V and the output. A model
// with only the first three gets zeros for the fourth.
Checkpoint completed_for_class(Checkpoint canonical, const ModelClass& model_class) {
  if (model_class.family == Family::kGpt2) return canonical;  // nothing is missing
  const TensorTable table = tensor_table(canonical, read_spec(canonical));
  std::set<std::string_view> keys;  // of config.json that must be true
  for (const std::string& name : canonical.tensor_order) {
    const auto part = optional_part(name);
    if (!part) continue;
    const Presence presence = presence_of(*part, model_class);
    LIMPID_CHECK(UnsupportedError, presence.when != Presence::When::kNever,
                 "{}: {} has no place for {}, which the model has", canonical.path,
                 model_class.class_name, name);
    keys.insert(presence.key);
  }
  for (const TensorEntry& entry : table.entries) {
    const auto part = optional_part(entry.name);
    if (!part || canonical.find(entry.name) != nullptr) continue;
    const Presence presence = presence_of(*part, model_class);
    const bool needed =
        presence.when == Presence::When::kAlways ||
        (presence.when == Presence::When::kIfConfigured && keys.contains(presence.key));
    if (!needed) continue;
    LIMPID_CHECK(UnsupportedError, entry.name.ends_with(".bias"),
                 "{}: {} needs {}, which is missing", canonical.path, model_class.class_name,
                 entry.name);
    canonical.add(entry.name, zeros(entry.shape));
  }
  return canonical;
}

}  // namespace limpid
