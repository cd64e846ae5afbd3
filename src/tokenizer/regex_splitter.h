// Pre-tokenizers that no scanner is written for: their regular expressions, run by PCRE2.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

class RegexSplitter {
 public:
  using Sink = std::function<void(const char* begin, size_t size)>;

  // Throws UnsupportedError for an expression that is not supported, naming it.
  explicit RegexSplitter(const std::vector<SplitStep>& steps);

  // Calls `sink` for every piece of the text, in order. Bytes that are not UTF-8 match nothing, and
  // what lies between them is matched by itself. Throws ResourceError, with the expression and the
  // place, when matching takes more steps than a number in proportion to the text. Safe to use from
  // many threads.
  void split(std::string_view text, const Sink& sink) const;

 private:
  struct Budget;
  struct Step;
  void split_from(size_t step, std::string_view text, Budget& budget, const Sink& sink) const;

  std::vector<std::shared_ptr<const Step>> steps_;
};

}  // namespace limpid
