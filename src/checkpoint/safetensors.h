// safetensors: the length of a JSON header (u64, little-endian), the header, the numbers.
// https://huggingface.co/docs/safetensors; docs/formats/safetensors.md
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

constexpr uint64_t kSafetensorsLongestHeader = 100'000'000;  // bytes, of the format itself

struct SafetensorsTensor {
  std::string name;
  TensorView view;           // into the bytes parsed; may lie at any address
  uint64_t data_offset = 0;  // in the file
};

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;  // __metadata__
  std::vector<SafetensorsTensor> tensors;       // in the order of their data
};

// Whether `bytes` begin as such a file does: a length and an opening brace.
bool looks_like_safetensors(std::span<const std::byte> bytes);

// Every rule of the format is held: header of at most 100 MB that begins with '{', keys once,
// UTF-8, whole numbers without a sign, tensors that fill the rest of the file without a hole or an
// overlap and are as long as dtype and shape say, nothing behind them. `path` is for messages.
// Throws FormatError with the offset and the field at fault, UnsupportedError for a dtype that
// Limpid has no name for (F8, U16, U32, U64, complex), more than 8 dimensions, or a field that the
// format does not have.
SafetensorsFile parse_safetensors(const std::string& path, std::span<const std::byte> bytes);

// Adds the tensors of `path`, mapped, to `checkpoint`; a tensor that does not lie at a multiple of
// its element's size is promised as a copy. Gives the file's __metadata__. Throws also FormatError
// for a name that is there already, ResourceError.
std::map<std::string, std::string> append_safetensors(Checkpoint& checkpoint,
                                                      const std::string& path);

// A single file as a state dictionary; __metadata__ below `safetensors.`.
Checkpoint open_safetensors(const std::string& path);

}  // namespace limpid
