// What Limpid throws. Input or environment wrong: an exception of one of these types, with data.
// Normal outcomes (a stop reason, a lookup that finds nothing) are values, never exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace limpid {

// Base of everything the library throws on purpose. `what()` is one line that says what to do next
// where there is something to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file is not what its format says: malformed, truncated, contradictory.
class FormatError : public Error {
 public:
  static constexpr uint64_t kNoOffset = ~uint64_t{0};
  // `path` the file, `offset` the byte where reading stopped (kNoOffset if none), `field` the item
  // being read, `problem` what was found and what was expected.
  FormatError(std::string path, uint64_t offset, std::string field, const std::string& problem);

  const std::string& path() const { return path_; }
  uint64_t offset() const { return offset_; }
  const std::string& field() const { return field_; }

 private:
  std::string path_;
  uint64_t offset_;
  std::string field_;
};

// Shapes or dtypes that do not go together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// Well-formed, but nothing that Limpid does: an architecture, a tensor type, a configuration key.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

// An argument outside its range.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

// The operating system refused: memory, files, the network.
class ResourceError : public Error {
 public:
  using Error::Error;
};

// The sequence would grow past the context. All counts are in tokens.
class ContextOverflowError : public Error {
 public:
  // `n_needed` as n_needed() below; 0: nothing is to be generated, so it is n_tokens.
  ContextOverflowError(int64_t n_tokens, int64_t n_ctx, int64_t n_needed = 0);
  int64_t n_tokens() const { return n_tokens_; }  // that were to be in the sequence
  int64_t n_ctx() const { return n_ctx_; }        // that the context holds
  // A context of so many holds the sequence and the tokens to be generated after it: n_predict of
  // them, or, where their number has no limit, a third as many as the sequence has. Advice to use a
  // larger context must name this number.
  int64_t n_needed() const { return n_needed_; }

 private:
  int64_t n_tokens_;
  int64_t n_ctx_;
  int64_t n_needed_;
};

}  // namespace limpid
