#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/answer.h"
#include "cli/inspect.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

using Json = nlohmann::ordered_json;

// Text for people shortens arrays and long strings; JSON for programs has everything.
constexpr size_t kShownItems = 6;
constexpr size_t kShownCharacters = 100;

// An f32 as the shortest number that names it: 1e-05, and not the double 9.999999747378752e-06.
double shortest(double value) {
  const std::string text = fmt::format("{}", static_cast<float>(value));
  return std::isfinite(value) ? std::stod(text) : value;
}

// A value of the metadata with the type that JSON has for it.
Json value_to_json(const MetadataValue& value) {
  const bool is_f32 = value.type_name.ends_with("f32");
  return std::visit(
      [is_f32](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, MetadataValue::Array>) {
          Json array = Json::array();
          for (const MetadataValue& item : held) array.push_back(value_to_json(item));
          return array;
        } else if constexpr (std::is_same_v<Held, double>) {
          return is_f32 ? shortest(held) : held;
        } else if constexpr (std::is_same_v<Held, std::vector<double>>) {
          Json array = held;
          for (Json& item : array) item = is_f32 ? Json(shortest(item.get<double>())) : item;
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
          {"interleaved_rows", spec.row_order == RowOrder::kInterleavedPairs},
          {"inverse_frequencies", spec.rope.inverse_frequencies}};
}

Json spec_to_json(const DecoderSpec& spec) {
  Json json = sizes_to_json(spec);
  json.update({{"norm", name_of(spec.norm)},
               {"norm_eps", shortest(spec.norm_eps)},
               {"position", name_of(spec.position)},
               {"mlp", name_of(spec.mlp)},
               {"tied_embeddings", spec.tied_embeddings},
               {"attention_scale",
                spec.attention_scale > 0 ? Json(shortest(spec.attention_scale)) : Json()},
               {"scale_by_inverse_layer", spec.scale_by_inverse_layer},
               {"rope", spec.position == PositionKind::kRope ? rope_to_json(spec) : Json()}});
  return json;
}

// null for a tensor that lies in the file as it is.
Json how_made(const Checkpoint& checkpoint, const std::string& name) {
  const auto made = checkpoint.derived.find(name);
  return made == checkpoint.derived.end() ? Json() : Json(made->second.how);
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
      spec.row_order == RowOrder::kInterleavedPairs ? "interleaved" : "half-split", "pair",
      "frequency", "wavelength");
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

// The number in "blk.12.attn_q.weight"; nothing for a tensor outside the layers.
std::optional<int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  int64_t layer = 0;
  if (!name.starts_with(kBlock)) return std::nullopt;
  const char* digits = name.data() + kBlock.size();
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), layer);
  return error == std::errc() ? std::optional(layer) : std::nullopt;
}

// The order of the file, but layers by number: files that sort names have layer 10 before layer 2.
std::vector<std::string> tensors_by_layer(const Checkpoint& checkpoint) {
  std::vector<std::pair<int64_t, std::string>> keyed;
  bool seen_layer = false;
  for (const std::string& name : checkpoint.tensor_order) {
    if (checkpoint.find(name) == nullptr) continue;
    const std::optional<int64_t> layer = layer_of(name);
    seen_layer |= layer.has_value();
    keyed.emplace_back(layer        ? *layer
                       : seen_layer ? std::numeric_limits<int64_t>::max()
                                    : -1,
                       name);
  }
  std::ranges::stable_sort(keyed, {}, &std::pair<int64_t, std::string>::first);
  std::vector<std::string> names;
  for (auto& [layer, name] : keyed) names.push_back(std::move(name));
  return names;
}

const std::string& name_in_file(const Inspection& inspection, const std::string& name) {
  const auto found = inspection.names_in_file.find(name);
  return found == inspection.names_in_file.end() ? name : found->second;
}

std::string text_of_tensors(const Inspection& inspection) {
  const Checkpoint& checkpoint = *inspection.checkpoint;
  std::string text = "\ntensors\n";
  size_t width = 0;
  const std::vector<std::string> names = tensors_by_layer(checkpoint);
  for (const std::string& name : names)
    width = std::max(width, name_in_file(inspection, name).size());
  for (const std::string& name : names) {
    const TensorView* tensor = checkpoint.find(name);
    const std::string& shown = name_in_file(inspection, name);
    const auto made = checkpoint.derived.find(name);
    text += fmt::format("  {:{}} {:7} {:18} {:>10}{}{}\n", shown, width,
                        dtype_info(tensor->dtype).name, tensor->shape.to_string(),
                        format_bytes(tensor->n_bytes()), shown == name ? "" : "  as " + name,
                        made == checkpoint.derived.end() ? "" : "  made: " + made->second.how);
  }
  if (checkpoint.unused_tensors.empty()) return text;
  text += "\ntensors that the model does not use\n";
  for (const std::string& name : checkpoint.unused_tensors) text += fmt::format("  {}\n", name);
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
  for (const std::string& name : tensors_by_layer(checkpoint)) {
    const TensorView& tensor = *checkpoint.find(name);
    const auto dims = tensor.shape.dims();
    json["tensors"].push_back({{"name", name},
                               {"name_in_file", name_in_file(inspection, name)},
                               {"type", dtype_info(tensor.dtype).name},
                               {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                               {"bytes", tensor.n_bytes()},
                               {"made", how_made(checkpoint, name)}});
  }
  json["left"] = checkpoint.unused_tensors;
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
  if (!checkpoint.tensors.empty()) text += text_of_tensors(inspection) + text_of_types(inspection);
  if (inspection.spec) text += text_of_spec(*inspection.spec);
  if (const auto chat_template = checkpoint.metadata.string("tokenizer.chat_template")) {
    text += fmt::format("\nchat template\n{}\n", *chat_template);
  }
  if (inspection.plan) text += text_of_plan(*inspection.plan);
  if (!inspection.problem.empty()) text += fmt::format("\nnot runnable: {}\n", inspection.problem);
  return text;
}

}  // namespace limpid::cli
