// Chat templates in the files beside a model's weights.
#pragma once

#include <string_view>

#include "base/mapped_file.h"
#include "checkpoint/metadata.h"

namespace limpid {

// Sets tokenizer.chat_template, and tokenizer.chat_template.NAME for each named template. The files
// are read in the order of `transformers`: the key `chat_template` of tokenizer_config.json, then
// of chat_template.json, then the file chat_template.jinja, then the files
// additional_chat_templates/NAME.jinja. A later file replaces templates of the same name. Other
// files are ignored. Throws FormatError.
void set_chat_templates(const NamedFiles& files, Metadata& canonical);

// Whether an attachment is the file of a named template: "additional_chat_templates/NAME.jinja".
bool is_named_template(std::string_view attachment);

}  // namespace limpid
