// The files beside a model that define its tokenizer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// By their usual names, whatever they are called on disk.
using TokenizerFiles = std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>>;

// The tokenizer's files at `path`: those in a folder (tokenizer.json, tokenizer.model, one file
// *.tiktoken, vocab.json with merges.txt), or a single file and what lies beside it under the same
// prefix ("gpt2_merges.txt" for "gpt2_vocab.json"). Empty if there are none, also where `path` is a
// model file. Throws ResourceError for what cannot be read, FormatError for a link that leads out
// of the folder (base/model_folder.h).
TokenizerFiles find_tokenizer_files(const std::string& path);

// Whether these define a tokenizer (a chat template alone does not).
bool has_tokenizer(const TokenizerFiles& files);

// Whether a file of this name is one of those that define a tokenizer or say more about it.
bool is_tokenizer_file(std::string_view name);

// The spec they define, with what tokenizer_config.json says: tokenizer.json before tokenizer.model
// before the others. `encoding` is read_tiktoken's. Throws FormatError, UnsupportedError.
TokenizerSpec tokenizer_spec_from(const TokenizerFiles& files, std::string_view encoding = {});

// The same, built; what Tokenizer::create rejects is a FormatError of the file.
std::shared_ptr<const Tokenizer> tokenizer_from(const TokenizerFiles& files,
                                                std::string_view encoding = {});

}  // namespace limpid
