// The pre-tokenizers whose scanners are written by hand, as tokenizer.json files spell them.
#pragma once

#include <optional>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// GPT-2's expression, which the pre-tokenizer "ByteLevel" carries in itself (`use_regex`).
extern const char* const kByteLevelPattern;

// The scanner that cuts as these steps do one after the other, if there is one.
std::optional<PreTokenizer> find_scanner(const std::vector<SplitStep>& steps);

// Steps that cut as the scanner does; none if no tokenizer.json spells it.
std::vector<SplitStep> find_splits(PreTokenizer scanner);

}  // namespace limpid
