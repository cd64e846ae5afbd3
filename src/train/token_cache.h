// Tokenized data in files, so that data are tokenized once. A run reads them from a memory map.
//
// A cache file has a name of everything that the tokens depend on, its key. It is written under
// another name and renamed when it is complete, and a reader compares its key and its digest before
// it takes anything from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "tokenizer/tokenizer_spec.h"
#include "train/token_documents.h"

namespace limpid {

// One file of data.
struct DataText {
  bool is_json_lines = false;
  std::string_view bytes;
};

// SHA-256 of the data, the tokenizer, the chat template ("": none) and the version of the format.
std::string token_cache_key(std::span<const DataText> texts, const TokenizerSpec& tokenizer,
                            std::string_view chat_template, ThreadPool& pool);

// The documents of the file; nothing when there is none, or when it is damaged or of another key.
std::optional<DocumentView> read_token_cache(const std::string& path, std::string_view key,
                                             ThreadPool& pool);
// Throws ResourceError.
void write_token_cache(const std::string& path, std::string_view key,
                       const TokenDocuments& documents, ThreadPool& pool);

}  // namespace limpid
