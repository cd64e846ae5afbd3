// A model as Hugging Face publishes it: a folder with config.json, weights in one safetensors file
// or in several shards, and the files of the tokenizer. docs/formats/hugging_face.md
#pragma once

#include <filesystem>
#include <string>

#include "base/model_folder.h"
#include "checkpoint/checkpoint.h"

namespace limpid {

// config.json, generation_config.json and 1_Pooling/config.json become metadata below `config.`,
// `generation_config.` and `pooling.`. The files of the tokenizer and the chat template
// (tokenizer.json, tokenizer_config.json, chat_template.jinja, …) become attachments. The weights
// are in model.safetensors, or in the shards that model.safetensors.index.json names; `weights`
// names another file of the folder: one with weights, or the index. Throws FormatError,
// UnsupportedError, ResourceError; each names the file at fault.
Checkpoint open_hugging_face_folder(const std::string& path, const std::string& weights = "");

// Opens one .safetensors file with a config.json beside it, as a folder with these weights. When
// the file is one of several shards, all shards are opened.
Checkpoint open_hugging_face_file(const std::string& path);

// Adds the files of the tokenizer and the chat templates that a folder has. Throws FormatError for
// a link that leads out of the folder.
void attach_files(const ModelFolder& folder, Checkpoint& checkpoint);

// Whether `folder` contains a config.json.
bool looks_like_hugging_face(const std::filesystem::path& folder);

}  // namespace limpid
