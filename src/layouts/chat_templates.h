// Chat templates in the files beside a model's weights.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "checkpoint/metadata.h"

namespace limpid {

// Sets tokenizer.chat_template, and tokenizer.chat_template.NAME for templates with a name, from
// the `chat_template` of tokenizer_config.json, then of chat_template.json, then from
// chat_template.jinja, as `transformers` does: a later file replaces templates of the same name.
// Other files are ignored. Throws FormatError.
void set_chat_templates(
    const std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>>& files,
    Metadata& canonical);

}  // namespace limpid
