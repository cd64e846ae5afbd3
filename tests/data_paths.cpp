#include "data_paths.h"

namespace limpid::testing {

std::string source_path(std::string_view name) {
  return LIMPID_SOURCE_FOLDER "/" + std::string(name);
}

std::string test_data_path(std::string_view name) {
  return source_path("tests/data/" + std::string(name));
}

std::string shared_data_path(std::string_view name) {
  return source_path("../shared/data/" + std::string(name));
}

}  // namespace limpid::testing
