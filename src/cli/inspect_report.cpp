// The report of a checkpoint as JSON, in short:
//
//   {"path": "tiny.gguf", "format": "gguf", "files": 1, "file_bytes": …, "parameters": …,
//    "metadata": {"llama.block_count": {"type": "u32", "value": 2}, …},
//    "types": {"f16": {"tensors": …, "weights": …, "bytes": …}},
//    "tensors": [{"name": "blk.0.attn_q.weight", "name_in_file": "…", "type": "f16",
//                 "shape": [64, 64], "bytes": …, "made": null}, …],
//    "left": [], "model": {"n_layers": 2, …, "rope": {…}}, "memory_plan": {"n_ctx": …, …}}
//
// Numbers that were f32 in the file are written as the shortest decimal that names that f32.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numbers>

#include "base/check.h"
#include "base/parse_number.h"
#include "base/utf8.h"
#include "cli/error_words.h"
#include "cli/inspect.h"
#include "cli/json_format.h"
#include "cli/output.h"
#include "generate/memory_plan.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

// Text for people shortens arrays and long strings; JSON for programs has everything.
constexpr size_t kShownItems = 6;
constexpr size_t kShownBytes = 100;

// A value of the metadata with the type that JSON has for it.
Json value_to_json(const MetadataValue& value) {
  Json json = std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<decltype(held), const MetadataValue::Array&>) {
          Json array = Json::array();
          for (const MetadataValue& item : held) array.push_back(value_to_json(item));
          return array;
        } else {
          return held;
        }
      },
      value.value);
  const auto shorten = [](Json& number) {
    if (number.is_number_float()) number = shortest_decimal(number.get<double>());
  };
  if (!value.type_name.ends_with("f32")) return json;
  shorten(json);
  if (json.is_array()) std::ranges::for_each(json, shorten);
  return json;
}

// ["a", "b", "c", "d", "e", "f"], … (49152 items). A number may be nan or inf, which JSON lacks.
std::string short_text(const Json& json) {
  if (json.is_number_float() && !std::isfinite(json.get<double>()))
    return fmt::format("{}", json.get<double>());
  if (json.is_string() && json.get_ref<const std::string&>().size() > kShownBytes) {
    const auto& whole = json.get_ref<const std::string&>();
    const std::string shown = whole.substr(0, kShownBytes);
    return fmt::format("{}… ({} bytes)",
                       dump_json(shown.substr(0, unicode::complete_prefix(shown))), whole.size());
  }
  if (!json.is_array()) return dump_json(json);
  std::vector<std::string> items;
  for (size_t i = 0; i < std::min(json.size(), kShownItems); ++i)
    items.push_back(short_text(json[i]));
  if (items.size() == json.size()) return fmt::format("[{}]", fmt::join(items, ", "));
  return fmt::format("[{}, …] ({} items)", fmt::join(items, ", "), json.size());
}

constexpr std::array kMlpNames = {"swiglu", "gelu_tanh", "gelu_erf", "relu", "silu"};  // by MlpKind

// The frequencies are those after scaling, so that a scaling that was read but not applied becomes
// visible.
Json rope_to_json(const DecoderSpec& spec) {
  return {{"n_rot", spec.rope.n_rot},
          {"base", spec.rope.base},
          {"scaling", spec.rope.scaling},
          {"scaling_factor", spec.rope.scaling_factor},
          {"interleaved_rows", spec.row_order == RowOrder::kInterleavedPairs},
          {"inverse_frequencies", spec.rope.inverse_frequencies}};
}

Json spec_to_json(const DecoderSpec& spec) {
  const bool has_rope = spec.position == PositionKind::kRope;
  Json json = sizes_to_json(spec);
  json.update({{"norm", spec.norm == NormKind::kRms ? "rms" : "layer"},
               {"norm_eps", shortest_decimal(spec.norm_eps)},
               {"position", has_rope ? "rope" : "learned"},
               {"mlp", kMlpNames[static_cast<size_t>(spec.mlp)]},
               {"tied_embeddings", spec.tied_embeddings},
               {"attention_scale",
                spec.attention_scale > 0 ? Json(shortest_decimal(spec.attention_scale)) : Json()},
               {"scale_by_inverse_layer", spec.scale_by_inverse_layer},
               {"rope", has_rope ? rope_to_json(spec) : Json()}});
  return json;
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

}  // namespace

std::multimap<int64_t, std::string> tensors_by_layer(const Checkpoint& checkpoint) {
  std::multimap<int64_t, std::string> names;
  int64_t outside = -1;  // of the layers: before the first one, then after the last one
  for (const std::string& name : checkpoint.tensor_order) {
    int64_t layer = 0;
    const bool has_layer = std::sscanf(name.c_str(), "blk.%" SCNd64, &layer) == 1;
    if (has_layer) outside = std::numeric_limits<int64_t>::max();
    if (checkpoint.find(name) != nullptr) names.emplace(has_layer ? layer : outside, name);
  }
  return names;
}

namespace {

// The names that the file has for the tensors of `checkpoint`, found by the place of their bytes. A
// tensor that is derived from others has no such name.
std::map<std::string, std::string> names_in_file(const Checkpoint& checkpoint) {
  using Place = std::pair<std::string, ptrdiff_t>;  // file, offset
  const auto place_of = [](const Checkpoint& holder, const TensorView& tensor) {
    for (const auto& file : holder.files) {
      const auto* begin = file->bytes().data();
      const auto* data = static_cast<const std::byte*>(tensor.data);
      if (data >= begin && data < begin + file->size()) return Place(file->path(), data - begin);
    }
    return Place();
  };
  if (checkpoint.format.starts_with("gguf")) return {};  // Limpid's names are those of GGUF
  const Checkpoint given = open_checkpoint(checkpoint.path);
  std::map<Place, std::string> theirs;
  for (const auto& [name, tensor] : given.tensors) theirs[place_of(given, tensor)] = name;
  theirs.erase(Place());
  std::map<std::string, std::string> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto found = theirs.find(place_of(checkpoint, tensor));
    if (found != theirs.end() && found->second != name) names[name] = found->second;
  }
  return names;
}

// A file of the mixture Q4_K_M has tensors of three types: Q4_K, Q6_K, and F32 for the vectors.
Json types_to_json(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::array<uint64_t, 3>> totals;  // tensors, weights, bytes; by type
  for (const auto& [name, tensor] : checkpoint.tensors) {
    auto& [n_tensors, n_weights, n_bytes] = totals[dtype_info(tensor.dtype).name];
    n_tensors += 1;
    n_weights += static_cast<uint64_t>(tensor.shape.n_elements());
    n_bytes += tensor.n_bytes();
  }
  Json types = Json::object();
  for (const auto& [type, total] : totals) {
    types[std::string(type)] = {{"tensors", total[0]}, {"weights", total[1]}, {"bytes", total[2]}};
  }
  return types;
}

// "made" is null for a tensor that lies in the file as it is.
Json tensors_to_json(const Checkpoint& checkpoint) {
  const auto in_file = names_in_file(checkpoint);
  Json tensors = Json::array();
  for (const auto& [layer, name] : tensors_by_layer(checkpoint)) {
    const TensorView& tensor = *checkpoint.find(name);
    const auto theirs = in_file.find(name);
    const auto made = checkpoint.derived.find(name);
    tensors.push_back(
        {{"name", name},
         {"name_in_file", theirs == in_file.end() ? name : theirs->second},
         {"type", dtype_info(tensor.dtype).name},
         {"shape", tensor.shape.dims()},
         {"bytes", tensor.n_bytes()},
         {"made", made == checkpoint.derived.end() ? Json() : Json(made->second.how)}});
  }
  return tensors;
}

// 4.5 for Q4_K: 144 bytes hold 256 weights.
double bits_per_weight(const Json& n_bytes, const Json& n_weights) {
  return n_weights == 0 ? 0 : 8 * n_bytes.get<double>() / n_weights.get<double>();
}

std::string text_of_tensors(const Json& report) {
  std::string text = "\ntensors\n";
  size_t width = 0;
  for (const Json& tensor : report["tensors"])
    width = std::max(width, tensor["name_in_file"].get_ref<const std::string&>().size());
  for (const Json& tensor : report["tensors"]) {
    const bool renamed = tensor["name"] != tensor["name_in_file"];
    text += fmt::format("  {:{}} {:7} {:18} {:>10}{}{}\n",
                        tensor["name_in_file"].get<std::string>(), width, tensor["type"],
                        short_text(tensor["shape"]), format_bytes(tensor["bytes"]),
                        renamed ? fmt::format("  as {}", tensor["name"]) : "",
                        tensor["made"].is_null() ? "" : fmt::format("  made: {}", tensor["made"]));
  }
  if (!report["left"].empty()) text += "\ntensors that the model does not use\n";
  for (const Json& name : report["left"]) text += fmt::format("  {}\n", name);
  text += "\nmemory per type\n";
  const auto line = [&](const std::string& name, const Json& n_tensors, const Json& n_weights,
                        const Json& n_bytes) {
    text += fmt::format("  {:8} {:>5} tensors {:>15} weights {:>10}  {:.2f} bits each\n", name,
                        n_tensors, n_weights, format_bytes(n_bytes),
                        bits_per_weight(n_bytes, n_weights));
  };
  for (const auto& [name, total] : report["types"].items())
    line(name, total["tensors"], total["weights"], total["bytes"]);
  line("all", report["tensors"].size(), report["parameters"], report["tensor_bytes"]);
  return text;
}

// Of the rotary table only the first, the middle and the last pairs: pair i of a head turns by
// position * frequency[i], so it repeats every 2 pi / frequency[i] tokens, its wavelength.
std::string text_of_model(const Json& model) {
  const bool tied = model["tied_embeddings"] == true;
  std::string text = fmt::format(
      "\nmodel\n  {}\n  {} norm (eps {:g}), {} positions, {} feed-forward, trained for {} tokens\n"
      "  embeddings {}\n",
      sizes_text(model), model["norm"], model["norm_eps"], model["position"], model["mlp"],
      model["n_ctx_train"], tied ? "tied: token_embd.weight is the output matrix too" : "untied");
  const Json& rope = model["rope"];
  if (rope.is_null() || rope["inverse_frequencies"].empty()) return text;
  text += fmt::format(
      "\nrotary table\n  {} of {} elements of a head, base {:g}, scaling {} (factor {:g}), rows of "
      "Q and K {}\n  {:>5} {:>14} {:>16}\n",
      rope["n_rot"], model["head_dim"], rope["base"], rope["scaling"], rope["scaling_factor"],
      rope["interleaved_rows"] == true ? "interleaved" : "half-split", "pair", "frequency",
      "wavelength");
  const auto frequencies = rope["inverse_frequencies"].get<std::vector<double>>();
  const size_t n = frequencies.size();
  for (size_t i = 0; i < n; ++i) {
    if (i >= 3 && i + 3 < n && i != n / 2) continue;
    text += fmt::format("  {:5} {:14.8g} {:10.1f} tokens\n", i, frequencies[i],
                        2 * std::numbers::pi / frequencies[i]);
  }
  return text;
}

// What is mapped from the file is not counted as allocated: the system may drop those pages.
std::string text_of_plan(const Json& plan) {
  const bool reduced = plan["n_ctx_reduced"] == true;
  std::string text = fmt::format("\nmemory to run it, context {}{}\n", plan["n_ctx"],
                                 reduced ? " (reduced to fit; -c N sets it)" : "");
  const auto line = [&](const char* label, const char* key, const char* note = "") {
    text += fmt::format("  {:18} {:>10}  {}\n", label, format_bytes(plan[key]), note);
  };
  line("weights in file", "weights_in_file", "mapped, not allocated");
  line("weights packed", "weights_packed");
  line("KV cache", "kv_cache");
  line("activations", "activations");
  line("allocated", "allocated", "packed weights, cache, activations");
  if (plan["available"] != 0) line("available now", "available");  // 0: unknown
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

std::string sizes_text(const Json& sizes) {
  return fmt::format("{}, width {}, {}, {} of {}, feed-forward {}, vocabulary {}",
                     count(sizes["n_layers"], "layer"), sizes["d_model"],
                     count(sizes["n_heads"], "head"), count(sizes["n_kv_heads"], "key-value head"),
                     sizes["head_dim"], sizes["d_ff"], sizes["vocab_size"]);
}

Json inspect_checkpoint(const Checkpoint& checkpoint, const OpenOptions& options) {
  uint64_t n_file_bytes = 0;
  uint64_t n_bytes = 0;
  int64_t n_weights = 0;
  for (const auto& file : checkpoint.files) n_file_bytes += file->size();
  for (const auto& [name, tensor] : checkpoint.tensors) {
    n_bytes += tensor.n_bytes();
    n_weights += tensor.shape.n_elements();
  }
  const auto chat_template = checkpoint.metadata.string("tokenizer.chat_template");
  Json report = {{"path", checkpoint.path},
                 {"format", checkpoint.format},
                 {"files", checkpoint.files.size()},
                 {"file_bytes", n_file_bytes},
                 {"parameters", n_weights},
                 {"tensor_bytes", n_bytes},
                 {"bits_per_weight", bits_per_weight(n_bytes, n_weights)},
                 {"metadata", Json::object()},
                 {"types", types_to_json(checkpoint)},
                 {"tensors", tensors_to_json(checkpoint)},
                 {"left", checkpoint.unused_tensors},
                 {"model", Json()},
                 {"chat_template", chat_template ? Json(std::string(*chat_template)) : Json()},
                 {"text_problems", text_problems(checkpoint)},
                 {"memory_plan", Json()},
                 {"problem", Json()}};
  for (const auto& [key, value] : checkpoint.metadata.all())
    report["metadata"][key] = {{"type", value.type_name}, {"value", value_to_json(value)}};
  try {
    LIMPID_CHECK(UnsupportedError, !checkpoint.tensors.empty(),
                 "a vocabulary without tensors: it cannot be run");
    const DecoderSpec spec = read_spec(checkpoint);
    report["model"] = spec_to_json(spec);
    report["memory_plan"] = plan_to_json(make_memory_plan(checkpoint, spec, options));
  } catch (const Error& error) {
    report["problem"] = in_program_words(error);
  }
  return report;
}

std::string checkpoint_text(const Json& report) {
  // --quantize shows weights that are in no file.
  const std::string size = report["files"] == 0
                               ? format_bytes(report["tensor_bytes"]) + " of tensors"
                               : fmt::format("{} in {}", format_bytes(report["file_bytes"]),
                                             count(report["files"], "file"));
  std::string text =
      fmt::format("{}\n  {}, {}, {} parameters, {:.2f} bits each\n\nmetadata\n", report["path"],
                  report["format"], size, report["parameters"], report["bits_per_weight"]);
  for (const auto& [key, entry] : report["metadata"].items())
    text += fmt::format("  {} ({}) = {}\n", key, entry["type"], short_text(entry["value"]));
  if (!report["tensors"].empty()) text += text_of_tensors(report);
  if (!report["model"].is_null()) text += text_of_model(report["model"]);
  if (!report["chat_template"].is_null())
    text += fmt::format("\nchat template\n{}\n", report["chat_template"]);
  for (const Json& problem : report["text_problems"]) text += fmt::format("\n{}\n", problem);
  if (!report["memory_plan"].is_null()) text += text_of_plan(report["memory_plan"]);
  if (!report["problem"].is_null()) text += fmt::format("\nnot runnable: {}\n", report["problem"]);
  return text;
}

}  // namespace limpid::cli
