// The message of an error for readers who do not know the library's parts.
#pragma once

#include <exception>
#include <string>

namespace limpid {

// The message without the name of the library's part, which may begin it: of "[grammar] a rule …"
// remains "a rule …".
std::string without_part(const std::exception& error);

}  // namespace limpid
