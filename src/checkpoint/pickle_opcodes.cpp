#include "checkpoint/pickle_opcodes.h"

#include <fmt/format.h>

#include <array>

namespace limpid {
namespace {

// An instruction and its name in CPython's pickletools, for messages.
struct OpcodeName {
  PickleOpcode opcode;
  std::string_view name;
};
constexpr std::array kOpcodeNames = {
    OpcodeName{PickleOpcode::kMark, "MARK"},
    OpcodeName{PickleOpcode::kStop, "STOP"},
    OpcodeName{PickleOpcode::kEmptyTuple, "EMPTY_TUPLE"},
    OpcodeName{PickleOpcode::kAppend, "APPEND"},
    OpcodeName{PickleOpcode::kBuild, "BUILD"},
    OpcodeName{PickleOpcode::kGlobal, "GLOBAL"},
    OpcodeName{PickleOpcode::kAppends, "APPENDS"},
    OpcodeName{PickleOpcode::kBinGet, "BINGET"},
    OpcodeName{PickleOpcode::kLongBinGet, "LONG_BINGET"},
    OpcodeName{PickleOpcode::kBinPut, "BINPUT"},
    OpcodeName{PickleOpcode::kLongBinPut, "LONG_BINPUT"},
    OpcodeName{PickleOpcode::kSetItem, "SETITEM"},
    OpcodeName{PickleOpcode::kTuple, "TUPLE"},
    OpcodeName{PickleOpcode::kSetItems, "SETITEMS"},
    OpcodeName{PickleOpcode::kBinFloat, "BINFLOAT"},
    OpcodeName{PickleOpcode::kBinInt, "BININT"},
    OpcodeName{PickleOpcode::kBinInt1, "BININT1"},
    OpcodeName{PickleOpcode::kBinInt2, "BININT2"},
    OpcodeName{PickleOpcode::kNone, "NONE"},
    OpcodeName{PickleOpcode::kBinPersId, "BINPERSID"},
    OpcodeName{PickleOpcode::kReduce, "REDUCE"},
    OpcodeName{PickleOpcode::kBinUnicode, "BINUNICODE"},
    OpcodeName{PickleOpcode::kEmptyList, "EMPTY_LIST"},
    OpcodeName{PickleOpcode::kEmptyDict, "EMPTY_DICT"},
    OpcodeName{PickleOpcode::kProto, "PROTO"},
    OpcodeName{PickleOpcode::kTuple1, "TUPLE1"},
    OpcodeName{PickleOpcode::kTuple2, "TUPLE2"},
    OpcodeName{PickleOpcode::kTuple3, "TUPLE3"},
    OpcodeName{PickleOpcode::kNewTrue, "NEWTRUE"},
    OpcodeName{PickleOpcode::kNewFalse, "NEWFALSE"},
    OpcodeName{PickleOpcode::kLong1, "LONG1"},
};

// PyTorch names the dtype of a storage by a class: a Char is an i8, a Short an i16, a Long an i64.
struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kStorageNames = {
    StorageName{"torch FloatStorage", DType::kF32},
    StorageName{"torch HalfStorage", DType::kF16},
    StorageName{"torch BFloat16Storage", DType::kBF16},
    StorageName{"torch DoubleStorage", DType::kF64},
    StorageName{"torch CharStorage", DType::kI8},
    StorageName{"torch ShortStorage", DType::kI16},
    StorageName{"torch IntStorage", DType::kI32},
    StorageName{"torch LongStorage", DType::kI64},
    StorageName{"torch ByteStorage", DType::kU8},
    StorageName{"torch BoolStorage", DType::kBool},
};

}  // namespace

std::string pickle_opcode_name(uint8_t byte) {
  for (const OpcodeName& known : kOpcodeNames) {
    if (static_cast<uint8_t>(known.opcode) == byte) return std::string(known.name);
  }
  return fmt::format("instruction {:#04x}", byte);
}

// Compares without building "module name", so that a long name in a file costs no memory.
std::string_view known_pickle_global(std::string_view module, std::string_view name) {
  const auto same = [&](std::string_view known) {
    return known.size() == module.size() + 1 + name.size() && known.starts_with(module) &&
           known[module.size()] == ' ' && known.ends_with(name);
  };
  for (const std::string_view known :
       {kPickleOrderedDict, kPickleRebuildTensor, kPickleRebuildParameter}) {
    if (same(known)) return known;
  }
  for (const StorageName& known : kStorageNames) {
    if (same(known.name)) return known.name;
  }
  return {};
}

std::optional<DType> pickle_storage_dtype(std::string_view global) {
  for (const StorageName& known : kStorageNames) {
    if (known.name == global) return known.dtype;
  }
  return std::nullopt;
}

std::optional<std::string_view> pickle_storage_name(DType dtype) {
  for (const StorageName& known : kStorageNames) {
    if (known.dtype == dtype) return known.name;
  }
  return std::nullopt;
}

}  // namespace limpid
