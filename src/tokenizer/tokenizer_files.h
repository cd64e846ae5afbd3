// Finds the files beside a model that define its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Files by their usual names, whatever they are called on disk.
using TokenizerFiles = NamedFiles;

// Returns the tokenizer's files at `path`. For a folder: tokenizer.json, tokenizer.model, a single
// *.tiktoken, vocab.json with merges.txt. For a single file: the file, and the related files with
// the same prefix ("gpt2_merges.txt" for "gpt2_vocab.json"); a tokenizer.json may have any name
// that ends with .json. Returns nothing if there are none or if `path` is a model file. Throws
// ResourceError for a file that cannot be read, FormatError for a link that leads out of the folder
// (base/model_folder.h).
TokenizerFiles find_tokenizer_files(const std::string& path);

// Returns whether the files define a tokenizer. A chat template alone does not.
bool has_tokenizer(const TokenizerFiles& files);

// Returns the path of the file that defines the tokenizer, for a message. Of a pair ("vocab.json
// with merges.txt") it has both, because an error may be in either.
std::string defining_file(const TokenizerFiles& files);

// Returns the file of tiktoken ranks that defines the tokenizer, or null if another kind does.
const MappedFile* find_rank_file(const TokenizerFiles& files);

// Returns whether a file with this name defines a tokenizer or supplements one.
bool is_tokenizer_file(std::string_view name);

// Reads the spec from the files: from tokenizer.json, else from tokenizer.model, else from the
// others. Applies tokenizer_config.json. `encoding` is passed to read_tiktoken. Throws FormatError,
// UnsupportedError.
TokenizerSpec tokenizer_spec_from(const TokenizerFiles& files, std::string_view encoding = {});

// Builds the tokenizer of that spec. If Tokenizer::create rejects the spec, throws a FormatError
// that names the file.
std::shared_ptr<const Tokenizer> tokenizer_from(const TokenizerFiles& files,
                                                std::string_view encoding = {});

}  // namespace limpid
