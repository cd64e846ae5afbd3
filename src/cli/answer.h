// Reports about a finished generation.
#pragma once

#include <span>

#include "cli/output.h"
#include "limpid/generation.hpp"

namespace limpid::cli {

// text, ids, stop_reason, (stop_string, stop_id), seed, timings.
Json to_json(const GenerationResult& result);
// Prints a line on stderr: tokens and speed, summed over results that ran together.
void print_timings(std::span<const GenerationResult> results);

}  // namespace limpid::cli
