// Turns the storages and strides of a PyTorch checkpoint into tensors.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/pickle_reader.h"
#include "checkpoint/zip_archive.h"

namespace limpid {

// An archive whose pickle has been read.
struct TorchArchive {
  std::string path;
  std::string root;  // the folder of all records, with a slash at its end
  ZipArchive zip;
  Pickle pickle;
};

// Adds the tensor that the pickle's value `index` describes. Throws FormatError when the tensor
// reaches beyond its storage, or when the record of the storage has another size than the pickle
// says.
void add_torch_tensor(const TorchArchive& archive, uint32_t index, const std::string& name,
                      Checkpoint& checkpoint);

}  // namespace limpid
