#include "limpid/error.hpp"

#include <fmt/format.h>

namespace limpid {
namespace {

std::string format_message(const std::string& path, uint64_t offset, const std::string& field,
                           const std::string& problem) {
  if (offset == FormatError::kNoOffset) return fmt::format("{}: {}: {}", path, field, problem);
  return fmt::format("{}: at byte {}: {}: {}", path, offset, field, problem);
}

}  // namespace

FormatError::FormatError(std::string path, uint64_t offset, std::string field,
                         const std::string& problem)
    : Error(format_message(path, offset, field, problem)),
      path_(std::move(path)),
      offset_(offset),
      field_(std::move(field)) {}

ContextOverflowError::ContextOverflowError(int64_t n_tokens, int64_t n_ctx)
    : Error(fmt::format("the sequence needs {} tokens but the context holds {}; "
                        "raise it with -c {}, shorten the text, or pass --context-shift",
                        n_tokens, n_ctx, n_tokens)),
      n_tokens_(n_tokens),
      n_ctx_(n_ctx) {}

}  // namespace limpid
