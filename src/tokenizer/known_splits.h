// The regular expressions that have hand-written scanners, as tokenizer.json files write them.
#pragma once

#include <optional>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// GPT-2's expression. The pre-tokenizer "ByteLevel" applies it by itself (`use_regex`).
extern const char* const kByteLevelPattern;

// Returns the scanner that produces the same pieces as these steps in sequence, if there is one.
// Without a step it is kNone.
std::optional<PreTokenizer> find_scanner(const std::vector<SplitStep>& steps);

// Returns steps that produce the same pieces as the scanner. There are none for kNone, and none if
// tokenizer.json cannot express the scanner.
std::vector<SplitStep> find_splits(PreTokenizer scanner);

}  // namespace limpid
