// What is said about a result.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace limpid::cli {

// One line; bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace limpid::cli
