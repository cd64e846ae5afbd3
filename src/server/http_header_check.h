// Finds the end of a request's header in bytes that arrive piece by piece, and refuses on the way
// what servers and proxies are known to read differently: lines that end in a bare LF or CR, folded
// lines, blanks before a colon, control characters. Where two programs disagree about where a
// request ends, a second request can be smuggled inside the first (RFC 9112, sections 2.2, 5 and
// 11.2). Beast's parser, which comes after, forgives some of these.
#pragma once

#include <cstddef>
#include <string_view>

namespace limpid {

class HttpHeaderCheck {
 public:
  explicit HttpHeaderCheck(size_t most_fields) : most_fields_(most_fields) {}

  enum class State { kIncomplete, kComplete, kMalformed, kTooManyFields };

  // `header` is everything that has arrived of the request so far: each call passes the bytes of
  // the call before, and more. kComplete: the header ends within `header`, at n_bytes().
  State look(std::string_view header);
  size_t n_bytes() const { return at_; }

 private:
  // Whether byte `c`, which begins a line or follows `previous` in it, may stand there.
  bool accepts(char previous, char c);

  size_t most_fields_;
  size_t at_ = 0;  // bytes looked at
  size_t n_lines_ = 0;
  size_t line_length_ = 0;
  bool in_name_ = false;  // of a field
  bool after_cr_ = false;
};

}  // namespace limpid
