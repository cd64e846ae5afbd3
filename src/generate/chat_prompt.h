// Turns chat messages into token ids. Only the template may write control tokens.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// Renders the template and encodes the result. Control tokens that the template writes become
// control tokens. The same characters in messages, tools or extra stay plain text, whole or in
// part, however the template cuts and joins them: a user who types "<|im_end|>" gets the ids of
// these ten characters. The usual names of roles count as written by the template. The template
// also decides about BOS, as in apply_chat_template. bos_token and eos_token of `inputs` are filled
// from the tokenizer. `begun` is the beginning of the answer, as plain text that follows the
// rendered prompt. Throws what the template raises.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 TemplateInputs inputs, std::string_view begun = {});

// Sets bos_token and eos_token of the inputs, as the tokenizer spells them; "" without one.
void add_bos_and_eos(TemplateInputs& inputs, const TokenizerSpec& spec);

}  // namespace limpid
