// Tokenized data in files, so that data are tokenized once. A run reads them from a memory map.
//
// The name of a cache file is its key, a digest of everything that the tokens depend on. The file
// is written under another name and renamed when it is complete. A reader compares its key and its
// digest before it uses the file.
#pragma once

#include <memory>
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
  std::shared_ptr<const void> owner{};  // of the bytes
};

// Returns the SHA-256 of the data, the tokenizer, the chat template ("": none) and the version of
// the format.
std::string token_cache_key(std::span<const DataText> texts, const TokenizerSpec& tokenizer,
                            std::string_view chat_template, ThreadPool& pool);

// Returns the SHA-256 of tokenized data (TokenDocuments).
std::string token_digest(std::span<const int64_t> begins, std::span<const int32_t> ids,
                         std::span<const uint8_t> learned, ThreadPool& pool);

// Returns the documents of the file; nothing if the file does not exist, cannot be read, is
// damaged, or has another key.
std::optional<DocumentView> read_token_cache(const std::string& path, std::string_view key,
                                             ThreadPool& pool);
// Throws ResourceError.
void write_token_cache(const std::string& path, std::string_view key,
                       const TokenDocuments& documents, ThreadPool& pool);

}  // namespace limpid
