#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "checkpoint/byte_reader.h"
#include "cli/answer.h"
#include "cli/inspect.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownItems = 6;
constexpr size_t kShownCharacters = 100;

Json value_to_json(const MetadataValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MetadataValue::Array>) {
          Json array = Json::array();
          for (const MetadataValue& item : held) array.push_back(value_to_json(item));
          return array;
        } else {
          return held;
        }
      },
      value.value);
}

std::string short_text(const Json& json) {
  if (!json.is_array()) {
    const std::string text = dump_json(json);
    return text.size() <= kShownCharacters
               ? text
               : fmt::format("{}… ({} bytes)",
                             dump_json(json.get<std::string>().substr(0, kShownCharacters)),
                             json.get_ref<const std::string&>().size());
  }
  std::vector<std::string> items;
  for (size_t i = 0; i < std::min(json.size(), kShownItems); ++i)
    items.push_back(short_text(json[i]));
  const bool cut = json.size() > kShownItems;
  return fmt::format("[{}{}]{}", fmt::join(items, ", "), cut ? ", …" : "",
                     cut ? fmt::format(" ({} items)", json.size()) : "");
}

double bits_per_weight(const TypeTotal& total) {
  return total.n_elements == 0
             ? 0
             : 8.0 * static_cast<double>(total.n_bytes) / static_cast<double>(total.n_elements);
}

const char* name_of(PositionKind kind) { return kind == PositionKind::kRope ? "rope" : "learned"; }
const char* name_of(NormKind kind) { return kind == NormKind::kRms ? "rms" : "layer"; }
const char* name_of(MlpKind kind) {
  constexpr std::array kNames = {"swiglu", "gelu_tanh", "gelu_erf", "relu", "silu"};
  return kNames[static_cast<size_t>(kind)];
}

Json rope_to_json(const DecoderSpec& spec) {
  return {{"n_rot", spec.rope.n_rot},
          {"base", spec.rope.base},
          {"scaling", spec.rope.scaling},
          {"scaling_factor", spec.rope.scaling_factor},
          {"interleaved_rows", spec.interleaved_rope},
          {"inverse_frequencies", spec.rope.inverse_frequencies}};
}

Json spec_to_json(const DecoderSpec& spec) {
  Json json = sizes_to_json(spec);
  json.update({{"norm", name_of(spec.norm)},
               {"norm_eps", spec.norm_eps},
               {"position", name_of(spec.position)},
               {"mlp", name_of(spec.mlp)},
               {"tied_embeddings", spec.tied_embeddings},
               {"attention_scale", spec.attention_scale > 0 ? Json(spec.attention_scale) : Json()},
               {"scale_by_inverse_layer", spec.scale_by_inverse_layer},
               {"rope", spec.position == PositionKind::kRope ? rope_to_json(spec) : Json()}});
  return json;
}

// null for a tensor that lies in the file as it is.
Json how_made(const Checkpoint& checkpoint, const std::string& name) {
  const auto made = checkpoint.made.find(name);
  return made == checkpoint.made.end() ? Json() : Json(made->second.how);
}

Json plan_to_json(const MemoryPlan& plan) {
  return {{"n_ctx", plan.n_ctx},
          {"n_ctx_train", plan.n_ctx_train},
          {"n_ctx_reduced", plan.n_ctx_reduced},
          {"weights_in_file", plan.weights_in_file},
          {"weights_packed", plan.weights_packed},
          {"kv_cache", plan.kv_cache},
          {"activations", plan.activations},
          {"allocated", plan.allocated()},
          {"available", plan.available}};
}

std::string text_of_types(const Inspection& inspection) {
  std::string text = "\nmemory per type\n";
  const auto line = [&](const std::string& name, const TypeTotal& total) {
    text += fmt::format("  {:8} {:5} tensors {:>15} weights {:>10}  {:.2f} bits each\n", name,
                        total.n_tensors, total.n_elements, format_bytes(total.n_bytes),
                        bits_per_weight(total));
  };
  for (const auto& [name, total] : inspection.totals) line(name, total);
  line("all", inspection.all);
  return text;
}

std::string text_of_spec(const DecoderSpec& spec) {
  std::string text = fmt::format(
      "\nmodel\n  {} layers, width {}, {} heads, {} key-value heads of {}, feed-forward {}, "
      "vocabulary {}\n"
      "  {} norm (eps {:g}), {} positions, {} feed-forward, trained for {} tokens\n"
      "  embeddings {}\n",
      spec.n_layers, spec.d_model, spec.n_heads, spec.n_kv_heads, spec.head_dim, spec.d_ff,
      spec.vocab_size, name_of(spec.norm), spec.norm_eps, name_of(spec.position), name_of(spec.mlp),
      spec.n_ctx_train,
      spec.tied_embeddings ? "tied: token_embd.weight is the output matrix too" : "untied");
  if (spec.position != PositionKind::kRope || spec.rope.inverse_frequencies.empty()) return text;
  const RopeSpec& rope = spec.rope;
  text += fmt::format(
      "\nrotary table\n  {} of {} elements of a head, base {:g}, scaling {} (factor {:g}), rows of "
      "Q "
      "and K {}\n  {:>5} {:>14} {:>16}\n",
      rope.n_rot, spec.head_dim, rope.base, rope.scaling, rope.scaling_factor,
      spec.interleaved_rope ? "interleaved" : "half-split", "pair", "frequency", "wavelength");
  const size_t n = rope.inverse_frequencies.size();
  for (size_t i = 0; i < n; ++i) {
    const bool shown = i < 3 || i + 3 >= n || i == n / 2;
    if (!shown) continue;
    const double frequency = rope.inverse_frequencies[i];
    text += fmt::format("  {:5} {:14.8g} {:10.1f} tokens\n", i, frequency,
                        2 * std::numbers::pi / frequency);
  }
  return text;
}

std::string text_of_tensors(const Checkpoint& checkpoint) {
  std::string text = "\ntensors\n";
  for (const std::string& name : checkpoint.tensor_order) {
    const TensorView* tensor = checkpoint.find(name);
    if (tensor == nullptr) continue;
    const auto made = checkpoint.made.find(name);
    text += fmt::format("  {:36} {:7} {:18} {:>10}{}\n", name, dtype_info(tensor->dtype).name,
                        tensor->shape.to_string(), format_bytes(tensor->n_bytes()),
                        made == checkpoint.made.end() ? "" : "  made: " + made->second.how);
  }
  if (checkpoint.left.empty()) return text;
  text += "\ntensors that the model does not use\n";
  for (const std::string& name : checkpoint.left) text += fmt::format("  {}\n", printable(name));
  return text;
}

std::string text_of_plan(const MemoryPlan& plan) {
  std::string text = fmt::format("\nmemory to run it, context {}{}\n", plan.n_ctx,
                                 plan.n_ctx_reduced ? " (reduced to fit; -c N sets it)" : "");
  const auto line = [&](const char* name, uint64_t n_bytes, const char* note) {
    text += fmt::format("  {:18} {:>10}  {}\n", name, format_bytes(n_bytes), note);
  };
  line("weights in file", plan.weights_in_file, "mapped, not allocated");
  line("weights packed", plan.weights_packed, "");
  line("KV cache", plan.kv_cache, "");
  line("activations", plan.activations, "");
  line("allocated", plan.allocated(), "packed weights, cache, activations");
  if (plan.available > 0) line("available now", plan.available, "");
  return text;
}

}  // namespace

Json sizes_to_json(const DecoderSpec& spec) {
  return {{"architecture", spec.architecture},
          {"n_layers", spec.n_layers},
          {"d_model", spec.d_model},
          {"n_heads", spec.n_heads},
          {"n_kv_heads", spec.n_kv_heads},
          {"head_dim", spec.head_dim},
          {"d_ff", spec.d_ff},
          {"vocab_size", spec.vocab_size},
          {"n_ctx_train", spec.n_ctx_train}};
}

Json to_json(const Inspection& inspection) {
  const Checkpoint& checkpoint = *inspection.checkpoint;
  Json json;
  json["path"] = checkpoint.path;
  json["format"] = checkpoint.format;
  json["file_bytes"] = inspection.n_file_bytes;
  json["parameters"] = inspection.all.n_elements;
  json["tensor_bytes"] = inspection.all.n_bytes;
  json["bits_per_weight"] = bits_per_weight(inspection.all);
  json["metadata"] = Json::object();
  for (const auto& [key, value] : checkpoint.metadata.all()) {
    json["metadata"][key] = {{"type", value.type_name}, {"value", value_to_json(value)}};
  }
  json["types"] = Json::object();
  for (const auto& [name, total] : inspection.totals) {
    json["types"][name] = {
        {"tensors", total.n_tensors}, {"weights", total.n_elements}, {"bytes", total.n_bytes}};
  }
  json["tensors"] = Json::array();
  for (const std::string& name : checkpoint.tensor_order) {
    if (const TensorView* tensor = checkpoint.find(name)) {
      json["tensors"].push_back({{"name", name},
                                 {"type", dtype_info(tensor->dtype).name},
                                 {"shape", std::vector<int64_t>(tensor->shape.dims().begin(),
                                                                tensor->shape.dims().end())},
                                 {"bytes", tensor->n_bytes()},
                                 {"made", how_made(checkpoint, name)}});
    }
  }
  json["left"] = checkpoint.left;
  json["model"] = inspection.spec ? spec_to_json(*inspection.spec) : Json();
  const auto chat_template = checkpoint.metadata.string("tokenizer.chat_template");
  json["chat_template"] = chat_template ? Json(std::string(*chat_template)) : Json();
  json["memory_plan"] = inspection.plan ? plan_to_json(*inspection.plan) : Json();
  json["problem"] = inspection.problem.empty() ? Json() : Json(inspection.problem);
  return json;
}

std::string to_text(const Inspection& inspection) {
  const Checkpoint& checkpoint = *inspection.checkpoint;
  std::string text =
      fmt::format("{}\n  {}, {} in {} file{}, {} parameters, {:.2f} bits each\n", checkpoint.path,
                  checkpoint.format, format_bytes(inspection.n_file_bytes), checkpoint.files.size(),
                  checkpoint.files.size() == 1 ? "" : "s", inspection.all.n_elements,
                  bits_per_weight(inspection.all));
  text += "\nmetadata\n";
  for (const auto& [key, value] : checkpoint.metadata.all()) {
    text += fmt::format("  {} ({}) = {}\n", key, value.type_name, short_text(value_to_json(value)));
  }
  if (!checkpoint.tensors.empty()) text += text_of_tensors(checkpoint) + text_of_types(inspection);
  if (inspection.spec) text += text_of_spec(*inspection.spec);
  if (const auto chat_template = checkpoint.metadata.string("tokenizer.chat_template")) {
    text += fmt::format("\nchat template\n{}\n", *chat_template);
  }
  if (inspection.plan) text += text_of_plan(*inspection.plan);
  if (!inspection.problem.empty()) text += fmt::format("\nnot runnable: {}\n", inspection.problem);
  return text;
}

}  // namespace limpid::cli
