// Plans where the numbers of a FastModel are: all in one buffer, whose size is computed before it
// is allocated.
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "train/microgpt/fast_model.h"

namespace limpid::microgpt {

template <typename T>
class FastLayout {
 public:
  // Allocates for `shape` and up to `max_documents` documents at once, padded to `lanes`. All
  // numbers start as 0. Throws ResourceError.
  FastLayout(const Shape& shape, int64_t max_documents, int64_t lanes);

  FastModel<T>& model() { return model_; }
  const FastModel<T>& model() const { return model_; }
  // Returns the matrices in the order of Matrices::named.
  const std::vector<PaddedMatrix>& matrices() const { return matrices_; }

 private:
  // An array of the model and the number of its elements.
  struct Array {
    T** numbers;
    int64_t n;
  };
  void place_matrices(int64_t lanes);
  std::vector<Array> arrays(int64_t max_documents);

  FastModel<T> model_{};
  std::vector<FastLayer<T>> layers_;
  std::vector<PaddedMatrix> matrices_;
  AlignedBuffer buffer_;
};

}  // namespace limpid::microgpt
