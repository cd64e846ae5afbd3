#include "insight/row_kernels.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"

namespace limpid {

#define LIMPID_DECLARE(isa)              \
  namespace isa_##isa {                  \
    extern const RowKernels kRowKernels; \
  }
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE)
#undef LIMPID_DECLARE

const RowKernels& row_kernels(const char* isa) {
  struct Entry {
    std::string_view isa;
    const RowKernels* kernels;
  };
#define LIMPID_ENTRY(isa) Entry{#isa, &isa_##isa::kRowKernels},
  static constexpr Entry kEntries[] = {LIMPID_FOR_EACH_ISA(LIMPID_ENTRY)};
#undef LIMPID_ENTRY
  return *std::ranges::find(kEntries, choose_isa(isa).name, &Entry::isa)->kernels;
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

// Blocks whose largest number is too small are passed over.
void Ranking::offer_all(const float* x, int64_t n, int64_t first) {
  constexpr int64_t kBlock = 64;
  float maxima[kPartNumbers / kBlock];
  for (int64_t begin = 0; begin < n; begin += kPartNumbers) {
    const int64_t end = std::min(begin + kPartNumbers, n);
    row_kernels().block_maxima(x + begin, end - begin, kBlock, maxima);
    const float* of_block = maxima;
    for (int64_t i = begin; i < end; ++of_block) {
      const int64_t block_end = std::min(i + kBlock, end);
      if (*of_block < floor_) i = block_end;
      for (; i < block_end; ++i) offer(x[i], first + i);
    }
  }
}

namespace {

// The n largest numbers are in the n blocks with the largest maxima: were one of them in another
// block, n numbers, the maxima of these blocks, would come before it. None of them is smaller than
// the least of n maxima. `blocks` are descending.
std::vector<RankedNumber> largest_within(std::span<const float> x, int64_t block,
                                         std::span<const RankedNumber> blocks, int64_t n) {
  const bool enough = !blocks.empty() && std::ssize(blocks) == n;
  Ranking numbers(std::min(n, std::ssize(x)),
                  enough ? blocks.back().value : -std::numeric_limits<float>::infinity());
  for (const RankedNumber& each : blocks) {
    const int64_t begin = each.index * block;
    const int64_t end = std::min(begin + block, std::ssize(x));
    for (int64_t i = begin; i < end; ++i) numbers.offer(x[static_cast<size_t>(i)], i);
  }
  return {numbers.kept().begin(), numbers.kept().end()};
}

}  // namespace

// Long rows are looked through by the maxima of blocks, and these maxima likewise. So of the 32
// maxima of 512 weights all are looked at for the four strongest, and then 64 weights.
std::vector<RankedNumber> largest_numbers(std::span<const float> x, int64_t n) {
  constexpr int64_t kBlock = 16;
  if (std::ssize(x) <= 4 * kBlock) {
    const RankedNumber whole{-std::numeric_limits<float>::infinity(), 0};
    return largest_within(x, std::ssize(x), {&whole, 1}, n);
  }
  std::vector<float> maxima((x.size() + kBlock - 1) / kBlock);
  row_kernels().block_maxima(x.data(), std::ssize(x), kBlock, maxima.data());
  return largest_within(x, kBlock, largest_numbers(maxima, n), n);
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
