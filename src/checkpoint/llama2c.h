// The files of llama2.c: legacy `.bin` (no magic) and version 1 ("ak42"), f32, and the tokenizer
// file beside them. docs/formats/llama2c.md has the layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// "ak42"; stored little-endian, so a file begins "24ka".
inline constexpr uint32_t kLlama2cMagic = 0x616b3432;

// Whether a file without magic begins with a plausible legacy header.
bool looks_like_llama2c_legacy(std::span<const std::byte> bytes);

// Presents the model as a GGUF checkpoint of architecture "llama": the same metadata keys and
// tensor names, Q and K rows in interleaved pairs as both formats have them. `output.weight` is
// absent when the embedding is tied. Views point into `bytes`. Throws FormatError, UnsupportedError
// (the quantised version 2).
Checkpoint parse_llama2c(const std::string& path, std::span<const std::byte> bytes);

// Adds the vocabulary as `tokenizer.ggml.*` keys of model "llama" (SentencePiece BPE). Throws
// FormatError; also when the file does not hold exactly `vocab_size` tokens.
void parse_llama2c_tokenizer(const std::string& path, std::span<const std::byte> bytes,
                             int64_t vocab_size, Metadata& metadata);

// Opens the model and its tokenizer: `tokenizer_path`, or else tok<vocab_size>.bin or tokenizer.bin
// beside the model when there is one. Throws also ResourceError.
Checkpoint open_llama2c(const std::string& path, const std::string& tokenizer_path);

}  // namespace limpid
