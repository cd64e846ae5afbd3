#include <array>

#include "cli/inspect.h"
#include "cli/json_format.h"
#include "model/decoder_from_checkpoint.h"
#include "quantize/file_type.h"
#include "quantize/quantized_cache.h"

namespace limpid::cli {
namespace {

// A file of the kind `dtype`. Quantised files are the mixtures of `limpid quantize`.
uint64_t bytes_as(DType dtype, const Checkpoint& checkpoint) {
  uint64_t n_bytes = 0;
  if (is_quantized(dtype)) {
    const FileType& type = file_type_from_name(dtype_info(dtype).name);
    for (const auto& [name, tensor] : quantized_shapes(checkpoint, type).tensors)
      n_bytes += tensor.n_bytes();
  } else {
    for (const auto& [name, tensor] : checkpoint.tensors)
      n_bytes += tensor_bytes(dtype, tensor.shape);
  }
  return n_bytes;
}

// The part of the model to which a tensor belongs, by its name in GGUF.
const char* part_of(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (has("_embd.")) return "embedding";
  if (name.starts_with("output.")) return "output";
  if (has("_norm.")) return "norms";
  return has(".attn_") ? "attention" : "feed_forward";
}

}  // namespace

// Training keeps weights, gradients of the same type, and the two moments of Adam in f32: 8 bytes a
// parameter. "…_full" is what the model would have with as many key-value heads as heads: K and V
// would grow by n_heads / n_kv_heads. Llama 3 8B, with 32 heads and 8 key-value heads of 128 in 32
// layers, keeps 2 * 8 * 128 * 32 = 65,536 numbers of f16 a token: 128 KiB, and 512 KiB in full.
Json inspect_configuration(const Checkpoint& checkpoint) {
  const DecoderSpec spec = read_spec(checkpoint);
  int64_t n_parameters = 0;
  int64_t n_attention_full = 0;
  Json parts = {
      {"embedding", 0}, {"output", 0}, {"attention", 0}, {"feed_forward", 0}, {"norms", 0}};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const int64_t n = tensor.shape.n_elements();
    const std::string part = part_of(name);
    n_parameters += n;
    parts[part] = parts[part].get<int64_t>() + n;
    const bool is_kv = name.find(".attn_k.") != name.npos || name.find(".attn_v.") != name.npos;
    if (part == "attention") n_attention_full += is_kv ? n / spec.n_kv_heads * spec.n_heads : n;
  }
  constexpr int64_t kHalf = 2;  // bytes of f16
  const auto kv_bytes = [&](int64_t n_heads) {
    return spec.n_layers * 2 * n_heads * spec.head_dim * kHalf;
  };
  Json json = {{"name", checkpoint.path}};
  json.update(sizes_to_json(spec));
  json.update({{"tied_embeddings", spec.tied_embeddings},
               {"parameters", n_parameters},
               {"parameters_of", parts},
               {"attention_parameters_full", n_attention_full},
               {"kv_bytes_per_token", kv_bytes(spec.n_kv_heads)},
               {"kv_bytes_per_token_full", kv_bytes(spec.n_heads)},
               {"kv_bytes", kv_bytes(spec.n_kv_heads) * spec.n_ctx_train},
               {"kv_bytes_full", kv_bytes(spec.n_heads) * spec.n_ctx_train},
               {"memory", Json::object()}});
  constexpr std::array kTypes = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                 DType::kQ6_K, DType::kQ4_K, DType::kQ4_0};
  for (const DType dtype : kTypes) {
    const uint64_t weights = bytes_as(dtype, checkpoint);
    const uint64_t training = 2 * weights + 8 * static_cast<uint64_t>(n_parameters);
    json["memory"][std::string(dtype_info(dtype).name)] = {
        {"weights", weights}, {"training", is_quantized(dtype) ? Json() : Json(training)}};
  }
  return json;
}

std::string configuration_text(const Json& report) {
  const auto grouped = [](const Json& n) { return fmt::group_digits(n.get<uint64_t>()); };
  std::string text = fmt::format("{} ({})\n  {}, context {}\n\nparameters {:>19}\n", report["name"],
                                 report["architecture"], sizes_text(report), report["n_ctx_train"],
                                 grouped(report["parameters"]));
  for (const auto& [part, n] : report["parameters_of"].items()) {
    const bool is_tied = part == "output" && report["tied_embeddings"] == true;
    text += fmt::format("  {:14} {:>13}\n", part == "feed_forward" ? "feed-forward" : part,
                        is_tied ? "tied" : fmt::format("{}", grouped(n)));
  }
  text += fmt::format("\n{:8} {:>12}   {}\n", "memory", "weights",
                      "with gradients, and Adam's moments in f32");
  for (const auto& [type, memory] : report["memory"].items()) {
    text += fmt::format("  {:6} {:>12}", type, format_bytes(memory["weights"]));
    const Json& training = memory["training"];
    text += (training.is_null() ? "" : "   " + format_bytes(training)) + "\n";
  }
  // 1.5 times as many: "1.50 x"
  const auto times = [&](const Json& more, const Json& less) {
    return fmt::format("{:.2f} x", more.get<double>() / less.get<double>());
  };
  const Json& attention = report["parameters_of"]["attention"];
  const Json& attention_full = report["attention_parameters_full"];
  const Json& kv = report["kv_bytes_per_token"];
  const Json& kv_full = report["kv_bytes_per_token_full"];
  return text + fmt::format(
                    "\ncompared with full multi-head attention ({} key-value heads)\n"
                    "  attention parameters {}, full {} ({})\n"
                    "  KV cache in f16: {} bytes a token, full {} ({}); at {} tokens {}, full {}\n",
                    report["n_heads"], grouped(attention), grouped(attention_full),
                    times(attention_full, attention), grouped(kv), grouped(kv_full),
                    times(kv_full, kv), report["n_ctx_train"], format_bytes(report["kv_bytes"]),
                    format_bytes(report["kv_bytes_full"]));
}

}  // namespace limpid::cli
