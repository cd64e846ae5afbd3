// safetensors: the length of a JSON header (u64, little-endian), the header, the data. A header:
//
//   {"__metadata__": {"format": "pt"},
//    "norm.weight": {"dtype": "BF16", "shape": [2048], "data_offsets": [0, 4096]}}
//
// Offsets count from the first byte after the header. https://huggingface.co/docs/safetensors;
// docs/formats/safetensors.md
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

constexpr uint64_t kSafetensorsLongestHeader = 100'000'000;  // bytes; the format's own limit

struct SafetensorsTensor {
  std::string name;
  TensorView view;           // into the parsed bytes; its address may be unaligned
  uint64_t data_offset = 0;  // in the file
};

// One parsed file.
struct SafetensorsFile {
  std::map<std::string, std::string> metadata;  // __metadata__
  std::vector<SafetensorsTensor> tensors;       // in the order of their data
};

// Whether `bytes` begin as such a file does: a plausible length, then an opening brace.
bool looks_like_safetensors(std::span<const std::byte> bytes);

// Parses a whole file in memory and enforces every rule of the format: the header has at most 100
// MB, begins with '{', is UTF-8 and repeats no key; sizes are whole numbers without a sign; each
// tensor is as long as its dtype and shape say; the tensors fill the rest of the file without a
// hole or an overlap, and nothing follows them. `path` is for messages. Throws FormatError, which
// names the offset and the field at fault, and UnsupportedError for a dtype that Limpid does not
// have (F8, U16, U32, U64, complex), more than 8 dimensions, or a field that is not part of the
// format.
SafetensorsFile parse_safetensors(const std::string& path, std::span<const std::byte> bytes);

// Maps the file `path` and adds its tensors to `checkpoint`. A tensor whose address is not a
// multiple of its element's size becomes a derived tensor, copied when it is read. Returns the
// file's __metadata__. Throws as parse_safetensors does, FormatError for a name that is there
// already, and ResourceError.
std::map<std::string, std::string> append_safetensors(Checkpoint& checkpoint,
                                                      const std::string& path);

// Opens a single file as a state dictionary. __metadata__ becomes metadata below `safetensors.`.
Checkpoint open_safetensors(const std::string& path);

}  // namespace limpid
