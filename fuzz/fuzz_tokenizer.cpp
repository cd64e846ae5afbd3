// The readers of tokenizer files on any bytes: j tokenizer.json, r tiktoken ranks, s a
// SentencePiece model, m merges.txt (the first byte), and behind a NUL a tokenizer_config.json.
// What is accepted encodes a text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/untrusted_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (limpid::check_untrusted_tokenizer(input) == limpid::TokenizerVerdict::kBroken) std::abort();
  return 0;
}
