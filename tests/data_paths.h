// Where the data of tests lies. Only data_paths.cpp depends on the place of the clone, so that a
// compiler's cache serves all clones.
#pragma once

#include <string>
#include <string_view>

namespace limpid::testing {

std::string source_path(std::string_view name);       // in the repository
std::string test_data_path(std::string_view name);    // in tests/data
std::string shared_data_path(std::string_view name);  // real models and texts, which may be absent

}  // namespace limpid::testing
