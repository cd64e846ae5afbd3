// For tests/checkpoint/test_gguf.py: what Limpid's reader sees in a checkpoint, and what its writer
// makes of it.
//   gguf_tool dump FILE        one JSON object: format, metadata (type and value), tensors (type,
//   shape, bytes in hex
//                              or, above 64 KiB, their FNV-1a hash)
//   gguf_tool copy FILE NEW    reads FILE, writes NEW
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

nlohmann::json to_json(const MetadataValue& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MetadataValue::Array>) {
          nlohmann::json items = nlohmann::json::array();
          for (const MetadataValue& item : held) items.push_back(to_json(item));
          return items;
        } else {
          return held;
        }
      },
      value.value);
}

std::string content(const TensorView& view) {
  const uint64_t n_bytes = view.n_bytes();
  std::string hex;
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < n_bytes; ++i) {
    const auto byte = static_cast<unsigned>(view.data[i]);
    if (n_bytes <= 65536) hex += fmt::format("{:02x}", byte);
    hash = (hash ^ byte) * 0x100000001b3;
  }
  return n_bytes <= 65536 ? hex : fmt::format("fnv1a:{:016x}", hash);
}

void dump(const Checkpoint& checkpoint) {
  nlohmann::json out = {{"format", checkpoint.format}};
  for (const auto& [key, value] : checkpoint.metadata.all()) {
    out["metadata"][key] = {{"type", value.type_name}, {"value", to_json(value)}};
  }
  for (const std::string& name : checkpoint.tensor_order) {
    const TensorView& view = *checkpoint.find(name);
    const auto dims = view.shape.dims();
    out["tensors"].push_back({{"name", name},
                              {"type", std::string(dtype_info(view.dtype).name)},
                              {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                              {"content", content(view)}});
  }
  std::cout << out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void copy(const Checkpoint& checkpoint, const std::string& path) {
  std::vector<NamedTensor> tensors;
  for (const std::string& name : checkpoint.tensor_order)
    tensors.push_back({name, *checkpoint.find(name)});
  write_gguf(path, checkpoint.metadata, tensors);
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "dump" && argc == 3) {
      limpid::dump(limpid::open_checkpoint(argv[2]));
    } else if (command == "copy" && argc == 4) {
      limpid::copy(limpid::open_checkpoint(argv[2]), argv[3]);
    } else {
      std::fputs("usage: gguf_tool dump FILE | gguf_tool copy FILE NEW\n", stderr);
      return 2;
    }
  } catch (const limpid::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
