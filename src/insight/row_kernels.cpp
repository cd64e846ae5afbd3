#include "insight/row_kernels.h"

#include <algorithm>

#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"

namespace limpid {

LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, RowKernels kRowKernels)

const RowKernels& row_kernels(const char* isa) {
  static constexpr const RowKernels* kEntries[] = {
      LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kRowKernels)};
  return *kEntries[choose_isa(isa).number];
}

// The choice asks the CPU and the environment, which would take longer than a short row.
const RowKernels& row_kernels() {
  static const RowKernels& chosen = row_kernels("");
  return chosen;
}

// The last number makes room for the new one, which moves up past those that come after it.
void Ranking::insert(const RankedNumber& number) {
  const auto comes_before = [](const RankedNumber& a, const RankedNumber& b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  };
  if (kept_.size() < n_) {
    kept_.emplace_back();
  } else if (n_ == 0 || !comes_before(number, kept_.back())) {
    return;
  }
  size_t at = kept_.size() - 1;
  for (; at > 0 && comes_before(number, kept_[at - 1]); --at) kept_[at] = kept_[at - 1];
  kept_[at] = number;
  if (kept_.size() == n_) floor_ = kept_.back().value;
}

// Numbers below a bound that n numbers reach are not among the n largest. As long as fewer than n
// are kept, such a bound comes from the numbers themselves: for the 5 largest of 512 attention
// weights, about 6 pass it and are sorted.
void Ranking::offer_all(const float* x, int64_t n, int64_t first) {
  if (n_ == 0) return;
  const RowKernels& kernels = row_kernels();
  int32_t indices[kPartNumbers];
  for (int64_t begin = 0; begin < n; begin += kPartNumbers) {
    const int64_t size = std::min(kPartNumbers, n - begin);
    const float* part = x + begin;
    if (kept_.size() < n_)
      floor_ = std::max(floor_, kernels.reached_by(part, size, static_cast<int64_t>(n_)));
    const int64_t n_offered = kernels.not_below(part, size, floor_, indices);
    for (int64_t i = 0; i < n_offered; ++i) offer(part[indices[i]], first + begin + indices[i]);
  }
}

double dot_f64(std::span<const float> x, std::span<const float> y) {
  constexpr size_t kSums = 4;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= x.size(); i += kSums) {
    for (size_t j = 0; j < kSums; ++j)
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
  }
  for (; i < x.size(); ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace limpid
