// The names of the files of a model that is split over several GGUF files:
// NAME-00001-of-00003.gguf, NAME-00002-of-00003.gguf, NAME-00003-of-00003.gguf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

struct GgufPart {
  std::string base;     // NAME, with the folder if the name has one
  uint32_t number = 1;  // from 1 to `count`
  uint32_t count = 1;

  std::string name() const;
};

// What the name of a file, or its path, says; nothing for the name of a model in one file.
std::optional<GgufPart> parse_gguf_part(std::string_view name);

// Whether the name, or the path, is that of a file by which a model is opened: a .gguf, of a model
// in parts the first one, and not the vision part of a model (mmproj).
bool is_gguf_of_model(std::string_view path);

// The names of all files of the model that has the file `name`, the first part first: `name` alone
// for a model in one file.
std::vector<std::string> all_gguf_parts(const std::string& name);

}  // namespace limpid
