// The instructions and names of Python's pickle format that a checkpoint may use, for the reader
// and the writer. CPython's pickletools.py documents all instructions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

// The instructions that torch_writer.cpp writes. The letters are the format's own; the table in
// pickle_reader.cpp has all that are read.
enum class PickleOpcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kEmptyTuple = ')',
  kGlobal = 'c',
  kTuple = 't',
  kSetItems = 'u',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
};

// The functions and classes that a checkpoint may name: module and name with a space between them.
inline constexpr std::string_view kPickleOrderedDict = "collections OrderedDict";
inline constexpr std::string_view kPickleRebuildTensor = "torch._utils _rebuild_tensor_v2";
inline constexpr std::string_view kPickleRebuildParameter = "torch._utils _rebuild_parameter";

// PyTorch names the dtype of a storage by a class: a Char is an i8, a Short an i16, a Long an i64.
struct PickleStorage {
  std::string_view name;
  DType dtype;
};
inline constexpr std::array kPickleStorages = {
    PickleStorage{"torch FloatStorage", DType::kF32},
    PickleStorage{"torch HalfStorage", DType::kF16},
    PickleStorage{"torch BFloat16Storage", DType::kBF16},
    PickleStorage{"torch DoubleStorage", DType::kF64},
    PickleStorage{"torch CharStorage", DType::kI8},
    PickleStorage{"torch ShortStorage", DType::kI16},
    PickleStorage{"torch IntStorage", DType::kI32},
    PickleStorage{"torch LongStorage", DType::kI64},
    PickleStorage{"torch ByteStorage", DType::kU8},
    PickleStorage{"torch BoolStorage", DType::kBool},
};

// Returns one of these three or the name of a storage class, as a constant; "" for any other name.
// This list of allowed names makes reading a pickle safe. Compares without building "module name",
// so that a long name in a file costs no memory.
inline std::string_view known_pickle_global(std::string_view module, std::string_view name) {
  const auto same = [&](std::string_view known) {
    return known.size() == module.size() + 1 + name.size() && known.starts_with(module) &&
           known[module.size()] == ' ' && known.ends_with(name);
  };
  for (const std::string_view known :
       {kPickleOrderedDict, kPickleRebuildTensor, kPickleRebuildParameter}) {
    if (same(known)) return known;
  }
  for (const PickleStorage& known : kPickleStorages) {
    if (same(known.name)) return known.name;
  }
  return {};
}

// The dtype of a storage class ("torch HalfStorage" -> kF16), and the class of a dtype.
inline std::optional<DType> pickle_storage_dtype(std::string_view global) {
  const auto* found = std::ranges::find(kPickleStorages, global, &PickleStorage::name);
  return found == kPickleStorages.end() ? std::nullopt : std::optional(found->dtype);
}

inline std::optional<std::string_view> pickle_storage_name(DType dtype) {
  const auto* found = std::ranges::find(kPickleStorages, dtype, &PickleStorage::dtype);
  return found == kPickleStorages.end() ? std::nullopt : std::optional(found->name);
}

}  // namespace limpid
