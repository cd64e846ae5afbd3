// Text that knows where each of its bytes comes from.
//
// A chat template joins two kinds of text: its own, which may spell control tokens such as
// <|im_end|>, and data, which is whatever a user typed. In a plain string the two cannot be told
// apart, and a user who types <|im_end|> would end the turn. So every string of the interpreter
// keeps the origin of its bytes through all filters, slices and joins:
//
//   template   <|im_start|>user\n{{ m.content }}<|im_end|>
//   rendered   <|im_start|>user\n Hi <|im_end|> you <|im_end|>
//   origin     tttttttttttttttttt dddddddddddddddddd tttttttttt
//
// The tokenizer then takes a name for a control token only if all of its bytes are the template's;
// the <|im_end|> of the user is plain text.
//
// A text stores its origins as the places where the origin flips. Most strings have one origin, so
// most texts have no flips, and a text of n runs costs n - 1 numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limpid::jinja {

// kTemplate: the template spells the byte out, in its text or in a string literal (or it is part of
// BOS or EOS). kData: everything else, that is messages, tools and variables, and what the
// interpreter makes itself, such as digits and quotation marks. Only control tokens whose bytes are
// all kTemplate count as such: '<|' + role + '|>' does only because chat_template.cpp declares the
// usual roles to be text of the template.
enum class Origin : uint8_t { kTemplate, kData };

class TracedText;

// A part of a text, or plain bytes of one origin. Valid as long as the bytes that it shows.
class TracedView {
 public:
  TracedView(std::string_view bytes, Origin origin) : bytes_(bytes), origin_(origin) {}
  // Implicit, as std::string_view is of a std::string. NOLINTNEXTLINE(google-explicit-constructor)
  TracedView(const TracedText& text);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  size_t memory() const;  // of the part as a text of its own
  // The part that `cut` shows, a view cut out of bytes(). Bytes from elsewhere count as data. A
  // builtin cuts pieces out of bytes() with std::string_view alone (find, substr, split) and asks
  // here for the origins of a piece, whose address tells its position.
  TracedView part(std::string_view cut) const;
  // The one origin of all bytes of `cut`, a view cut out of bytes(): data if any byte is data.
  Origin origin(std::string_view cut) const;
  Origin origin() const { return origin(bytes_); }
  // Calls run(string_view, Origin) for each stretch of one origin, in order.
  template <class Run>
  void for_each_run(Run&& run) const;

 private:
  bool holds(std::string_view cut) const;
  size_t offset_of(std::string_view cut) const;

  std::string_view bytes_;
  const TracedText* text_ = nullptr;  // where bytes_ lies; null: all of it is origin_'s
  Origin origin_ = Origin::kData;
};

// A text that owns its bytes. It does not convert from a string, so code that makes a text has
// to say where the bytes come from.
class TracedText {
 public:
  TracedText() = default;
  TracedText(std::string bytes, Origin origin)
      : bytes_(std::move(bytes)), first_(origin), last_(origin) {}
  explicit TracedText(TracedView view) { append(view); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // What the text and its origins occupy.
  size_t memory() const { return bytes_.size() + flips_.size() * sizeof(size_t); }

  // `part` is not of this text.
  void append(TracedView part);
  void append(std::string_view bytes, Origin origin) {
    append_with(origin, [bytes](std::string& out) { out += bytes; });
  }
  // write(std::string&) appends bytes of `origin` to the string.
  template <class Write>
  void append_with(Origin origin, Write&& write) {
    const size_t begin = bytes_.size();
    write(bytes_);
    if (bytes_.size() == begin) return;
    if (begin == 0) {
      first_ = origin;
    } else if (origin != last_) {
      flips_.push_back(begin);
    }
    last_ = origin;
  }

 private:
  friend class TracedView;
  // How many flips lie at or before byte `at`.
  size_t flips_until(size_t at) const;
  Origin origin_after(size_t n_flips) const {
    return (n_flips % 2 == 0) == (first_ == Origin::kTemplate) ? Origin::kTemplate : Origin::kData;
  }

  std::string bytes_;
  std::vector<size_t> flips_;  // ascending: bytes whose origin is not that of the byte before
  Origin first_ = Origin::kTemplate, last_ = Origin::kTemplate;  // of the first and the last byte
};

inline TracedView::TracedView(const TracedText& text) : bytes_(text.bytes_), text_(&text) {}

template <class Run>
void TracedView::for_each_run(Run&& run) const {
  if (bytes_.empty()) return;
  if (text_ == nullptr) return run(bytes_, origin_);
  const size_t begin = offset_of(bytes_);
  const size_t end = begin + bytes_.size();
  size_t n_flips = text_->flips_until(begin);
  for (size_t at = begin; at < end; ++n_flips) {
    const bool is_last = n_flips == text_->flips_.size() || text_->flips_[n_flips] >= end;
    const size_t stop = is_last ? end : text_->flips_[n_flips];
    run(bytes_.substr(at - begin, stop - at), text_->origin_after(n_flips));
    at = stop;
  }
}

}  // namespace limpid::jinja
