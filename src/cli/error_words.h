// What the library throws, in the words of the program.
#pragma once

#include <exception>
#include <string>

namespace limpid::cli {

// The error's message with options of the library (OpenOptions::n_ctx) named as flags of the
// program
// (-c), and with advice that the program can follow.
std::string in_program_words(const std::exception& error);

}  // namespace limpid::cli
