#include "checkpoint/pickle_opcodes.h"

#include <array>

namespace limpid {
namespace {

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
