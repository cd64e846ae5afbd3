// The instructions and names of Python's pickle that a checkpoint may use (CPython's pickletools
// describes them all), for its reader and its writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace limpid {

enum class PickleOpcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kEmptyTuple = ')',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
};

// "BINGET", or "instruction 0x93" for what is not among them.
std::string pickle_opcode_name(uint8_t byte);

// Module and name with a space between.
inline constexpr std::string_view kPickleOrderedDict = "collections OrderedDict";
inline constexpr std::string_view kPickleRebuildTensor = "torch._utils _rebuild_tensor_v2";
inline constexpr std::string_view kPickleRebuildParameter = "torch._utils _rebuild_parameter";

// One of these three or a storage's name, as a constant; "" for any other.
std::string_view known_pickle_global(std::string_view module, std::string_view name);

// "torch HalfStorage" -> kF16, and back.
std::optional<DType> pickle_storage_dtype(std::string_view global);
std::optional<std::string_view> pickle_storage_name(DType dtype);

}  // namespace limpid
