#include "tokenizer/regex_splitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "limpid/error.hpp"
#include "tokenizer/regex_program.h"

namespace limpid {
namespace {

using Op = RegexInstruction::Op;

const char* previous_character(const char* p) {
  do {
    --p;
  } while (!unicode::begins_character(*p));
  return p;
}

}  // namespace

bool CharacterClass::holds(const unicode::Character& c) const {
  const bool found =
      c.is(properties) ||
      std::ranges::any_of(
          ranges, [&](const auto& r) { return r.first <= c.value && c.value <= r.second; }) ||
      std::ranges::any_of(nested, [&](const CharacterClass& other) { return other.holds(c); });
  return found != negated;
}

// The steps that are left for one text: instructions, and characters of runs. A backtracking
// matcher needs a limit. Example: `(a+a+)+b` on 30 times "a" tries some 2^30 ways to divide the
// letters.
struct RegexSplitter::Budget {
  static constexpr uint64_t kSteps = 20'000;
  static constexpr uint64_t kStepsPerByte = 128;  // real tokenizers take 1 to 7

  explicit Budget(std::string_view whole)
      : text(whole), most(kSteps + kStepsPerByte * whole.size()), left(most) {}

  std::string_view text;
  uint64_t most;
  uint64_t left;
};

struct RegexSplitter::Step : SplitStep {
  RegexProgram program;
};

// Runs a program over one stretch of valid UTF-8. The first of the ways to match wins, in the order
// in which the expression lists them; the others wait in `choices_` and are tried, the latest
// first, when the way that was chosen fails.
class RegexSplitter::Matcher {
 public:
  Matcher(const Step& step, Budget& budget, std::string_view stretch)
      : step_(step),
        code_(step.program.code),
        budget_(budget),
        begin_(stretch.data()),
        end_(begin_ + stretch.size()) {}

  // Calls on_match(begin, end) for each match, from left to right. An empty match counts too; the
  // search then continues after the next character.
  template <class OnMatch>
  void for_each_match(OnMatch&& on_match) {
    for (const char* at = begin_; at <= end_;) {
      const char* const to = may_begin(at) ? run(0, at) : nullptr;
      if (to != nullptr) on_match(at, to);
      if (to == nullptr || to == at) {
        at += at < end_ ? unicode::decode(at, end_).size : 1;
      } else {
        at = to;
      }
    }
  }

 private:
  // A way to go on: the next instruction and the position. For a run, the position can be any
  // between `least` and `at`; those further on are tried first.
  struct Choice {
    size_t next;
    const char* at;
    const char* least;
  };

  // The number of choices that may wait is limited apart from the steps, because each takes 24
  // bytes of memory. Example: `(?:b??b??b??a)+` leaves four for every "a".
  static constexpr size_t kChoices = 1'000;
  static constexpr size_t kChoicesPerByte = 4;  // real tokenizers leave one for a run of characters

  bool holds(int32_t index, const unicode::Character& c) const {
    return step_.program.classes[static_cast<size_t>(index)].holds(c);
  }

  // Decides for most positions, without running the program, that no match begins there.
  bool may_begin(const char* at) {
    spend(at);
    if (step_.program.first.empty()) return true;
    if (at == end_) return false;
    const unicode::Character c = unicode::character_at(at, end_);
    return std::ranges::any_of(step_.program.first, [&](int32_t index) { return holds(index, c); });
  }

  void spend(const char* at) {
    if (budget_.left-- == 0) refuse(budget_.most, "steps", at);
  }

  void push(const Choice& choice) {
    const size_t most = kChoices + kChoicesPerByte * static_cast<size_t>(end_ - begin_);
    if (choices_.size() >= most) refuse(most, "alternatives to remember", choice.at);
    choices_.push_back(choice);
  }

  [[noreturn]] void refuse(uint64_t most, const char* of_what, const char* at) const {
    throw ResourceError(fmt::format(
        "[tokenizer] the regular expression '{}' takes more than {} {} for a text of {} bytes, "
        "from byte {} on",
        step_.pattern.substr(0, 100), most, of_what, budget_.text.size(),
        at - budget_.text.data()));
  }

  // Runs the instructions from `next` on until kAccept. Returns the end of the match, or null.
  const char* run(size_t next, const char* at) {
    const size_t n_choices = choices_.size();
    while (code_[next].op != Op::kAccept) {
      spend(at);
      if (step(next, at)) continue;
      if (choices_.size() == n_choices) return nullptr;
      Choice& choice = choices_.back();
      next = choice.next;
      at = choice.at;
      if (choice.at == choice.least) {
        choices_.pop_back();
      } else {
        choice.at = previous_character(choice.at);
      }
    }
    choices_.resize(n_choices);
    return at;
  }

  // Carries out one instruction. Returns false if it fails.
  bool step(size_t& next, const char*& at) {
    const RegexInstruction& instruction = code_[next++];
    const auto target = next - 1 + static_cast<size_t>(instruction.operand);
    switch (instruction.op) {
      case Op::kClass:
        return skip(instruction.operand, at);
      case Op::kRun:
      case Op::kRunAtomic: {
        const char* const least = at;
        while (skip(instruction.operand, at)) spend(at);
        if (instruction.op == Op::kRun && at != least) push({next, previous_character(at), least});
        return true;
      }
      case Op::kLineStart:
        return at == begin_ || (at[-1] == '\n' && at != end_);
      case Op::kLineEnd:
        return at == end_ || *at == '\n';
      case Op::kBack:
        for (int32_t i = 0; i < instruction.operand; ++i) {
          if (at == begin_) return false;
          at = previous_character(at);
        }
        return true;
      case Op::kSplit:
        push({target, at, at});
        return true;
      case Op::kSplitLazy:
        push({next, at, at});
        next = target;
        return true;
      case Op::kJump:
        next = target;
        return true;
      case Op::kAhead:
      case Op::kNotAhead:
      case Op::kAtomic: {
        const char* const end = run(next, at);
        if (instruction.op == Op::kAtomic && end != nullptr) at = end;
        next = target;
        return (end != nullptr) != (instruction.op == Op::kNotAhead);
      }
      case Op::kAccept:
        break;
    }
    return false;
  }

  // Moves past one character of the class.
  bool skip(int32_t index, const char*& at) const {
    if (at == end_) return false;
    const unicode::Character c = unicode::character_at(at, end_);
    if (!holds(index, c)) return false;
    at += c.size;
    return true;
  }

  const Step& step_;
  const std::vector<RegexInstruction>& code_;
  Budget& budget_;
  const char* begin_;
  const char* end_;
  std::vector<Choice> choices_;
};

RegexSplitter::RegexSplitter(const std::vector<SplitStep>& steps) {
  for (const SplitStep& step : steps) {
    RegexProgram program;
    if (step.kind == SplitStep::Kind::kRegex) {
      program = compile_regex(step.pattern);
    } else {
      program = {{{Op::kClass, 0}, {Op::kAccept}}, {{.properties = unicode::kNumeric}}, {0}};
    }
    steps_.push_back(std::make_shared<Step>(Step{step, std::move(program)}));
  }
}

void RegexSplitter::split(std::string_view text, const Sink& sink) const {
  Budget budget(text);
  split_from(0, text, budget, sink);
}

// Cuts `text` with step `step_index` and passes each piece to the next step; after the last step
// the pieces go to the sink. Without `contiguous`, the pieces are the matches and the gaps between
// them. With `contiguous`, adjacent matches are joined, and a piece is emitted when a gap ends the
// run. With `drop_gaps`, the gaps are not pieces. Invalid bytes never match, so each stretch of
// valid UTF-8 between them is matched by itself.
void RegexSplitter::split_from(size_t step_index, std::string_view text, Budget& budget,
                               const Sink& sink) const {
  if (step_index == steps_.size()) {
    if (!text.empty()) sink(text.data(), text.size());
    return;
  }
  const Step& step = *steps_[step_index];
  const auto pass_on = [&](const char* begin, const char* end) {
    if (end > begin) split_from(step_index + 1, std::string_view(begin, end), budget, sink);
  };
  const char* const end = text.data() + text.size();
  const char* gap = text.data();    // start of the text without a match
  const char* piece = text.data();  // start of the adjacent matches, if `contiguous`
  const auto on_match = [&](const char* from, const char* to) {
    if (step.contiguous && from == gap) {
      gap = to;
      return;
    }
    if (step.contiguous) pass_on(piece, gap);
    if (!step.drop_gaps) pass_on(gap, from);
    if (!step.contiguous) pass_on(from, to);
    piece = from;
    gap = to;
  };
  for (const char* p = text.data(); p < end;) {
    const char* const stop = unicode::valid_end(p, end);
    Matcher(step, budget, std::string_view(p, stop)).for_each_match(on_match);
    p = stop;
    while (p < end && unicode::decode(p, end).value >= unicode::kInvalidByte) ++p;
  }
  if (step.contiguous) pass_on(piece, gap);
  if (!step.drop_gaps) pass_on(gap, end);
}

}  // namespace limpid
