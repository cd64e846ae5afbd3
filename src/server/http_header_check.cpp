#include "server/http_header_check.h"

namespace limpid {

// Refuses what programs read in different ways: a field that goes on in the next line ("folded"),
// blanks before the colon, control characters.
bool HttpHeaderCheck::accepts(char previous, char c) {
  const bool begins_line = line_length_ == 0;
  if (begins_line && n_lines_ > 0 && (c == ' ' || c == '\t')) return false;  // a folded line
  if (begins_line) in_name_ = n_lines_ > 0;
  if (in_name_ && c == ':') {
    in_name_ = false;
    return !begins_line && previous != ' ' && previous != '\t';
  }
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= ' ' && byte != 0x7F) || (c == '\t' && n_lines_ > 0);
}

// Goes on where the last call ended, so a header that comes byte by byte costs no more than one
// that comes at once. Line 0 is the request line; the line of length 0 ends the header.
HttpHeaderCheck::State HttpHeaderCheck::look(std::string_view header) {
  for (; at_ < header.size(); ++at_) {
    const char c = header[at_];
    if (after_cr_) {
      if (c != '\n') return State::kMalformed;
      after_cr_ = false;
      if (line_length_ == 0) {
        ++at_;
        return n_lines_ > 0 ? State::kComplete : State::kMalformed;
      }
      if (in_name_) return State::kMalformed;  // a field without a colon
      if (n_lines_++ > most_fields_) return State::kTooManyFields;
      line_length_ = 0;
    } else if (c == '\r') {
      after_cr_ = true;
    } else if (!accepts(at_ > 0 ? header[at_ - 1] : '\0', c)) {
      return State::kMalformed;
    } else {
      ++line_length_;
    }
  }
  return State::kIncomplete;
}

}  // namespace limpid
