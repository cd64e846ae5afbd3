// Files of text and of dialogues, tokenized.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "train/text_pieces.h"
#include "train/token_documents.h"

namespace limpid {

// The name of the text that the program carries (data/tinyshakespeare.txt).
inline constexpr std::string_view kBuiltInText = "tinyshakespeare";

// Whether a file has a JSON object in each line: its name ends in .jsonl or .ndjson, in small or
// capital letters.
bool is_json_lines(const std::string& path);

// Calls `body` for each text of a file that a tokenizer may be made from: the documents and the
// contents of messages. The text is there during the call only. Throws as read_documents does.
void for_each_text(const std::string& path, const std::function<void(std::string_view)>& body);

// Returns the text of the files that a tokenizer is made from: the documents and the contents of
// messages. Throws as read_documents does, and ArgumentError for a file that is not UTF-8.
std::string read_texts(std::span<const std::string> paths);

struct DataOptions {
  int n_threads = 0;           // 0: as many as cores
  std::string cache_folder{};  // where tokens are kept for the next time; "": nowhere
  ByteProgress progress{};     // while data is tokenized
};

// Tokenizes files. A file of JSON lines (is_json_lines) has an object in each line: {"text": "…"}
// is a document; {"messages": [{"role": …, "content": …}, …], "tools": […]} is a dialogue, which is
// rendered with the chat template. Only the assistant's answers in it are learned. Every other file
// is one document, or several with <|endoftext|> between them.
// `chat_template` may be null if there are no dialogues. The tokens are the same for any number of
// threads, with a cache and without one. A cache that cannot be read or written is not an error.
//
// Throws ArgumentError for a file that is empty, has a zero byte, or cannot be tokenized, and for a
// line that is not JSON; FormatError for a line that is another JSON value or cannot be tokenized;
// the message names the line. Throws UnsupportedError for dialogues without a template,
// ResourceError when `progress` cancels.
DocumentView read_documents(std::span<const std::string> paths, const Tokenizer& tokenizer,
                            const ChatTemplate* chat_template, const DataOptions& options = {});

}  // namespace limpid
