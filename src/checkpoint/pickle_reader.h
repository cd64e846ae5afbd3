// A pickle as data. It is a program for a stack machine; this machine knows the few instructions
// that torch.save writes for state dictionaries, and what they build are descriptions: nothing is
// imported, called or constructed. docs/formats/torch.md lists instructions and names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace limpid {

enum class PickleKind : uint8_t {
  kNone,
  kBool,     // integer: 0 or 1
  kInteger,  // integer
  kReal,     // real
  kString,   // text
  kTuple,    // items
  kList,     // items
  kDict,     // items: key, value, key, value, …; also an OrderedDict
  kGlobal,   // text: "torch FloatStorage"
  kStorage,  // text: the record's key; integer: elements; dtype
  kTensor,   // items: storage, offset, sizes, strides
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  DType dtype = DType::kF32;
  bool stored = false;  // in a container, and so final
  uint16_t depth = 0;   // of what is nested in it
  uint64_t offset = 0;  // of its instruction in the file
  int64_t integer = 0;
  double real = 0;
  std::string_view text;  // in the pickle's bytes
  std::vector<uint32_t> items;
};

// All values, each once, however often it is referred to. There are no cycles: a value is never
// part of itself.
struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Reads the pickle that is the record `name` of the file `path` and begins at its byte `offset`.
// Every FormatError and UnsupportedError names the byte of the file and the instruction or the
// global. `bytes` must outlive the result.
Pickle read_pickle(std::string_view path, std::string_view name, uint64_t offset,
                   std::span<const std::byte> bytes);

}  // namespace limpid
