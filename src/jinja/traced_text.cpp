#include "jinja/traced_text.h"

#include <algorithm>
#include <functional>

namespace limpid::jinja {

// Flips ascend, so a binary search finds the origin of a byte: an even number of flips before it
// means the origin of the first byte, an odd number the other one.
size_t TracedText::flips_until(size_t at) const {
  if (flips_.empty()) return 0;
  return static_cast<size_t>(std::upper_bound(flips_.begin(), flips_.end(), at) - flips_.begin());
}

void TracedText::append(TracedView part) {
  part.for_each_run([this](std::string_view bytes, Origin origin) { append(bytes, origin); });
}

bool TracedView::holds(std::string_view cut) const {
  const std::less_equal<const char*> not_after;  // defined for pointers into different texts too
  return not_after(bytes_.data(), cut.data()) &&
         not_after(cut.data() + cut.size(), bytes_.data() + bytes_.size());
}

size_t TracedView::offset_of(std::string_view cut) const {
  return static_cast<size_t>(cut.data() - text_->bytes_.data());
}

// Flips inside the view count; one exactly at its first byte does not, because the part begins with
// that origin.
size_t TracedView::memory() const {
  if (text_ == nullptr || bytes_.empty()) return bytes_.size();
  const size_t begin = offset_of(bytes_);
  const size_t n_flips = text_->flips_until(begin + bytes_.size() - 1) - text_->flips_until(begin);
  return bytes_.size() + n_flips * sizeof(size_t);
}

TracedView TracedView::part(std::string_view cut) const {
  if (!holds(cut)) return {cut, Origin::kData};
  TracedView view = *this;
  view.bytes_ = cut;
  return view;
}

Origin TracedView::origin(std::string_view cut) const {
  if (cut.empty()) return Origin::kTemplate;
  if (!holds(cut)) return Origin::kData;
  if (text_ == nullptr) return origin_;
  const size_t begin = offset_of(cut);
  const size_t n_flips = text_->flips_until(begin);
  if (text_->origin_after(n_flips) == Origin::kData) return Origin::kData;
  const bool has_flip =
      n_flips < text_->flips_.size() && text_->flips_[n_flips] < begin + cut.size();
  return has_flip ? Origin::kData : Origin::kTemplate;
}

}  // namespace limpid::jinja
