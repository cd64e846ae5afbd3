#include "train/token_cache.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/divide_up.h"
#include "base/mapped_file.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Raise this number when the same data would become other tokens, or when the layout changes.
constexpr std::string_view kVersion = "limpid tokens 8";

using Bytes = std::span<const std::byte>;

// Digests of pieces of 4 MB, which the threads compute at the same time, are digested together.
std::string digest_of(Bytes bytes, ThreadPool& pool) {
  constexpr int64_t kPiece = 4 << 20;
  const int64_t n_pieces = divide_up(std::ssize(bytes), kPiece);
  std::vector<std::string> digests(static_cast<size_t>(n_pieces));
  pool.for_each(n_pieces, 1, [&](int64_t i) {
    Sha256 piece;
    piece.update(bytes.subspan(i * kPiece, std::min(kPiece, std::ssize(bytes) - i * kPiece)));
    digests[static_cast<size_t>(i)] = piece.hex();
  });
  Sha256 all;
  for (const std::string& digest : digests) all.update(std::as_bytes(std::span(digest)));
  return all.hex();
}

// Adds values to a digest, each so that its end is known: the texts "ab", "c" and "a", "bc" have
// the same bytes, and must not have the same digest.
class Fields {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void add(Number value) { digest_.update(std::as_bytes(std::span(&value, 1))); }
  void add(std::string_view text) {
    add(text.size());
    digest_.update(std::as_bytes(std::span(text)));
  }
  void add(const AddedTokenRule& rule) {
    const auto& [id, strip_left, strip_right, single_word, normalized] = rule;
    add_all(id, strip_left, strip_right, single_word, normalized);
  }
  void add(const SplitStep& step) {
    const auto& [kind, pattern, drop_gaps, contiguous] = step;
    add_all(kind, pattern, drop_gaps, contiguous);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) add(value);
  }
  template <typename... T>
  void add_all(const T&... values) {
    (add(values), ...);
  }
  std::string hex() { return digest_.hex(); }

 private:
  Sha256 digest_;
};

// Names all members, so that a new member does not compile until it is added here.
void add_tokenizer(Fields& fields, const TokenizerSpec& spec) {
  const auto& [kind, pre_tokenizer, splits, normalize_nfc, pieces, scores, types, added_rules,
               first_added, merges, merge_order, meta_slices, ignore_merges, bos, eos, eot, eom,
               unknown, pad, stop_ids, add_bos, add_eos, space_prefix, normalizes_spaces,
               remove_extra_whitespaces] = spec;
  fields.add_all(kind, pre_tokenizer, splits, normalize_nfc, pieces, scores, types, added_rules,
                 first_added, merges, merge_order, meta_slices, ignore_merges, bos, eos, eot, eom,
                 unknown, pad, stop_ids, add_bos, add_eos, space_prefix, normalizes_spaces,
                 remove_extra_whitespaces);
}

// Returns whether these can be the places where documents begin: ascending from 0, inside the ids.
bool are_begins(std::span<const int64_t> begins, int64_t n_ids) {
  return begins.empty() ||
         (begins.front() == 0 && std::ranges::is_sorted(begins) && begins.back() <= n_ids);
}

// The __metadata__ of a cache file, which is a safetensors file.
std::map<std::string, std::string> metadata_of(std::string_view key, std::string digest) {
  return {
      {"format", std::string(kVersion)}, {"key", std::string(key)}, {"digest", std::move(digest)}};
}

// The numbers of a tensor; none if the file does not have it, or not where such numbers can be.
template <typename T>
std::span<const T> numbers_in(const SafetensorsFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.tensors, name, &SafetensorsTensor::name);
  if (found == file.tensors.end()) return {};
  const std::byte* data = found->view.data;
  if (reinterpret_cast<uintptr_t>(data) % alignof(T) != 0) return {};
  return {reinterpret_cast<const T*>(data), found->view.n_bytes() / sizeof(T)};
}

}  // namespace

std::string token_digest(std::span<const int64_t> begins, std::span<const int32_t> ids,
                         std::span<const uint8_t> learned, ThreadPool& pool) {
  Fields fields;
  for (const Bytes bytes : {std::as_bytes(begins), std::as_bytes(ids), std::as_bytes(learned)})
    fields.add_all(bytes.size(), digest_of(bytes, pool));
  return fields.hex();
}

std::string token_cache_key(std::span<const DataText> texts, const TokenizerSpec& tokenizer,
                            std::string_view chat_template, ThreadPool& pool) {
  Fields fields;
  fields.add(kVersion);
  add_tokenizer(fields, tokenizer);
  fields.add(chat_template);
  for (const DataText& text : texts) {
    fields.add_all(text.is_json_lines, text.bytes.size());
    fields.add(digest_of(std::as_bytes(std::span(text.bytes)), pool));
  }
  return fields.hex();
}

std::optional<DocumentView> read_token_cache(const std::string& path, std::string_view key,
                                             ThreadPool& pool) {
  if (!is_file(path)) return std::nullopt;
  try {
    const auto file = MappedFile::open(path);
    const SafetensorsFile saved = parse_safetensors(path, file->bytes());
    DocumentView view;
    view.begins = numbers_in<int64_t>(saved, "begins");
    view.ids = numbers_in<int32_t>(saved, "ids");
    view.learned = numbers_in<uint8_t>(saved, "learned");
    view.owner = file;
    const std::string digest = token_digest(view.begins, view.ids, view.learned, pool);
    if (saved.metadata == metadata_of(key, digest) && are_begins(view.begins, view.n_tokens()) &&
        (view.learned.empty() || view.learned.size() == view.ids.size()))
      return view;
  } catch (const Error&) {  // damaged, or another user's file, for example
  }
  return std::nullopt;
}

void write_token_cache(const std::string& path, std::string_view key,
                       const TokenDocuments& documents, ThreadPool& pool) {
  make_folder(fs::path(path).parent_path().string());
  const auto& [ids, begins, learned] = documents;
  std::vector<NamedTensor> tensors;
  const auto add = [&](const char* name, DType dtype, const auto& numbers) {
    const auto* data = reinterpret_cast<const std::byte*>(numbers.data());
    if (!numbers.empty()) tensors.push_back({name, {dtype, Shape{std::ssize(numbers)}, data}});
  };
  add("begins", DType::kI64, begins);
  add("ids", DType::kI32, ids);
  add("learned", DType::kU8, learned);
  write_safetensors(path, metadata_of(key, token_digest(begins, ids, learned, pool)), tensors);
}

}  // namespace limpid
