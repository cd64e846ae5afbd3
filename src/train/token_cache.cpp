#include "train/token_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/mapped_file.h"
#include "base/paths.h"
#include "base/sha256.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Raise this number when the same data would become other tokens, or when the layout changes.
constexpr std::string_view kVersion = "limpid tokens 6\n";

// The file: this header, the begins, the ids, and what is learned of each where there are
// dialogues.
struct Header {
  char version[kVersion.size()];
  char key[64];
  char digest[64];  // of the numbers below and of what follows
  int64_t n_begins;
  int64_t n_ids;
  int64_t n_learned;
};
static_assert(sizeof(Header) % sizeof(int64_t) == 0);  // the begins are aligned

using Bytes = std::span<const std::byte>;

// Digests of pieces of 4 MB, which the threads compute at the same time, are digested together.
std::string digest_of(Bytes bytes, ThreadPool& pool) {
  constexpr int64_t kPiece = 4 << 20;
  const int64_t n_pieces = (std::ssize(bytes) + kPiece - 1) / kPiece;
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
  void add(const std::string& text) { add(std::string_view(text)); }
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
               merges, merge_order, meta_slices, ignore_merges, bos, eos, eot, eom, unknown, pad,
               stop_ids, add_bos, add_eos, space_prefix, remove_extra_whitespaces] = spec;
  fields.add_all(kind, pre_tokenizer, splits, normalize_nfc, pieces, scores, types, added_rules,
                 merges, merge_order, meta_slices, ignore_merges, bos, eos, eot, eom, unknown, pad,
                 stop_ids, add_bos, add_eos, space_prefix, remove_extra_whitespaces);
}

// Returns whether these can be the places where documents begin: ascending from 0, inside the ids.
bool are_begins(std::span<const int64_t> begins, int64_t n_ids) {
  return begins.empty() ||
         (begins.front() == 0 && std::ranges::is_sorted(begins) && begins.back() <= n_ids);
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
  std::shared_ptr<const MappedFile> file;
  try {
    file = MappedFile::open(path);
  } catch (const ResourceError&) {  // another user's file, for example
    return std::nullopt;
  }
  if (file->size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, file->bytes().data(), sizeof(Header));
  const auto is = [](std::span<const char> field, std::string_view wanted) {
    return std::string_view(field.data(), field.size()) == wanted;
  };
  if (!is(header.version, kVersion) || !is(header.key, key)) return std::nullopt;
  const Bytes rest = file->bytes().subspan(sizeof(Header));
  const auto size = std::ssize(rest);
  const auto& [n_begins, n_ids, n_learned] =
      std::tie(header.n_begins, header.n_ids, header.n_learned);
  for (const int64_t n : {n_begins, n_ids, n_learned}) {
    if (n < 0 || n > size) return std::nullopt;
  }
  const int64_t ids_at = n_begins * 8;
  const int64_t learned_at = ids_at + n_ids * 4;
  if (size != learned_at + n_learned || (n_learned != 0 && n_learned != n_ids)) return std::nullopt;
  DocumentView view;
  view.begins = {reinterpret_cast<const int64_t*>(rest.data()), static_cast<size_t>(n_begins)};
  view.ids = {reinterpret_cast<const int32_t*>(rest.data() + ids_at), static_cast<size_t>(n_ids)};
  view.learned = {reinterpret_cast<const uint8_t*>(rest.data() + learned_at),
                  static_cast<size_t>(n_learned)};
  view.owner = file;
  if (!is(header.digest, token_digest(view.begins, view.ids, view.learned, pool)) ||
      !are_begins(view.begins, n_ids))
    return std::nullopt;
  return view;
}

void write_token_cache(const std::string& path, std::string_view key,
                       const TokenDocuments& documents, ThreadPool& pool) {
  make_folder(fs::path(path).parent_path().string());
  const auto& [ids, begins, learned] = documents;
  Header header{};
  const auto set = [](std::span<char> field, std::string_view text) {
    std::ranges::copy(text.substr(0, field.size()), field.begin());
  };
  set(header.version, kVersion);
  set(header.key, key);
  set(header.digest, token_digest(begins, ids, learned, pool));
  header.n_begins = std::ssize(begins);
  header.n_ids = std::ssize(ids);
  header.n_learned = std::ssize(learned);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(std::as_bytes(std::span(begins)));
  file.write(std::as_bytes(std::span(ids)));
  file.write(std::as_bytes(std::span(learned)));
  file.commit();
}

}  // namespace limpid
