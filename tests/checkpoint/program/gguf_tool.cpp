// For tests/checkpoint/test_gguf.py and test_torch.py: what Limpid's reader sees in a checkpoint,
// and what its writers make of it.
//   gguf_tool dump FILE        one JSON object: format, metadata (type and value), tensors (type,
//   shape, bytes in hex
//                              or, above 64 KiB, their FNV-1a hash)
//   gguf_tool copy FILE NEW    reads FILE, writes NEW as GGUF
//   gguf_tool torch FILE NEW   reads FILE, writes NEW as PyTorch does
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/torch_writer.h"
#include "checkpoint/write_gguf.h"
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
    Tensor storage;
    const TensorView view = checkpoint.read(name, storage);
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
  testing::write_gguf(path, checkpoint.metadata, tensors);
}

void copy_as_torch(const Checkpoint& checkpoint, const std::string& path) {
  std::vector<TorchEntry> entries;
  for (const std::string& name : checkpoint.tensor_order) {
    const TensorView& tensor = *checkpoint.find(name);
    entries.push_back({name, tensor.dtype, tensor.shape});
    for (size_t i = 0; i + 1 < entries.size() && tensor.data != nullptr; ++i) {
      const bool same = checkpoint.find(entries[i].name)->data == tensor.data &&
                        entries[i].same_as < 0 && tensor.n_bytes() > 0;
      if (same) entries.back().same_as = static_cast<int64_t>(i);
    }
  }
  TorchWriter writer(path, entries);
  for (const TorchEntry& entry : entries) {
    if (entry.same_as >= 0) continue;
    Tensor storage;
    const TensorView tensor = checkpoint.read(entry.name, storage);
    writer.write({tensor.data, static_cast<size_t>(tensor.n_bytes())});
  }
  writer.commit();
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
    } else if (command == "torch" && argc == 4) {
      limpid::copy_as_torch(limpid::open_checkpoint(argv[2]), argv[3]);
    } else {
      std::fputs("usage: gguf_tool dump FILE | copy FILE NEW | torch FILE NEW\n", stderr);
      return 2;
    }
  } catch (const limpid::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
