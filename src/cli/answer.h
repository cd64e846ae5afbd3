// Reports about a finished generation.
#pragma once

#include <span>

#include "cli/output.h"
#include "limpid/generation.hpp"

namespace limpid::cli {

// text, ids, stop_reason, (stop_string, stop_id), seed, timings. Without ids and seed where these
// are not known.
Json to_json(const GenerationResult& result, bool knows_ids = true);
// Prints a line on stderr: tokens and speed, summed over results that ran together.
void print_timings(std::span<const GenerationResult> results);

}  // namespace limpid::cli
