#include "tokenizer/regex_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <charconv>
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

// Returns the first byte from p on that is not part of a UTF-8 sequence.
const char* valid_end(const char* p, const char* end) {
  while (p < end) {
    const unicode::CodePoint c = unicode::decode(p, end);
    if (c.value >= unicode::kInvalidByte) break;
    p += c.size;
  }
  return p;
}

// Returns the largest minimum number of repetitions of an item in a translated expression.
size_t highest_minimum(std::string_view expression) {
  size_t highest = 1;
  for (size_t at = 0; (at = expression.find('{', at)) != std::string_view::npos; ++at) {
    if (at >= 2 && expression[at - 2] == '\\') continue;  // \x{…}, \p{…}
    size_t number = 0;
    std::from_chars(expression.data() + at + 1, expression.data() + expression.size(), number);
    highest = std::max(highest, number);
  }
  return highest;
}

}  // namespace

// The remaining steps for one text. PCRE2's own match limit does not bound the work: it restarts
// for each position where a match may begin, and counts a run of one character class as one step,
// however long it is. PCRE2 therefore calls back before every item of an expression. Each call is
// charged with the bytes that matching advanced since the previous call, and with what the item may
// read before it fails without another call: its required repetitions, or the characters of a
// look-behind. Classes are searched range by range, so large expressions are charged more. Example
// of a text that needs the budget: `(a+)+b` on 30 times "a" makes a backtracking engine try 2^30
// ways to divide the letters.
struct RegexSplitter::Budget {
  static constexpr uint64_t kSteps = 20'000;
  static constexpr uint64_t kStepsPerByte = 256;  // real tokenizers take 5 to 20

  explicit Budget(std::string_view whole)
      : text(whole), most(kSteps + kStepsPerByte * whole.size()), left(most) {}

  std::string_view text;
  uint64_t most;
  uint64_t left;
};

// One compiled expression. steps_of_item is the charge for each item that PCRE2 tries,
// steps_of_byte the charge for each byte that a match advances; see Budget.
struct RegexSplitter::Step {
  bool drop_gaps = false;
  bool contiguous = false;
  std::string pattern;                     // for messages; empty: numeric characters
  std::unique_ptr<pcre2_code, Free> code;  // null: numeric characters
  std::unique_ptr<pcre2_match_context, Free> limits;
  uint64_t steps_of_item = 1;
  uint64_t steps_of_byte = 1;

  // The data of a callout.
  struct Watch {
    const Step& step;
    Budget& budget;
    size_t position = 0;  // at the previous call
  };
  static int on_callout(pcre2_callout_block* block, void* data) noexcept;

  // Calls on_match(begin, end) for each match in `text`, from left to right.
  template <class OnMatch>
  void for_each_match(std::string_view text, Budget& budget, OnMatch&& on_match) const;
  template <class OnMatch>
  void match_valid(std::string_view text, Watch& watch, pcre2_match_data* data,
                   pcre2_match_context* context, OnMatch&& on_match) const;
  [[noreturn]] void fail(int error, const Budget& budget, const char* place) const;
};

// Called by PCRE2 before every item of an expression. Stops the match when the budget is used up.
int RegexSplitter::Step::on_callout(pcre2_callout_block* block, void* data) noexcept {
  Watch& watch = *static_cast<Watch*>(data);
  const size_t position = block->current_position;
  const uint64_t forward = position > watch.position ? position - watch.position : 0;
  watch.position = position;
  const uint64_t steps = watch.step.steps_of_item + watch.step.steps_of_byte * forward;
  if (steps > watch.budget.left) return PCRE2_ERROR_CALLOUT;
  watch.budget.left -= steps;
  return 0;
}

// Turns PCRE2's error into a ResourceError with the expression and the position in the whole text.
void RegexSplitter::Step::fail(int error, const Budget& budget, const char* place) const {
  const std::string name =
      fmt::format("[tokenizer] the regular expression '{}'", pattern.substr(0, 100));
  const auto offset = place - budget.text.data();
  if (error == PCRE2_ERROR_CALLOUT) {
    throw ResourceError(
        fmt::format("{} takes more than {} steps for a text of {} bytes, from byte {} on", name,
                    budget.most, budget.text.size(), offset));
  }
  throw ResourceError(
      fmt::format("{} fails on this text at byte {}: {}", name, offset, message_of(error)));
}

// Matches each stretch of valid UTF-8 by itself; invalid bytes between them never match.
template <class OnMatch>
void RegexSplitter::Step::for_each_match(std::string_view text, Budget& budget,
                                         OnMatch&& on_match) const {
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
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_copy(limits.get()));
  if (!data || !context) throw ResourceError("[tokenizer] no memory to match a regular expression");
  Watch watch{*this, budget};
  pcre2_set_callout(context.get(), on_callout, &watch);
  for (const char* p = begin; p < end;) {
    const char* const stop = valid_end(p, end);
    const auto offset = static_cast<size_t>(p - begin);
    match_valid({p, static_cast<size_t>(stop - p)}, watch, data.get(), context.get(),
                [&](size_t from, size_t to) { on_match(offset + from, offset + to); });
    p = stop;
    while (p < end && unicode::decode(p, end).value >= unicode::kInvalidByte) ++p;
  }
}

// `text` is valid UTF-8.
template <class OnMatch>
void RegexSplitter::Step::match_valid(std::string_view text, Watch& watch, pcre2_match_data* data,
                                      pcre2_match_context* context, OnMatch&& on_match) const {
  const char* const begin = text.data();
  for (size_t at = 0; at <= text.size();) {
    watch.position = at;
    const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(begin), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, data, context);
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) fail(found, watch.budget, begin + at);
    const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(data);
    const size_t from = span[0];
    const size_t to = std::max(span[0], span[1]);
    on_match(from, to);
    // An empty match is also a cut. The search continues after the next character.
    at = to;
    if (to == from)
      at += at < text.size() ? unicode::decode(begin + at, begin + text.size()).size : 1;
  }
}

// PCRE2_AUTO_CALLOUT makes PCRE2 call on_callout before every item of the expression.
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
      compiled->code.reset(pcre2_compile(
          reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
          PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &error, &offset, nullptr));
      if (!compiled->code) {
        throw UnsupportedError(fmt::format("the regular expression '{}' is not supported: {}",
                                           step.pattern.substr(0, 200), message_of(error)));
      }
      compiled->limits.reset(pcre2_match_context_create(nullptr));
      if (!compiled->limits) throw ResourceError("[tokenizer] no memory for a regular expression");
      pcre2_set_depth_limit(compiled->limits.get(), 100'000);
      pcre2_set_heap_limit(compiled->limits.get(), 64 << 10);  // in KiB
      uint32_t look_behind = 0;
      size_t code_size = 0;
      pcre2_pattern_info(compiled->code.get(), PCRE2_INFO_MAXLOOKBEHIND, &look_behind);
      pcre2_pattern_info(compiled->code.get(), PCRE2_INFO_SIZE, &code_size);
      compiled->steps_of_byte = 1 + code_size / 4096;
      compiled->steps_of_item =
          compiled->steps_of_byte * (highest_minimum(translated) + look_behind);
    }
    steps_.push_back(std::move(compiled));
  }
}

void RegexSplitter::split(std::string_view text, const Sink& sink) const {
  Budget budget(text);
  split_from(0, text, budget, sink);
}

// Cuts `text` with step `step_index` and passes each piece to the next step; after the last step
// the pieces go to the sink. Without `contiguous`, the pieces are the matches and the gaps between
// them. With `contiguous`, adjacent matches are joined, and a piece is emitted when a gap ends the
// run. With `drop_gaps`, the gaps are not pieces.
void RegexSplitter::split_from(size_t step_index, std::string_view text, Budget& budget,
                               const Sink& sink) const {
  if (step_index == steps_.size()) {
    if (!text.empty()) sink(text.data(), text.size());
    return;
  }
  const Step& step = *steps_[step_index];
  const auto pass_on = [&](size_t begin, size_t end) {
    if (end > begin) split_from(step_index + 1, text.substr(begin, end - begin), budget, sink);
  };
  size_t gap = 0;    // start of the text without a match
  size_t piece = 0;  // start of the adjacent matches, if `contiguous`
  step.for_each_match(text, budget, [&](size_t begin, size_t end) {
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
