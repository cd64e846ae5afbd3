#include "train/ranks.h"

#include <algorithm>

#include "base/divide_up.h"

namespace limpid {

bool Ranks::any(bool here) {
  const double value = here ? 1 : 0;
  return std::ranges::count(gather({&value, 1}), 1.0) > 0;
}

// Seven items on three ranks: rank 0 computes 0, 3, 6, rank 1 computes 1, 4, rank 2 computes 2, 5.
// The gathered lists are all of length 3, and item i is at place i / 3 of rank i % 3.
std::vector<double> Ranks::compute(int64_t n_items,
                                   const std::function<double(int64_t i)>& compute) {
  const int64_t n_each = divide_up(n_items, size());
  std::vector<double> own(static_cast<size_t>(n_each));
  for (int64_t i = rank(); i < n_items; i += size())
    own[static_cast<size_t>(i / size())] = compute(i);
  const std::vector<double> by_rank = gather(own);
  std::vector<double> results;
  for (int64_t i = 0; i < n_items; ++i)
    results.push_back(by_rank[static_cast<size_t>(i % size() * n_each + i / size())]);
  return results;
}

}  // namespace limpid
