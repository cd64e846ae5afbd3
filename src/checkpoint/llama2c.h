// The files of llama2.c (https://github.com/karpathy/llama2.c): the legacy `.bin` (no magic
// number), version 1 ("ak42"), both in f32, and the tokenizer file beside them.
// docs/formats/llama2c.md has the layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

// "ak42" as a little-endian number.
inline constexpr std::string_view kLlama2cMagic = "24ka";

// Whether a file without a magic number begins with a plausible legacy header.
bool looks_like_llama2c_legacy(std::span<const std::byte> bytes);

// Presents the model as a GGUF checkpoint of architecture "llama": the same metadata keys and
// tensor names. Both formats keep the rows of Q and K in interleaved pairs, so no row moves.
// `output.weight` is absent when the model uses the embedding as its output matrix. Views point
// into `bytes`. Throws FormatError, and UnsupportedError for the quantised version 2.
Checkpoint parse_llama2c(const std::string& path, std::span<const std::byte> bytes);

// Adds the vocabulary as `tokenizer.ggml.*` keys of model "llama" (SentencePiece BPE). Throws
// FormatError, also when the file does not hold exactly `vocab_size` tokens.
void parse_llama2c_tokenizer(const std::string& path, std::span<const std::byte> bytes,
                             int64_t vocab_size, Metadata& metadata);

// Opens the model and its tokenizer: `tokenizer_path` or, when that is empty, tok<vocab_size>.bin
// or tokenizer.bin beside the model if there is one. Throws ResourceError too.
Checkpoint open_llama2c(const std::string& path, const std::string& tokenizer_path);

}  // namespace limpid
