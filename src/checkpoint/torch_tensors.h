// From the storages and strides of a checkpoint of PyTorch to tensors.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/pickle_reader.h"
#include "checkpoint/zip_archive.h"

namespace limpid {

// An archive with its pickle read.
struct TorchArchive {
  std::string path;
  std::string root;  // the folder that all records are in, with its slash
  ZipArchive zip;
  Pickle pickle;
};

// Adds the tensor that the pickle's value `index` describes. Throws FormatError when it leaves its
// storage, or the storage is not what its record holds.
void add_torch_tensor(const TorchArchive& archive, uint32_t index, const std::string& name,
                      Checkpoint& checkpoint);

}  // namespace limpid
