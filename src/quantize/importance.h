// Importance matrices: for each matrix of a model and each of its columns, the mean square of the
// activations that the column is multiplied with.
//
// A product is sum_j w_j x_j. If quantisation changes w_j by e_j, the square of the product's error
// is on average about sum_j e_j^2 * mean(x_j^2). An error in a column with large activations
// therefore costs more, and the quantiser weights its search by these values.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

class Importance {
 public:
  // Reads the files of llama.cpp's imatrix tool: GGUF, or the older .dat. Throws FormatError,
  // ResourceError.
  static Importance open(const std::string& path);

  // Returns the mean square of the activation in each column of the tensor, or an empty span if
  // the file does not have the tensor. Throws ShapeError if the number of columns differs.
  std::span<const float> columns_of(std::string_view name, int64_t n_cols) const;

  bool contains(std::string_view name) const { return columns_.contains(name); }
  const std::string& path() const { return path_; }  // of the file
  bool empty() const { return columns_.empty(); }

 private:
  std::string path_;
  std::map<std::string, std::vector<float>, std::less<>> columns_;
};

}  // namespace limpid
