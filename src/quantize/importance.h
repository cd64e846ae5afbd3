// Importance matrices: for each matrix of a model, how large the activations are that meet each of
// its columns. Errors in columns that meet large ones cost more.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

class Importance {
 public:
  // Reads what llama.cpp's imatrix tool writes: GGUF, or the older .dat. Throws FormatError,
  // ResourceError.
  static Importance open(const std::string& path);

  // The mean square of the activation in each column of the tensor, or nothing when it was not
  // measured. Throws ShapeError when the number of columns is another.
  std::span<const float> columns_of(std::string_view name, int64_t n_cols) const;

  bool empty() const { return columns_.empty(); }
  size_t size() const { return columns_.size(); }

 private:
  std::map<std::string, std::vector<float>, std::less<>> columns_;
};

}  // namespace limpid
