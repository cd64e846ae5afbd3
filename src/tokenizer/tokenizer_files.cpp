#include "tokenizer/tokenizer_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/error_text.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "base/paths.h"
#include "tokenizer/sentence_piece_model.h"
#include "tokenizer/tiktoken_file.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTiktoken = ".tiktoken";
constexpr std::string_view kRanks = "ranks.tiktoken";  // the usual name for any *.tiktoken

// Adds a file to `files` under its usual name, if the folder contains it.
void add_if_there(TokenizerFiles& files, const ModelFolder& folder, std::string_view prefix,
                  std::string_view name) {
  const std::string file_name = fmt::format("{}{}", prefix, name);
  if (files.count(name) == 0 && is_file(fs::path(folder.path()) / file_name))
    files.emplace(name, folder.open(file_name));
}

// Returns the usual name of a file that defines a tokenizer, and the prefix of its name on disk.
std::pair<std::string_view, std::string_view> usual_name(std::string_view file_name) {
  for (size_t i = 0; i < kDefiningFiles; ++i) {
    if (file_name.ends_with(kTokenizerFiles[i]))
      return {kTokenizerFiles[i],
              file_name.substr(0, file_name.size() - kTokenizerFiles[i].size())};
  }
  if (file_name.ends_with(kTiktoken))
    return {kRanks, file_name.substr(0, file_name.size() - kTiktoken.size())};
  return {};
}

// Whether the file is a half of GPT-2's pair: without the other one it is not a tokenizer.
bool needs_merges(std::string_view name) { return name == "vocab.json" || name == "encoder.json"; }

// A tokenizer.json under any other name. Its parts are all in one file, so nothing beside it
// belongs to it. The configuration of a model has no vocabulary, and the index of one has no
// "model".
TokenizerFiles find_renamed(const std::string& path) {
  if (!path.ends_with(".json")) return {};
  auto file = MappedFile::open(path);
  const std::string_view text = text_of(*file);
  for (const std::string_view key : {"\"model\"", "\"vocab\""}) {
    if (text.find(key) == text.npos) return {};
  }
  return {{std::string(kTokenizerFiles[0]), std::move(file)}};
}

const MappedFile* find(const TokenizerFiles& files, std::string_view name) {
  const auto it = files.find(name);
  return it == files.end() ? nullptr : it->second.get();
}

const MappedFile* find_ranks(const TokenizerFiles& files) {
  for (const auto& [name, file] : files) {
    if (name.ends_with(kTiktoken)) return file.get();
  }
  return nullptr;
}

TokenizerConfig read_config(const TokenizerFiles& files) {
  TokenizerConfig config;
  if (const MappedFile* file = find(files, "tokenizer_config.json"))
    config = read_tokenizer_config(file->path(), text_of(*file));
  if (const MappedFile* file = find(files, "special_tokens_map.json"))
    add_special_tokens_map(file->path(), text_of(*file), config);
  const MappedFile* added = find(files, "added_tokens.json");
  if (added != nullptr && find(files, "tokenizer.json") == nullptr)
    add_added_tokens(added->path(), text_of(*added), config);
  return config;
}

// Reads GPT-2's two files. The configuration may name a class that reads them differently.
TokenizerSpec read_halves(const TokenizerFiles& files, const TokenizerConfig& config) {
  const MappedFile* vocab = find(files, "vocab.json");
  if (vocab == nullptr) vocab = find(files, "encoder.json");
  const MappedFile* merges = find(files, "merges.txt");
  if (merges == nullptr) merges = find(files, "vocab.bpe");
  if (merges == nullptr) {
    throw_format_error(vocab->path(), "file",
                       "has no merges.txt beside it; a vocabulary alone cannot form tokens");
  }
  LIMPID_CHECK(UnsupportedError, !config.add_prefix_space,
               "{}: add_prefix_space: a space before every text is not supported", config.file);
  TokenizerSpec spec = vocab == nullptr ? read_merges_alone(merges->path(), text_of(*merges))
                                        : read_vocab_and_merges(vocab->path(), text_of(*vocab),
                                                                merges->path(), text_of(*merges));
  std::string_view name = config.tokenizer_class;
  if (name.ends_with("Fast")) name.remove_suffix(4);
  const bool is_qwen2 = name == "Qwen2Tokenizer";
  LIMPID_CHECK(UnsupportedError, is_qwen2 || name.empty() || name == "GPT2Tokenizer",
               "{}: unknown tokenizer_class '{}' for vocab.json and merges.txt; give its "
               "tokenizer.json",
               config.file, config.tokenizer_class);
  if (is_qwen2) spec.pre_tokenizer = PreTokenizer::kQwen2;
  spec.normalize_nfc = is_qwen2;
  return spec;
}

}  // namespace

// A folder is searched by usual names; a single file by its prefix.
TokenizerFiles find_tokenizer_files(const std::string& path) {
  TokenizerFiles files;
  if (is_folder(path)) {
    const ModelFolder folder(path);
    for (const std::string_view name : kTokenizerFiles) add_if_there(files, folder, "", name);
    if (const auto ranks = folder.only_name_ending(kTiktoken))
      files.emplace(kRanks, folder.open(*ranks));
    return files;
  }
  const std::string file_name = fs::path(path).filename().string();
  const auto [name, prefix] = usual_name(file_name);
  if (name.empty()) return find_renamed(path);
  files.emplace(name, MappedFile::open(path));
  const ModelFolder folder(folder_of(path).string());
  // A second tokenizer beside the named file is not part of it, but the two files of GPT-2 belong
  // together.
  for (size_t i = needs_merges(name) ? kFirstMergesFile : kDefiningFiles;
       i < kTokenizerFiles.size(); ++i)
    add_if_there(files, folder, prefix, kTokenizerFiles[i]);
  return files;
}

bool has_tokenizer(const TokenizerFiles& files) {
  return find_ranks(files) != nullptr ||
         std::any_of(kTokenizerFiles.begin(), kTokenizerFiles.begin() + kDefiningFiles,
                     [&](std::string_view name) { return files.count(name) != 0; });
}

bool is_tokenizer_file(std::string_view name) {
  return name.ends_with(kTiktoken) ||
         std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end();
}

std::string defining_file(const TokenizerFiles& files) {
  std::string path;
  for (size_t i = 0; i < kDefiningFiles; ++i) {
    const std::string_view name = kTokenizerFiles[i];
    const MappedFile* file = find(files, name);
    if (file == nullptr || (needs_merges(name) && !path.empty())) continue;
    path += (path.empty() ? "" : " with ") + file->path();
    if (!needs_merges(name)) break;
  }
  const MappedFile* ranks = find_ranks(files);  // may be under another name in a checkpoint
  return path.empty() && ranks != nullptr ? ranks->path() : path;
}

const MappedFile* find_rank_file(const TokenizerFiles& files) {
  if (find(files, "tokenizer.json") != nullptr) return nullptr;
  const MappedFile* model = find(files, "tokenizer.model");
  if (model == nullptr) return find_ranks(files);
  return looks_like_tiktoken(text_of(*model)) ? model : nullptr;
}

TokenizerSpec tokenizer_spec_from(const TokenizerFiles& files, std::string_view encoding) {
  const TokenizerConfig config = read_config(files);
  TokenizerSpec spec;
  FrameRule frame = FrameRule::kOfConfig;
  if (const MappedFile* json = find(files, "tokenizer.json")) {
    spec = read_tokenizer_json(json->path(), text_of(*json));
    frame = FrameRule::kOfFile;
  } else if (const MappedFile* ranks = find_rank_file(files)) {
    spec = read_tiktoken(ranks->path(), text_of(*ranks), encoding);
  } else if (const MappedFile* model = find(files, "tokenizer.model")) {
    spec = read_sentence_piece_model(model->path(), text_of(*model));
  } else if (has_tokenizer(files)) {
    spec = read_halves(files, config);
  } else {
    throw UnsupportedError("the model's files contain no tokenizer");
  }
  apply_tokenizer_config(config, frame, spec);
  return spec;
}

std::shared_ptr<const Tokenizer> tokenizer_from(const TokenizerFiles& files,
                                                std::string_view encoding) {
  TokenizerSpec spec = tokenizer_spec_from(files, encoding);
  try {
    return Tokenizer::create(std::move(spec));
  } catch (const ArgumentError& error) {
    throw_format_error(defining_file(files), "tokenizer", "{}", without_part(error));
  }
}

}  // namespace limpid
