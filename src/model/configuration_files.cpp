// Reads config.json and params.json without the weights that belong to them.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/mapped_file.h"
#include "checkpoint/json_metadata.h"
#include "layouts/canonical.h"
#include "layouts/hugging_face.h"
#include "layouts/meta.h"
#include "model/configuration.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Reads config.json; the tensors follow from its keys.
Checkpoint of_hugging_face(Checkpoint given) {
  given.naming = Naming::kHuggingFace;
  const HuggingFaceConfig config = read_hugging_face_config(given);
  Checkpoint checkpoint = checkpoint_of_shapes(config.canonical, config.parts);
  checkpoint.path = given.path;
  checkpoint.row_order = config.model_class->row_order;
  apply_parts(config, checkpoint);
  return checkpoint;
}

// Builds the tensors, with Meta's names, that the parameters imply. meta_to_canonical then
// translates them like a real checkpoint.
Checkpoint of_meta(Checkpoint given) {
  const char* prefix = given.metadata.contains("params.model.dim") ? "params.model." : "params.";
  const auto size_or = [&](const char* name, int64_t fallback) {
    const int64_t value = given.metadata.integer(std::string(prefix) + name).value_or(fallback);
    if (value >= 1) return value;
    throw FormatError(given.path, FormatError::kNoOffset, std::string(prefix) + name,
                      fmt::format("is {}; without weights the file must state it", value));
  };
  const int64_t d_model = size_or("dim", 0);
  const int64_t n_heads = size_or("n_heads", 0);
  const int64_t head_dim = size_or("head_dim", std::max<int64_t>(1, d_model / n_heads));
  const int64_t d_kv = size_or("n_kv_heads", n_heads) * head_dim;
  const int64_t vocab_size = size_or("vocab_size", 0);
  const double multiplier =
      given.metadata.number(std::string(prefix) + "ffn_dim_multiplier").value_or(1.0);
  const int64_t d_ff =
      size_or("hidden_dim", meta_hidden_size(d_model, size_or("multiple_of", 256), multiplier));
  const auto add = [&](const std::string& name, const Shape& shape) {
    given.tensors[name] = {DType::kF32, shape, nullptr};
    given.tensor_order.push_back(name);
  };
  add("tok_embeddings.weight", Shape{vocab_size, d_model});
  for (int64_t i = 0; i < size_or("n_layers", 0); ++i) {
    const std::string at = fmt::format("layers.{}.", i);
    add(at + "attention_norm.weight", Shape{d_model});
    add(at + "attention.wq.weight", Shape{n_heads * head_dim, d_model});
    add(at + "attention.wk.weight", Shape{d_kv, d_model});
    add(at + "attention.wv.weight", Shape{d_kv, d_model});
    add(at + "attention.wo.weight", Shape{d_model, n_heads * head_dim});
    add(at + "ffn_norm.weight", Shape{d_model});
    add(at + "feed_forward.w1.weight", Shape{d_ff, d_model});
    add(at + "feed_forward.w2.weight", Shape{d_model, d_ff});
    add(at + "feed_forward.w3.weight", Shape{d_ff, d_model});
  }
  add("norm.weight", Shape{d_model});
  add("output.weight", Shape{vocab_size, d_model});
  given.naming = Naming::kMeta;
  return to_canonical(std::move(given));
}

}  // namespace

Checkpoint configuration_of_files(const std::string& path) {
  constexpr std::array kFiles = {"config.json", "params.json"};
  fs::path file(path);
  if (fs::is_directory(file)) {
    for (const char* name : kFiles) {
      if (fs::exists(fs::path(path) / name)) file = fs::path(path) / name;
    }
    LIMPID_CHECK(ArgumentError, !fs::is_directory(file), "{} contains neither {} nor {}", path,
                 kFiles[0], kFiles[1]);
  }
  const auto mapped = MappedFile::open(file.string());
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes().data()),
                              mapped->size());
  Checkpoint given;
  given.path = file.string();
  given.format = "configuration";
  Metadata probe;
  add_json(given.path, text, "", probe);
  const bool is_meta = probe.contains("dim") || probe.contains("model.dim");
  add_json(given.path, text, is_meta ? "params." : "config.", given.metadata);
  return is_meta ? of_meta(std::move(given)) : of_hugging_face(std::move(given));
}

}  // namespace limpid
