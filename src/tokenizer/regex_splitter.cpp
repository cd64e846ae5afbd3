#include "tokenizer/regex_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>

#include "limpid/error.hpp"
#include "tokenizer/regex_translation.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Where the first byte from p on is that belongs to no UTF-8 sequence.
const char* valid_end(const char* p, const char* end) {
  while (p < end) {
    const unicode::CodePoint c = unicode::decode(p, end);
    if (c.value >= unicode::kInvalidByte) break;
    p += c.size;
  }
  return p;
}

}  // namespace

struct RegexSplitter::Step {
  bool drop_gaps = false;
  bool contiguous = false;
  std::string pattern;                     // for messages; empty: numeric characters
  std::unique_ptr<pcre2_code, Free> code;  // null: numeric characters
  std::unique_ptr<pcre2_match_context, Free> limits;

  // Calls on_match(begin, end) for the matches in `text`, from left to right.
  template <class OnMatch>
  void for_each_match(std::string_view text, OnMatch&& on_match) const;
  template <class OnMatch>
  void match_valid(std::string_view text, pcre2_match_data* data, OnMatch&& on_match) const;
};

template <class OnMatch>
void RegexSplitter::Step::for_each_match(std::string_view text, OnMatch&& on_match) const {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (!code) {
    for (const char* p = begin; p < end;) {
      const unicode::Character c = unicode::character_at(p, end);
      const auto at = static_cast<size_t>(p - begin);
      if (c.is(unicode::kNumeric)) on_match(at, at + c.size);
      p += c.size;
    }
    return;
  }
  const std::unique_ptr<pcre2_match_data, Free> data(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  if (!data) throw ResourceError("[tokenizer] no memory to match a regular expression");
  for (const char* p = begin; p < end;) {
    const char* const stop = valid_end(p, end);
    const auto offset = static_cast<size_t>(p - begin);
    match_valid({p, static_cast<size_t>(stop - p)}, data.get(),
                [&](size_t from, size_t to) { on_match(offset + from, offset + to); });
    p = stop;
    while (p < end && unicode::decode(p, end).value >= unicode::kInvalidByte) ++p;
  }
}

// `text` is UTF-8.
template <class OnMatch>
void RegexSplitter::Step::match_valid(std::string_view text, pcre2_match_data* data,
                                      OnMatch&& on_match) const {
  const char* const begin = text.data();
  for (size_t at = 0; at <= text.size();) {
    const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(begin), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, data, limits.get());
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) {
      throw ResourceError(
          fmt::format("[tokenizer] the regular expression '{}' fails on this text: {}",
                      pattern.substr(0, 100), message_of(found)));
    }
    const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(data);
    const size_t from = span[0];
    const size_t to = std::max(span[0], span[1]);
    on_match(from, to);
    // An empty match cuts; the search goes on behind the next character.
    at = to;
    if (to == from)
      at += at < text.size() ? unicode::decode(begin + at, begin + text.size()).size : 1;
  }
}

RegexSplitter::RegexSplitter(const std::vector<SplitStep>& steps) {
  for (const SplitStep& step : steps) {
    auto compiled = std::make_shared<Step>();
    compiled->drop_gaps = step.drop_gaps;
    compiled->contiguous = step.contiguous;
    if (step.kind == SplitStep::Kind::kRegex) {
      const std::string translated = translate_regex(step.pattern);
      int error = 0;
      PCRE2_SIZE offset = 0;
      compiled->pattern = step.pattern;
      compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                         translated.size(), PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C,
                                         &error, &offset, nullptr));
      if (!compiled->code) {
        throw UnsupportedError(fmt::format("the regular expression '{}' is not supported: {}",
                                           step.pattern.substr(0, 200), message_of(error)));
      }
      compiled->limits.reset(pcre2_match_context_create(nullptr));
      if (!compiled->limits) throw ResourceError("[tokenizer] no memory for a regular expression");
      pcre2_set_match_limit(compiled->limits.get(), 100'000);  // from one place of the text
      pcre2_set_depth_limit(compiled->limits.get(), 100'000);
      pcre2_set_heap_limit(compiled->limits.get(), 64 << 10);  // in KiB
    }
    steps_.push_back(std::move(compiled));
  }
}

void RegexSplitter::split(std::string_view text, const Sink& sink) const {
  split_from(0, text, sink);
}

void RegexSplitter::split_from(size_t step_index, std::string_view text, const Sink& sink) const {
  if (step_index == steps_.size()) {
    if (!text.empty()) sink(text.data(), text.size());
    return;
  }
  const Step& step = *steps_[step_index];
  const auto pass_on = [&](size_t begin, size_t end) {
    if (end > begin) split_from(step_index + 1, text.substr(begin, end - begin), sink);
  };
  size_t gap = 0;    // where the text without a match begins
  size_t piece = 0;  // where the matches side by side begin, if `contiguous`
  step.for_each_match(text, [&](size_t begin, size_t end) {
    if (step.contiguous && begin == gap) {
      gap = end;
      return;
    }
    if (step.contiguous) pass_on(piece, gap);
    if (!step.drop_gaps) pass_on(gap, begin);
    if (!step.contiguous) pass_on(begin, end);
    piece = begin;
    gap = end;
  });
  if (step.contiguous) pass_on(piece, gap);
  if (!step.drop_gaps) pass_on(gap, text.size());
}

}  // namespace limpid
