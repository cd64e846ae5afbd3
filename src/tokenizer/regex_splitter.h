// Runs the regular expressions of pre-tokenizers that have no hand-written scanner, with a
// backtracking matcher that counts its steps.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/pre_tokenizer.h"

namespace limpid {

class RegexSplitter {
 public:
  using Sink = std::function<void(const char* begin, size_t size)>;

  // Throws UnsupportedError naming an expression that is not supported.
  explicit RegexSplitter(const std::vector<SplitStep>& steps);

  // Calls `sink` for every piece of the text, in order. Bytes that are not UTF-8 match nothing; the
  // stretches between them are matched separately. Throws ResourceError, with the expression and
  // the position, when matching takes more steps, or more memory for ways to match, than a fixed
  // number per byte. Can be used by many threads at once.
  void split(std::string_view text, const Sink& sink) const;

 private:
  struct Budget;
  struct Step;
  class Matcher;
  void split_from(size_t step, std::string_view text, Budget& budget, const Sink& sink) const;

  std::vector<std::shared_ptr<const Step>> steps_;
};

}  // namespace limpid
