// Reads a Python pickle as data, without Python's risks.
//
// A pickle is a program for a stack machine. Python's machine can import and call any function, so
// a hostile file can run any code. This machine knows only the instructions that torch.save writes
// for state dictionaries. What they build are descriptions, PickleValues: nothing is imported,
// called or constructed. {"bias": 3} in protocol 2 and the stack after each instruction:
//
//   EMPTY_DICT         {}
//   MARK               {} |
//   BINUNICODE "bias"  {} | "bias"
//   BININT1 3          {} | "bias" 3
//   SETITEMS           {"bias": 3}
//   STOP               the value on the stack is the result
//
// docs/formats/torch.md lists the instructions and the allowed names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace limpid {

// What a value is, and which members of PickleValue hold it.
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

// One value that the pickle builds. Containers hold indices into Pickle::values.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  DType dtype = DType::kF32;
  bool stored = false;  // part of a container, so it may not change any more
  uint16_t depth = 0;   // how many levels of containers it holds
  uint64_t offset = 0;  // in the file, of the instruction that made it
  int64_t integer = 0;
  double real = 0;
  std::string_view text{};  // a view into the pickle's bytes
  std::vector<uint32_t> items{};
};

// All values of a pickle. Each is listed once, however many containers refer to it. There are no
// cycles: a value never contains itself.
struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Reads the pickle in `bytes`: the record `name` of the file `path`, which begins at byte `offset`
// of the file. Every FormatError and UnsupportedError names the byte of the file and the
// instruction or the name at fault. `bytes` must outlive the result.
Pickle read_pickle(std::string_view path, std::string_view name, uint64_t offset,
                   std::span<const std::byte> bytes);

}  // namespace limpid
