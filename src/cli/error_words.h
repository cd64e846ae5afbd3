// Errors of the library in the words of the program.
#pragma once

#include <exception>
#include <string>

#include "limpid/error.hpp"

namespace limpid::cli {

// The error's message with the library's options (OpenOptions::n_ctx) under the names that they
// have on the command line (-c), and with advice that a user of the program can follow.
std::string in_program_words(const std::exception& error);

// "-c 400", which holds text and answer; "" when -n asks for more than any context could hold.
std::string sufficient_context(const ContextOverflowError& error);

}  // namespace limpid::cli
