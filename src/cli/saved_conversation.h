// A conversation as a file: the JSON array of {"role", "content"} that `limpid template --messages`
// reads too.
#pragma once

#include <string>
#include <vector>

#include "limpid/chat.hpp"

namespace limpid::cli {

// Throws ResourceError when the file cannot be read, FormatError when it holds anything else.
std::vector<Message> read_conversation(const std::string& path);

// Replaces a file at `path` only if that holds a conversation; throws ArgumentError otherwise, and
// ResourceError when the file cannot be written.
void write_conversation(const std::string& path, const std::vector<Message>& messages);

}  // namespace limpid::cli
