#include "tokenizer/meta_slices.h"

#include <cstdint>

#include "jinja/unicode_text.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

using jinja::is_space;

constexpr int64_t kSliceCharacters = 400'000;
constexpr size_t kRunCharacters = 25'000;

// Returns the start of the last run (of white space or of other characters) between p and `limit`,
// as far as two neighbouring ASCII characters show it. Returns nullptr if they do not.
const char* find_run_start_before(const char* limit, const char* p) {
  // Searches backwards from the limit, because the last run that begins before it allows the
  // longest jump. Ordinary text changes between words and spaces every few bytes.
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  for (const char* q = limit - 1; q > p; --q) {
    if (is_ascii(*q) && is_ascii(q[-1]) &&
        is_space(static_cast<char32_t>(*q)) != is_space(static_cast<char32_t>(q[-1])))
      return q;
  }
  return nullptr;
}

// Cuts at most kSliceCharacters characters into slices.
void cut_runs(const char* p, const char* const end,
              const std::function<void(std::string_view)>& on_slice) {
  const char* slice = p;
  while (static_cast<size_t>(end - p) > kRunCharacters) {
    // A run begins at p. If another run begins within this number of bytes, the run at p is not too
    // long.
    const char* const limit = p + kRunCharacters;
    if (const char* next = find_run_start_before(limit, p)) {
      p = next;
      continue;
    }
    // Go run by run up to the limit that was examined, so that no byte is examined more than a few
    // times.
    while (p < limit) {
      const bool space = is_space(unicode::decode(p, end).value);
      for (size_t length = 0; p < end; ++length) {
        const unicode::CodePoint c = unicode::decode(p, end);
        if (is_space(c.value) != space) break;
        if (length == kRunCharacters) {
          on_slice({slice, static_cast<size_t>(p - slice)});
          slice = p;
          length = 0;
        }
        p += c.size;
      }
    }
  }
  on_slice({slice, static_cast<size_t>(end - slice)});
}

}  // namespace

void for_each_meta_slice(std::string_view text,
                         const std::function<void(std::string_view)>& on_slice) {
  while (!text.empty()) {
    const size_t size = std::ssize(text) <= kSliceCharacters
                            ? text.size()
                            : unicode::character_offset(text, kSliceCharacters);
    cut_runs(text.data(), text.data() + size, on_slice);
    text.remove_prefix(size);
  }
}

}  // namespace limpid
