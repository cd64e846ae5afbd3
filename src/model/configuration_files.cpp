// Reads config.json and params.json without the weights that belong to them.

#include <array>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/paths.h"
#include "checkpoint/metadata.h"
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

// Reads params.json. Without weights, the file must state the size of the vocabulary, which is
// otherwise the number of rows of the embedding.
Checkpoint of_meta(const Checkpoint& given) {
  Metadata keys = read_meta_params(given);
  if (!keys.contains("llama.vocab_size")) {
    throw_format_error(given.path, "vocab_size",
                       "is missing; without weights the file must state it");
  }
  Checkpoint checkpoint = checkpoint_of_shapes(std::move(keys), {});
  checkpoint.path = given.path;
  checkpoint.row_order = RowOrder::kInterleavedPairs;
  return checkpoint;
}

}  // namespace

Checkpoint configuration_of_files(const std::string& path) {
  constexpr std::array kFiles = {"config.json", "params.json"};
  fs::path file(path);
  if (is_folder(file)) {
    // The first one that exists, as open_checkpoint chooses: Mistral's folders have both files.
    for (const char* name : kFiles) {
      if (!is_there(fs::path(path) / name)) continue;
      file = fs::path(path) / name;
      break;
    }
    LIMPID_CHECK(ArgumentError, !is_folder(file), "{} contains neither {} nor {}", path, kFiles[0],
                 kFiles[1]);
  }
  const auto mapped = MappedFile::open(file.string());
  Checkpoint given;
  given.path = given.given_config = file.string();
  given.format = "configuration";
  Metadata probe;
  add_json(given.path, text_of(*mapped), "", probe);
  const bool is_meta = probe.contains("dim") || probe.contains("model.dim");
  add_json(given.path, text_of(*mapped), is_meta ? "params." : "config.", given.metadata);
  return is_meta ? of_meta(given) : of_hugging_face(std::move(given));
}

Checkpoint find_configuration(const std::string& path_or_name) {
  std::error_code error;  // set for a path that cannot be looked up
  const bool is_path =
      !is_configuration_name(path_or_name) && (fs::exists(path_or_name, error) || error);
  return is_path ? configuration_of_files(path_or_name) : named_configuration(path_or_name);
}

}  // namespace limpid
