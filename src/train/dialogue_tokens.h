// The tokens of a dialogue, and which of them are the assistant's answers.
#pragma once

#include <nlohmann/json.hpp>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "train/token_documents.h"

namespace limpid {

// Renders a dialogue with the chat template and appends its tokens as a document. Only the answers
// are learned, each with its end. `messages` is a list of objects with a `role`; `tools` is a list
// or null. Throws ArgumentError if an answer, or a content that is not a text, is not in what
// the template renders, and what the template raises.
void append_dialogue(TokenDocuments& documents, const nlohmann::ordered_json& messages,
                     const nlohmann::ordered_json& tools, const Tokenizer& tokenizer,
                     const ChatTemplate& chat_template);

}  // namespace limpid
