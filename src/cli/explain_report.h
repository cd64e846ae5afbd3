// What `limpid explain` prints for people at a terminal, where no page is asked for.
#pragma once

#include <span>
#include <string>

#include "insight/explain_page.h"
#include "insight/explanation.h"
#include "tokenizer/tokenizer.h"

namespace limpid::cli {

// The tokens with their surprise and what was expected instead, the heads with clear habits, the
// largest parts of the last logit, and what the second runs changed. `tokenizer` may be null.
std::string explain_report(const Explanation& explanation, std::span<const ShownContrast> contrasts,
                           const Tokenizer* tokenizer);

}  // namespace limpid::cli
