// The exceptions of Limpid. Wrong input or a failing environment throws one of these types, with
// data. Normal outcomes (a stop reason, a lookup that finds nothing) are values, never exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace limpid {

// Base of everything that the library throws on purpose. `what()` is one line; where something can
// be done, it says what.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file does not match its format: it is malformed, truncated or contradicts itself.
class FormatError : public Error {
 public:
  static constexpr uint64_t kNoOffset = ~uint64_t{0};
  // `path` is the file, `offset` the byte where reading stopped (kNoOffset if unknown), `field` the
  // item being read, and `problem` says what was found and what was expected.
  FormatError(std::string path, uint64_t offset, std::string field, const std::string& problem);

  const std::string& path() const { return path_; }
  uint64_t offset() const { return offset_; }
  const std::string& field() const { return field_; }

 private:
  std::string path_;
  uint64_t offset_;
  std::string field_;
};

// Shapes or dtypes that do not match each other.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// Well-formed, but not supported: an architecture, a tensor type, a configuration key.
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

// The sequence would grow beyond the context. All counts are in tokens.
class ContextOverflowError : public Error {
 public:
  // `n_needed` as in n_needed() below. 0 means that no tokens are to be generated: it is then
  // n_tokens.
  ContextOverflowError(int64_t n_tokens, int64_t n_ctx, int64_t n_needed = 0);
  int64_t n_tokens() const { return n_tokens_; }  // length that the sequence would have
  int64_t n_ctx() const { return n_ctx_; }        // length that the context allows
  // The size of a context that holds the sequence and the tokens to be generated after it:
  // n_predict of them or, when their number has no limit, a third of the sequence's length. Advice
  // to use a larger context must name this number.
  int64_t n_needed() const { return n_needed_; }

 private:
  int64_t n_tokens_;
  int64_t n_ctx_;
  int64_t n_needed_;
};

}  // namespace limpid
