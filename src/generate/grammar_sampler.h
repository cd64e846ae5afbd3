// Leaves only tokens with which the text still follows a grammar.
#pragma once

#include <memory>
#include <string_view>

#include "limpid/sampler.hpp"
#include "tokenizer/tokenizer.h"

namespace limpid {

inline constexpr std::string_view kGrammarSampler = "grammar";  // its name

// A sampler for SamplerOptions::custom. It runs before all others. The tokens that end the text
// remain only where the grammar allows the text to end. `tokenizer` must outlive the sampler.
// Throws ArgumentError for a malformed grammar.
std::shared_ptr<Sampler> make_grammar_sampler(std::string_view grammar, const Tokenizer& tokenizer);

}  // namespace limpid
