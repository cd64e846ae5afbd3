// Mutates GGUF files by their fields: bytes -> sketch -> one or more changes -> bytes. Blind
// mutation dies at the first length; this reaches what lies behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "checkpoint/gguf_builder.h"

namespace limpid::fuzz {

// As much of `bytes` as makes sense: a sketch for any input, valid or not.
gguf_test::GgufSketch parse_sketch(std::string_view bytes);

// Changes the file in `data` [size] in place; the result has at most `max_size` bytes. Returns its
// size. What a libFuzzer target calls from its custom mutator.
size_t mutate_gguf(uint8_t* data, size_t size, size_t max_size, unsigned seed);

class GgufMutator {
 public:
  explicit GgufMutator(unsigned seed) : random_(seed) {}

  void mutate(gguf_test::GgufSketch& sketch);

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  uint64_t odd_number();  // small, or at an edge of some width

  void mutate_header(gguf_test::GgufSketch& sketch);
  void mutate_key(gguf_test::GgufSketch& sketch);
  void mutate_value(gguf_test::GgufSketch& sketch);
  void mutate_tensor(gguf_test::GgufSketch& sketch);
  void mutate_lists(gguf_test::GgufSketch& sketch);
  void mutate_data(gguf_test::GgufSketch& sketch);
  // Makes counts, offsets and data fit again, so that other faults are reached.
  void repair(gguf_test::GgufSketch& sketch);

  std::mt19937_64 random_;
};

}  // namespace limpid::fuzz
