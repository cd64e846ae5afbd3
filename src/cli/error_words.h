// Rewrites the errors of the library in the terms of the command line.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "limpid/error.hpp"

namespace limpid::cli {

// The error's message with the library's options (OpenOptions::n_ctx) under the names that they
// have on the command line (-c), and with advice that a user of the program can follow.
std::string in_program_words(const std::exception& error);

// An error about line `number` of the input, with that number before its message.
ArgumentError in_line(int64_t number, const ArgumentError& error);

// The model that is open has so many learned positions: no larger context is advised.
void set_largest_context(int64_t n_positions);

// The option with a context that is large enough for text and answer ("-c 400"); "" when -n asks
// for more than any context of the model could hold.
std::string sufficient_context(const ContextOverflowError& error);

}  // namespace limpid::cli
