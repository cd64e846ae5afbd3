#include "tokenizer/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "limpid/error.hpp"
#include "tokenizer/tokenizer_json.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Those that define a tokenizer come first.
constexpr std::array<std::string_view, 4> kNames = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
};
constexpr size_t kDefining = 1;

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

}  // namespace

TokenizerFiles find_tokenizer_files(const std::string& path) {
  TokenizerFiles files;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const std::string_view name : kNames) add_if_there(files, path, "", name);
    return files;
  }
  const std::string file_name = fs::path(path).filename().string();
  const auto own = std::find_if(kNames.begin(), kNames.begin() + kDefining,
                                [&](std::string_view name) { return ends_with(file_name, name); });
  if (own == kNames.begin() + kDefining) return files;
  files.emplace(*own, MappedFile::open(path));
  const std::string_view prefix =
      std::string_view(file_name).substr(0, file_name.size() - own->size());
  for (const std::string_view name : kNames)
    add_if_there(files, fs::path(path).parent_path(), prefix, name);
  return files;
}

bool has_tokenizer(const TokenizerFiles& files) {
  return std::any_of(kNames.begin(), kNames.begin() + kDefining,
                     [&](std::string_view name) { return files.count(name) != 0; });
}

TokenizerSpec tokenizer_spec_from(const TokenizerFiles& files) {
  if (const auto json = files.find("tokenizer.json"); json != files.end())
    return read_tokenizer_json(json->second->path(), bytes_of(*json->second));
  throw UnsupportedError("no tokenizer among the files of the model");
}

std::shared_ptr<const Tokenizer> tokenizer_from(const TokenizerFiles& files) {
  TokenizerSpec spec = tokenizer_spec_from(files);
  try {
    return Tokenizer::create(std::move(spec));
  } catch (const ArgumentError& error) {
    throw FormatError(files.begin()->second->path(), FormatError::kNoOffset, "tokenizer",
                      error.what());
  }
}

}  // namespace limpid
