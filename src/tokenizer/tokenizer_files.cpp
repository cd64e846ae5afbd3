#include "tokenizer/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "limpid/error.hpp"
#include "tokenizer/tiktoken_file.h"
#include "tokenizer/tokenizer_json.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Those that define a tokenizer come first, the one that rules before the others.
constexpr std::array<std::string_view, 6> kNames = {
    "tokenizer.json",        "tokenizer.model",         "ranks.tiktoken",
    "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
};
constexpr size_t kDefining = 3;
constexpr std::string_view kRanks = "ranks.tiktoken";  // stands for any *.tiktoken

std::string_view bytes_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

void add_if_there(TokenizerFiles& files, const fs::path& folder, std::string_view prefix,
                  std::string_view name) {
  const fs::path path = folder / fmt::format("{}{}", prefix, name);
  std::error_code ignored;
  if (files.count(name) == 0 && fs::is_regular_file(path, ignored))
    files.emplace(name, MappedFile::open(path.string()));
}

// The one rank file of a folder; with more than one, none is the folder's.
void add_ranks(TokenizerFiles& files, const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path());
  }
  if (found.size() == 1) files.emplace(kRanks, MappedFile::open(found.front().string()));
}

// The usual name of a file that defines a tokenizer, and how its name on disk begins.
std::pair<std::string_view, std::string_view> usual_name(std::string_view file_name) {
  for (size_t i = 0; i < kDefining; ++i) {
    if (ends_with(file_name, kNames[i]))
      return {kNames[i], file_name.substr(0, file_name.size() - kNames[i].size())};
  }
  constexpr std::string_view kExtension = ".tiktoken";
  if (ends_with(file_name, kExtension))
    return {kRanks, file_name.substr(0, file_name.size() - kExtension.size())};
  return {};
}

}  // namespace

TokenizerFiles find_tokenizer_files(const std::string& path) {
  TokenizerFiles files;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const std::string_view name : kNames) add_if_there(files, path, "", name);
    add_ranks(files, path);
    return files;
  }
  const std::string file_name = fs::path(path).filename().string();
  const auto [name, prefix] = usual_name(file_name);
  if (name.empty()) return files;
  files.emplace(name, MappedFile::open(path));
  for (size_t i = kDefining; i < kNames.size(); ++i)
    add_if_there(files, fs::path(path).parent_path(), prefix, kNames[i]);
  return files;
}

bool has_tokenizer(const TokenizerFiles& files) {
  return std::any_of(kNames.begin(), kNames.begin() + kDefining,
                     [&](std::string_view name) { return files.count(name) != 0; });
}

TokenizerSpec tokenizer_spec_from(const TokenizerFiles& files, std::string_view encoding) {
  const auto find = [&](std::string_view name) -> const MappedFile* {
    const auto it = files.find(name);
    return it == files.end() ? nullptr : it->second.get();
  };
  if (const MappedFile* json = find("tokenizer.json"))
    return read_tokenizer_json(json->path(), bytes_of(*json));
  if (const MappedFile* model = find("tokenizer.model")) {
    if (looks_like_tiktoken(bytes_of(*model)))
      return read_tiktoken(model->path(), bytes_of(*model), encoding);
    throw UnsupportedError(model->path() + ": SentencePiece models are not supported");
  }
  if (const MappedFile* ranks = find(kRanks))
    return read_tiktoken(ranks->path(), bytes_of(*ranks), encoding);
  throw UnsupportedError("no tokenizer among the files of the model");
}

std::shared_ptr<const Tokenizer> tokenizer_from(const TokenizerFiles& files,
                                                std::string_view encoding) {
  TokenizerSpec spec = tokenizer_spec_from(files, encoding);
  try {
    return Tokenizer::create(std::move(spec));
  } catch (const ArgumentError& error) {
    throw FormatError(files.begin()->second->path(), FormatError::kNoOffset, "tokenizer",
                      error.what());
  }
}

}  // namespace limpid
