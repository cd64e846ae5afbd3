// A trained model as a safetensors file: the matrices under the names of the Python program; the
// metadata hold the remaining settings.
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "train/microgpt/dataset.h"
#include "train/microgpt/parameters.h"

namespace limpid::microgpt {

// Everything that a file stores about a model.
struct SavedModel {
  Shape shape;
  Alphabet alphabet;
  std::vector<double> weights;  // in the order of Matrices
};

// Writes the weights as kF32 or kF64. The file appears only when it is complete. Throws
// ResourceError.
void save_model(const std::string& path, const SavedModel& model, DType type);

// Throws FormatError when the file is not such a model, ResourceError when it cannot be read.
SavedModel load_model(const std::string& path);

}  // namespace limpid::microgpt
