#include "checkpoint/hugging_face_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/json_file.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "base/paths.h"
#include "base/printable.h"
#include "checkpoint/metadata.h"
#include "checkpoint/safetensors.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kGenerationConfig = "generation_config.json";
constexpr std::string_view kPooling = "1_Pooling";  // folders of sentence-transformers
constexpr std::string_view kDense = "2_Dense";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kTemplates = kNamedTemplates.substr(0, kNamedTemplates.size() - 1);
constexpr uint64_t kLongestIndex = 100'000'000;

// The shards that the index names, each with the tensors that it must hold:
//   {"model-00001-of-00002.safetensors": {"model.embed_tokens.weight", …}, …}
using Shards = std::map<std::string, std::set<std::string>>;

// The index is a JSON file whose "weight_map" has the name of a shard for each tensor. A shard's
// name comes from the file, so check_name refuses one that leaves the folder.
Shards read_index(const ModelFolder& folder) {
  const auto file = folder.open(kIndex);
  const std::string path = fmt::format("{}/{}", folder.path(), kIndex);
  if (file->size() > kLongestIndex) {
    throw_format_error(path, "file", "has {} bytes, at most {}", file->size(), kLongestIndex);
  }
  const JsonFile json(path, text_of(*file));
  refuse_duplicate_keys(json);
  const JsonPlace map = json.root()["weight_map"];
  Shards shards;
  for (const auto& [tensor, shard] : map.object()) {
    const JsonPlace place(path, fmt::format("weight_map.{}", printable(tensor)), shard);
    const std::string_view name = place.string();
    folder.check_name(name);
    shards[std::string(name)].insert(std::string(tensor));
  }
  if (shards.empty()) map.fail("does not name any tensor");
  return shards;
}

// __metadata__.format says which framework wrote the file. TensorFlow and Flax store the matrices
// of linear layers transposed, so their files are refused.
void check_framework(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find("format");
  LIMPID_CHECK(UnsupportedError,
               format == metadata.end() || (format->second != "tf" && format->second != "flax"),
               "{}: __metadata__.format is `{}`; only PyTorch weights are read", path,
               format->second);
}

// The path of a shard that the index names.
std::string shard_path(const ModelFolder& folder, const std::string& name) {
  try {
    return folder.resolve(name);
  } catch (const ResourceError& error) {
    LIMPID_CHECK(ResourceError, folder.contains(name),
                 "{}/{} is missing, and {} names it: download it too", folder.path(), name, kIndex);
    throw ResourceError(fmt::format("{}, which {} names", error.what(), kIndex));
  }
}

// Opens each shard once and compares its tensors with the index: each tensor must be in the shard
// that the index names, and no shard may hold others.
void append_shards(Checkpoint& checkpoint, const ModelFolder& folder) {
  const std::string index = fmt::format("{}/{}", folder.path(), kIndex);
  const Shards shards = read_index(folder);
  for (const auto& [name, tensors] : shards) {
    const std::string path = shard_path(folder, name);
    const size_t n_before = checkpoint.tensor_order.size();
    check_framework(path, append_safetensors(checkpoint, path));
    const auto fail = [&, &file = name](const std::string& tensor, std::string_view verb,
                                        std::string_view what) {
      throw_format_error(index, fmt::format("weight_map.{}", printable(tensor)),
                         "{} {}, which {} the tensor", verb, file, what);
    };
    std::set<std::string> missing = tensors;
    for (size_t i = n_before; i < checkpoint.tensor_order.size(); ++i) {
      const std::string& tensor = checkpoint.tensor_order[i];
      if (missing.erase(tensor) == 0) fail(tensor, "does not name", "holds");
    }
    if (!missing.empty()) fail(*missing.begin(), "names", "does not hold");
  }
}

// Refuses a folder without safetensors weights, and says which weights it has instead.
[[noreturn]] void refuse_without_weights(const ModelFolder& folder) {
  for (const std::string_view name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    LIMPID_CHECK(UnsupportedError, !folder.contains(name),
                 "{} holds its weights as {}, which is not read; most models are published as "
                 "{} too",
                 folder.path(), name, kSingle);
  }
  throw ResourceError(fmt::format("{} has {} but neither {} nor {}; download the weights too",
                                  folder.path(), kConfig, kSingle, kIndex));
}

// The settings become metadata. The other files are only mapped; their readers parse them.
void read_settings(Checkpoint& checkpoint, const ModelFolder& folder) {
  const auto read = [&](const ModelFolder& from, std::string_view name, const std::string& prefix) {
    const auto file = from.open(name);
    add_json(fmt::format("{}/{}", from.path(), name), text_of(*file), prefix, checkpoint.metadata);
  };
  read(folder, kConfig, "config.");
  if (folder.contains(kGenerationConfig)) read(folder, kGenerationConfig, "generation_config.");
  if (folder.contains(kPooling)) read(ModelFolder(folder.resolve(kPooling)), kConfig, "pooling.");
  LIMPID_CHECK(UnsupportedError, !folder.contains(kDense),
               "{} has {}, a matrix after pooling, which is not implemented", folder.path(),
               kDense);
  attach_files(folder, checkpoint);
}

}  // namespace

// Without `weights`, the folder's own names decide: first model.safetensors, then the index.
Checkpoint open_hugging_face_folder(const std::string& path, const std::string& weights) {
  const ModelFolder folder(path);
  LIMPID_CHECK(ResourceError, folder.contains(kConfig), "{} has no {}; download it too", path,
               kConfig);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "Hugging Face, safetensors";
  checkpoint.naming = Naming::kHuggingFace;
  checkpoint.row_order = RowOrder::kHalfSplit;
  read_settings(checkpoint, folder);
  const std::string single = weights.empty() ? std::string(kSingle) : weights;
  if (single != kIndex && folder.contains(single)) {
    check_framework(path, append_safetensors(checkpoint, folder.resolve(single)));
  } else if (folder.contains(kIndex)) {
    append_shards(checkpoint, folder);
    checkpoint.format += fmt::format(" in {} shards", checkpoint.files.size());
  } else {
    refuse_without_weights(folder);
  }
  return checkpoint;
}

void attach_files(const ModelFolder& folder, Checkpoint& checkpoint) {
  const auto attach = [&](std::string_view name) {
    if (folder.contains(name)) checkpoint.attachments[std::string(name)] = folder.open(name);
  };
  std::ranges::for_each(kTokenizerFiles, attach);
  attach(kConfig);
  attach(kGenerationConfig);  // defaults of sampling
  // A rank file may have any name (cl100k_base.tiktoken); of several, none is used.
  if (const auto ranks = folder.only_name_ending(".tiktoken"))
    checkpoint.attachments[*ranks] = folder.open(*ranks);
  // Named templates have a folder of their own.
  if (!is_folder(fs::path(folder.path()) / kTemplates)) return;
  const ModelFolder templates(folder.resolve(kTemplates));
  for (const fs::path& entry : entries_of(templates.path())) {
    const std::string name = entry.filename().string();
    if (name.ends_with(".jinja"))
      checkpoint.attachments[fmt::format("{}{}", kNamedTemplates, name)] = templates.open(name);
  }
}

Checkpoint open_hugging_face_file(const std::string& path) {
  const std::string parent = folder_of(path).string();
  const std::string name = fs::path(path).filename().string();
  const ModelFolder folder(parent);
  if (name != kSingle && folder.contains(kIndex) && read_index(folder).contains(name))
    return open_hugging_face_folder(parent, std::string(kIndex));
  return open_hugging_face_folder(parent, name);
}

bool looks_like_hugging_face(const fs::path& folder) { return is_there(folder / kConfig); }

}  // namespace limpid
