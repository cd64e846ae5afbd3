#include "cli/inspect_config.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/inspect.h"
#include "cli/output.h"
#include "model/registry.h"

namespace limpid::cli {
namespace {

using Json = nlohmann::ordered_json;

// In a quantised file vectors stay f32, and rows that are not a multiple of the block size are f16.
uint64_t bytes_as(DType dtype, const Checkpoint& checkpoint) {
  uint64_t n_bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    DType stored = dtype;
    if (is_quantized(dtype) && tensor.shape.rank() == 1) stored = DType::kF32;
    if (is_quantized(stored) && tensor.shape.cols() % dtype_info(dtype).block_size != 0)
      stored = DType::kF16;
    n_bytes += tensor_bytes(stored, tensor.shape);
  }
  return n_bytes;
}

// 8030261248 -> "8,030,261,248"
std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string grouped(int64_t n) { return grouped(static_cast<uint64_t>(n)); }

// Adds a tensor to the part of the model that its name in GGUF tells.
void count_tensor(const std::string& name, const Shape& shape, ConfigurationReport& report) {
  const int64_t n = shape.n_elements();
  const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  report.n_parameters += n;
  if (is("_embd.")) {
    report.n_embedding += n;
  } else if (name.starts_with("output.")) {
    report.n_output += n;
  } else if (is("attn_norm") || is("ffn_norm") || is("output_norm")) {
    report.n_norms += n;
  } else if (is(".attn_")) {
    const bool is_kv = is(".attn_k.") || is(".attn_v.");
    report.n_attention += n;
    report.n_attention_full += is_kv ? n / report.spec.n_kv_heads * report.spec.n_heads : n;
  } else {
    report.n_feed_forward += n;
  }
}

std::string times(double more, double less) { return fmt::format("{:.2f} x", more / less); }

}  // namespace

// Training keeps weights, gradients of the same type, and the two moments of Adam in f32: 8 bytes a
// parameter. With as many key-value heads as heads, K and V would grow by n_heads / n_kv_heads.
ConfigurationReport report_configuration(const Checkpoint& checkpoint) {
  ConfigurationReport report;
  report.name = checkpoint.path;
  report.spec = read_spec(checkpoint);
  for (const auto& [name, tensor] : checkpoint.tensors) count_tensor(name, tensor.shape, report);
  const DecoderSpec& spec = report.spec;
  constexpr int64_t kHalf = 2;
  const auto kv_bytes = [&](int64_t n_heads) {
    return static_cast<uint64_t>(spec.n_layers * 2 * n_heads * spec.head_dim * kHalf);
  };
  report.kv_bytes_per_token = kv_bytes(spec.n_kv_heads);
  report.kv_bytes_per_token_full = kv_bytes(spec.n_heads);
  constexpr std::array kTypes = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                 DType::kQ6_K, DType::kQ4_K, DType::kQ4_0};
  for (const DType dtype : kTypes) {
    TypeMemory memory{std::string(dtype_info(dtype).name), bytes_as(dtype, checkpoint), 0};
    if (!is_quantized(dtype))
      memory.training = 2 * memory.weights + 8 * static_cast<uint64_t>(report.n_parameters);
    report.memory.push_back(std::move(memory));
  }
  return report;
}

Json to_json(const ConfigurationReport& report) {
  const DecoderSpec& spec = report.spec;
  const auto n_ctx = static_cast<uint64_t>(spec.n_ctx_train);
  Json json = {{"name", report.name}};
  json.update(sizes_to_json(spec));
  json.update({{"tied_embeddings", spec.tied_embeddings},
               {"parameters", report.n_parameters},
               {"parameters_of",
                {{"embedding", report.n_embedding},
                 {"output", report.n_output},
                 {"attention", report.n_attention},
                 {"feed_forward", report.n_feed_forward},
                 {"norms", report.n_norms}}},
               {"attention_parameters_full", report.n_attention_full},
               {"kv_bytes_per_token", report.kv_bytes_per_token},
               {"kv_bytes_per_token_full", report.kv_bytes_per_token_full},
               {"kv_bytes", report.kv_bytes_per_token * n_ctx},
               {"kv_bytes_full", report.kv_bytes_per_token_full * n_ctx},
               {"memory", Json::object()}});
  for (const TypeMemory& memory : report.memory) {
    json["memory"][memory.type] = {
        {"weights", memory.weights},
        {"training", memory.training == 0 ? Json() : Json(memory.training)}};
  }
  return json;
}

std::string to_text(const ConfigurationReport& report) {
  const DecoderSpec& spec = report.spec;
  std::string text = fmt::format(
      "{} ({})\n  {} layers, width {}, {} heads, {} key-value heads of {}, feed-forward {}, "
      "vocabulary {}, context {}\n\nparameters {:>19}\n",
      report.name, spec.architecture, spec.n_layers, spec.d_model, spec.n_heads, spec.n_kv_heads,
      spec.head_dim, spec.d_ff, spec.vocab_size, spec.n_ctx_train, grouped(report.n_parameters));
  const auto part = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:14} {:>13}\n", name, value);
  };
  part("embedding", grouped(report.n_embedding));
  part("output", spec.tied_embeddings ? "tied" : grouped(report.n_output));
  part("attention", grouped(report.n_attention));
  part("feed-forward", grouped(report.n_feed_forward));
  part("norms", grouped(report.n_norms));

  text += fmt::format("\n{:8} {:>12}   {}\n", "memory", "weights",
                      "with gradients, and Adam's moments in f32");
  for (const TypeMemory& memory : report.memory) {
    text += fmt::format("  {:6} {:>12}", memory.type, format_bytes(memory.weights));
    if (memory.training > 0) text += "   " + format_bytes(memory.training);
    text += '\n';
  }
  const auto n_ctx = static_cast<uint64_t>(spec.n_ctx_train);
  const auto kv = static_cast<double>(report.kv_bytes_per_token);
  const auto kv_full = static_cast<double>(report.kv_bytes_per_token_full);
  text += fmt::format(
      "\nbeside full multi-head attention ({} key-value heads)\n"
      "  attention parameters {}, full {} ({})\n"
      "  KV cache in f16: {} bytes a token, full {} ({}); at {} tokens {}, full {}\n",
      spec.n_heads, grouped(report.n_attention), grouped(report.n_attention_full),
      times(static_cast<double>(report.n_attention_full), static_cast<double>(report.n_attention)),
      grouped(report.kv_bytes_per_token), grouped(report.kv_bytes_per_token_full),
      times(kv_full, kv), spec.n_ctx_train, format_bytes(report.kv_bytes_per_token * n_ctx),
      format_bytes(report.kv_bytes_per_token_full * n_ctx));
  return text;
}

}  // namespace limpid::cli
