// Mutates GGUF files by their fields: bytes -> sketch -> one or more changes -> bytes. Blind
// mutation dies at the first length; this reaches what lies behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "checkpoint/gguf_builder.h"

namespace limpid::fuzz {

// As much of `bytes` as makes sense: a sketch for any input, valid or not.
gguf_test::GgufSketch parse_sketch(std::string_view bytes);

// Changes the file in `data` [size] in place; the result has at most `max_size` bytes. Returns its
// size. What a libFuzzer target calls from its custom mutator.
size_t mutate_gguf(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace limpid::fuzz
