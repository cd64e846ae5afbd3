// Reads tiktoken's rank files (Meta's tokenizer.model of Llama 3, OpenAI's *.tiktoken).
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// A rank file contains only lines "base64-of-the-bytes rank". The regular expression that cuts the
// text and the special tokens are in the program that reads the file; `encoding` names them:
//   r50k_base (or gpt2), p50k_base, cl100k_base, o200k_base   as in OpenAI's tiktoken
//   llama3     Meta's first Llama 3: 256 special tokens after the ranks
//   llama3.1   Meta's llama-models: the same ids, some with other names
// If `encoding` is empty, OpenAI's files are recognised by their SHA-256, and a file with 128,000
// ranks is llama3.1. The ids are the ranks. Two tokens merge if their joined bytes have a rank, the
// lowest rank first, and a piece that is a token as a whole needs no merges. `path` is used in
// messages.
//
// Throws FormatError for a file that is not a rank file or does not fit its encoding, and
// UnsupportedError with the known encodings if the encoding is unknown.
TokenizerSpec read_tiktoken(const std::string& path, std::string_view bytes,
                            std::string_view encoding = {});

// Returns whether the file looks like a rank file: its first line is base64 and a number. Example
// of a line: "IQ== 0", the token "!" with rank 0.
bool looks_like_tiktoken(std::string_view bytes);

}  // namespace limpid
