// Files of text and of dialogues, tokenized.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "train/token_documents.h"

namespace limpid {

// The name of the text that the program carries (data/tinyshakespeare.txt).
inline constexpr std::string_view kBuiltInText = "tinyshakespeare";

// The text of the files, one after another, for a tokenizer that is made of it. Throws as
// read_documents does.
std::string read_texts(std::span<const std::string> paths);

// Tokenizes files. A name that ends in .jsonl has an object in each line: {"text": "…"} is a
// document; {"messages": [{"role": …, "content": …}, …]} is a dialogue, rendered with the chat
// template, of which the answers of the assistant are learned and the rest is not. Every other file
// is one document. `chat_template` may be null when there are no dialogues. Throws ArgumentError
// for a file that is empty or has a zero byte, FormatError with the number of the line for a line
// that is not such an object, UnsupportedError for dialogues without a template.
TokenDocuments read_documents(std::span<const std::string> paths, const Tokenizer& tokenizer,
                              const ChatTemplate* chat_template);

}  // namespace limpid
