// A model as Hugging Face has it: config.json, safetensors in one file or several, and the files of
// its tokenizer. docs/formats/hugging_face.md
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// config.json and generation_config.json become metadata below `config.` and `generation_config.`;
// what belongs to the tokenizer and the chat template (tokenizer.json, tokenizer_config.json,
// chat_template.jinja, …) becomes attachments. Weights are model.safetensors, or the shards that
// model.safetensors.index.json names. Throws FormatError, UnsupportedError, ResourceError, each
// saying which file is at fault.
Checkpoint open_hugging_face_folder(const std::string& path);

// One .safetensors file with a config.json beside it: the same, with these weights. A shard of
// several stands for all of them.
Checkpoint open_hugging_face_file(const std::string& path);

// Whether a config.json lies in the folder / beside the file.
bool looks_like_hugging_face(const std::string& folder);

}  // namespace limpid
