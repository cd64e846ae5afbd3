// A folder whose files are opened by name. Names may come from an untrusted file, so neither a name
// nor a link can lead out of the folder.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace limpid {

// The usual names of the files from which a tokenizer and its chat templates are read. The first
// kDefiningFiles define a tokenizer, the last two of them (merges) together with a file before
// them; the others supplement one.
inline constexpr std::array<std::string_view, 12> kTokenizerFiles = {
    "tokenizer.json",    "tokenizer.model",       "ranks.tiktoken",
    "vocab.json",        "encoder.json",          "merges.txt",
    "vocab.bpe",         "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja",   "chat_template.json",
};
inline constexpr size_t kDefiningFiles = 7;
inline constexpr size_t kFirstMergesFile = 5;

// The folder of named chat templates in a model's folder.
inline constexpr std::string_view kNamedTemplates = "additional_chat_templates/";

// The folder of one model.
class ModelFolder {
 public:
  // Throws ResourceError when `path` cannot be resolved.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }

  // Whether the folder has an entry of that name. A dangling link counts.
  bool contains(std::string_view name) const;
  // The name of the only entry that ends with `ending` (".tiktoken"); nothing if there are several.
  std::optional<std::string> only_name_ending(std::string_view ending) const;
  // Throws FormatError for a name with a separator or NUL, and for `.` and `..`.
  void check_name(std::string_view name) const;
  // Returns the real path of `name`, with links resolved. A link may lead to another place in the
  // folder. When the folder is a snapshot in Hugging Face's cache (…/snapshots/REVISION), or
  // a folder in one, a link may also lead into the folder `blobs` beside `snapshots`, where that
  // cache keeps its files. Throws FormatError as check_name does and for a link that leads
  // elsewhere; ResourceError for a missing file.
  std::string resolve(std::string_view name) const;
  std::shared_ptr<const MappedFile> open(std::string_view name) const;

 private:
  std::string path_;   // as given
  std::string real_;   // with links resolved
  std::string blobs_;  // the cache's folder of files; empty outside a snapshot
};

}  // namespace limpid
