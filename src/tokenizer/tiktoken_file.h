// tiktoken's rank files (Meta's tokenizer.model of Llama 3, OpenAI's *.tiktoken) -> TokenizerSpec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// A rank file holds lines "base64-of-the-bytes rank" and nothing else: the expression that cuts the
// text and the special tokens are in the program that reads it. `encoding` names them:
//   r50k_base (or gpt2), p50k_base, cl100k_base, o200k_base   as in OpenAI's tiktoken
//   llama3     as Meta's first Llama 3: 256 special tokens behind the ranks
//   llama3.1   as Meta's llama-models: the same ids, other names for some of them
// Empty: OpenAI's files are known by their SHA-256, and 128,000 ranks are llama3.1.
// The ids are the ranks; two tokens merge when their bytes together have a rank, lowest first, and
// a piece that is a token as a whole needs no merges. `path` is for messages.
//
// Throws FormatError for what is no rank file or does not fit its encoding, UnsupportedError when
// the encoding is not known, naming those that are.
TokenizerSpec read_tiktoken(const std::string& path, std::string_view bytes,
                            std::string_view encoding = {});

// Whether the file looks like one: its first line is base64 and a number.
bool looks_like_tiktoken(std::string_view bytes);

// What read_tiktoken knows as `encoding`.
std::vector<std::string_view> tiktoken_encoding_names();

}  // namespace limpid
