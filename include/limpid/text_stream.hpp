// Text as it is generated: a single-pass range of pieces, each whole UTF-8.
//
//   limpid::TextStream stream = session.generate();
//   for (std::string_view piece : stream) std::cout << piece << std::flush;
//   std::cerr << stream.result().timings.n_generated << " tokens\n";
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "limpid/generation.hpp"

namespace limpid {

class SessionStream;  // internal

// The work is done as the stream is read: the first piece evaluates the prompt, and each further
// piece evaluates one or a few tokens. A piece is valid until the next one is read. A stream is
// open until it has no further piece, throws or is dropped; dropping it early is the same as
// cancelling. It keeps the parts of its Session or Chat that it needs alive, so those may be
// destroyed or moved first. A Session or a Chat has at most one open stream. A moved-from stream
// may only be assigned to or destroyed.
class TextStream {
 public:
  // Makes a stream a range of pieces for a range-based for loop.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using reference = std::string_view;
    using pointer = const std::string_view*;

    Iterator() = default;
    std::string_view operator*() const { return *piece_; }
    Iterator& operator++() {
      piece_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return !i.piece_; }

   private:
    friend class TextStream;
    explicit Iterator(TextStream* stream) : stream_(stream), piece_(stream->next()) {}
    TextStream* stream_ = nullptr;
    std::optional<std::string_view> piece_;
  };

  explicit TextStream(std::unique_ptr<SessionStream> source);
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // The next piece, which is never empty; nothing when the text has ended. Throws
  // ContextOverflowError and what samplers throw; the stream has then ended, with
  // StopReason::kNone.
  std::optional<std::string_view> next();
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

  // Runs to the end and returns the result.
  const GenerationResult& result();
  // Runs to the end and returns the whole text, including the pieces already read.
  const std::string& text() { return result().text; }
  // The result so far, without further work.
  const GenerationResult& so_far() const;

 private:
  std::unique_ptr<SessionStream> source_;
};

}  // namespace limpid
