// Reports about a finished generation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "limpid/generation.hpp"

namespace limpid::cli {

// text, ids, stop_reason, (stop_string, stop_id), seed, timings.
nlohmann::ordered_json to_json(const GenerationResult& result);
// One line; bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);
// A line on stderr: tokens and speed, summed over results that ran together.
void print_timings(std::span<const GenerationResult> results);

}  // namespace limpid::cli
