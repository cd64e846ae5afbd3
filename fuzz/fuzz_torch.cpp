// The readers of PyTorch's archives and pickles on any bytes: see
// tests/checkpoint/untrusted_check.h for what must hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/untrusted_check.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

namespace torch = limpid::torch_test;

// A state dictionary of one tensor whose sizes, strides and offset are small, or at an edge of some
// width. Mutated bytes hardly ever make several such numbers at once.
class TensorMaker {
 public:
  explicit TensorMaker(unsigned seed) : random_(seed) {}

  std::string pickle() {
    torch::TensorSketch tensor;
    const uint64_t rank = below(10);
    tensor.sizes = numbers(rank);
    tensor.strides = numbers(below(8) == 0 ? below(10) : rank);
    if (below(2) == 0) tensor.offset = number();
    // A dictionary without one tensor that can be read is refused early.
    return torch::kProto + "}(" + torch::text("w") + serialize(torch::TensorSketch{}) +
           torch::text("v") + serialize(tensor) + "u.";
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }

  std::string number() {
    static constexpr int kWidths[] = {8, 15, 16, 31, 32, 61, 62, 63};
    if (below(2) == 0) return torch::long_integer(static_cast<int64_t>(below(4)));
    const auto edge = uint64_t{1} << kWidths[below(std::size(kWidths))];
    return torch::long_integer(static_cast<int64_t>(edge + below(3) - 1));
  }

  std::string numbers(uint64_t n) {
    std::string items;
    for (uint64_t i = 0; i < n; ++i) items += number();
    return "(" + items + "t";
  }

  std::mt19937_64 random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 4 != 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string input = '\1' + TensorMaker(seed).pickle();
  const size_t n_bytes = std::min(input.size(), max_size);
  std::memcpy(data, input.data(), n_bytes);
  return n_bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string archive = limpid::torch_archive_of({reinterpret_cast<const char*>(data), size});
  // Exactly as large as it is, so that a read beyond it is seen.
  const auto bytes = std::as_bytes(std::span(archive));
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  if (limpid::check_torch(copy) == limpid::Verdict::kBroken) std::abort();
  return 0;
}
