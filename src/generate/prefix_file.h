// Keys and values of a prompt in a file, so that a later process need not compute them again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/engine.h"

namespace limpid {

// Saves what the KV cache holds of the longest prefix of `tokens`, and returns its number of
// tokens. The file is in the safetensors format: `tokens` I32 [n_tokens], `blocks` U8 [n_blocks,
// bytes of a block], and metadata that names the model, the executor and the layout. Throws
// ArgumentError when the cache holds nothing of it, ResourceError.
int64_t save_prefix(Engine& engine, std::span<const TokenId> tokens, const std::string& path);

// Enters the file's blocks into the KV cache, where any prompt that begins with these tokens finds
// them. Returns the tokens. Throws FormatError for a file of another model, executor or layout, and
// ContextOverflowError when the cache has not enough free blocks.
std::vector<TokenId> restore_prefix(Engine& engine, const std::string& path);

// Whether save_prefix has written this file, for whichever model. False for what cannot be read.
bool is_prefix_file(const std::string& path);

}  // namespace limpid
