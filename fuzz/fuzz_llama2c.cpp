// The llama2.c readers on any bytes. The first byte chooses: even the model, odd the tokenizer of
// 262 tokens.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "checkpoint/llama2c_builder.h"
#include "checkpoint/untrusted_check.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// A whole model of random small sizes, then one number of its header made odd: exact sizes are
// never hit blindly.
std::string random_model(std::mt19937& random) {
  const auto from_1_to = [&](int n) {
    return static_cast<int32_t>(1 + random() % static_cast<unsigned>(n));
  };
  limpid::llama2c_test::Sizes sizes;
  sizes.n_kv_heads = from_1_to(2);
  sizes.n_heads = sizes.n_kv_heads * from_1_to(2);
  sizes.dim = sizes.n_heads * 2 * from_1_to(2);
  sizes.hidden_dim = from_1_to(6);
  sizes.n_layers = from_1_to(2);
  sizes.vocab_size = from_1_to(5);
  sizes.seq_len = from_1_to(4);
  const bool tied = random() % 2 == 0;
  const bool legacy = random() % 2 == 0;
  std::string bytes = legacy ? limpid::llama2c_test::legacy_file(sizes, tied)
                             : limpid::llama2c_test::v1_file(sizes, tied);
  static constexpr int32_t kOdd[] = {0, -1, 1, 2, 3, INT32_MIN, INT32_MAX, 1 << 20, 1 << 24, 4096};
  if (random() % 4 != 0) {
    const size_t place = 4 * (random() % 10);
    std::memcpy(bytes.data() + std::min(place, bytes.size() - 4), &kOdd[random() % std::size(kOdd)],
                4);
  }
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 8));
  return '\0' + bytes;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 4 != 0) return LLVMFuzzerMutate(data, size, max_size);
  std::mt19937 random(seed);
  const std::string bytes = random_model(random);
  const size_t n_bytes = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), n_bytes);
  return n_bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Copied, so that the floats behind the first byte are aligned as they are in a mapped file.
  const std::vector<uint8_t> rest(data + 1, data + size);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(rest));
  const limpid::Verdict verdict =
      data[0] % 2 == 0 ? limpid::check_llama2c(bytes)
                       : limpid::check_llama2c_tokenizer(bytes, limpid::llama2c_test::kTokens);
  if (verdict == limpid::Verdict::kBroken) std::abort();
  return 0;
}
