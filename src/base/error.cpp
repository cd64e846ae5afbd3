#include "limpid/error.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_text.h"

namespace limpid {
namespace {

std::string format_message(const std::string& path, uint64_t offset, const std::string& field,
                           const std::string& problem) {
  if (offset == FormatError::kNoOffset) {
    return field == "file" ? fmt::format("{} {}", path, problem)
                           : fmt::format("{}: {}: {}", path, field, problem);
  }
  return fmt::format("{}: at byte {}: {}: {}", path, offset, field, problem);
}

}  // namespace

FormatError::FormatError(std::string path, uint64_t offset, std::string field,
                         const std::string& problem)
    : Error(format_message(path, offset, field, problem)),
      path_(std::move(path)),
      offset_(offset),
      field_(std::move(field)) {}

ContextOverflowError::ContextOverflowError(int64_t n_tokens, int64_t n_ctx, int64_t n_needed)
    : Error(fmt::format("the sequence has {} tokens and the context holds {}: shorten the text, or "
                        "use a context of {} tokens",
                        n_tokens, n_ctx, std::max(n_tokens, n_needed))),
      n_tokens_(n_tokens),
      n_ctx_(n_ctx),
      n_needed_(std::max(n_tokens, n_needed)) {}

std::string without_part(const std::exception& error) {
  const std::string message = error.what();
  const size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_ ", 1);
  const bool has_name = message.starts_with('[') && end > 1 && end != std::string::npos &&
                        message.compare(end, 2, "] ") == 0;
  return has_name ? message.substr(end + 2) : message;
}

}  // namespace limpid
