// Messages -> token ids, with control tokens from the template alone.
#pragma once

#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// Renders the template and encodes the result. Control tokens that the template writes become
// control tokens; one that is spelled, wholly or in part, by messages, tools or extra stays plain
// text, however the template cuts and joins them, and gives the ids that this text has where no
// control token is allowed. The usual names of roles count as the template's. BOS is the template's
// business, as in apply_chat_template. bos_token and eos_token of `inputs` are filled from the
// tokenizer. Throws what the template raises.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 TemplateInputs inputs);

}  // namespace limpid
