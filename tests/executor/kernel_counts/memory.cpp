#include "executor/kernel_counts/memory.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace limpid::counts {

Now& now() {
  static Now the_now;
  return the_now;
}

void Now::begin_group() {
  ++group;
  n_accesses.assign(static_cast<size_t>(n_items), 0);
  requests.resize(static_cast<size_t>(n_items + kWarpItems - 1) / kWarpItems);
  for (auto& warp : requests) {
    for (auto& sectors : warp) sectors.clear();
  }
}

std::byte* Memory::touch(int64_t offset, uint64_t n, bool is_store) {
  const auto at = static_cast<uint64_t>(offset);
  if (offset < 0 || at > n_bytes() || n > n_bytes() - at)
    throw std::out_of_range("byte " + std::to_string(offset) + " of " + std::to_string(n_bytes()));
  if (at % n != 0)
    throw std::logic_error(std::to_string(offset) + " is not a multiple of " + std::to_string(n));
  const uint8_t mark = is_store ? 2 : 1;
  for (uint64_t i = at; i < at + n; ++i) {
    traffic_.bytes += (marks_[i] & mark) == 0 ? 1 : 0;
    marks_[i] |= mark;
  }
  // n divides a sector, so the access lies in one.
  const uint64_t sector = at / kSectorBytes;
  if (last_group_[sector] != now().group) {
    last_group_[sector] = now().group;
    traffic_.of_groups += kSectorBytes;
  }
  auto& warp = now().requests[static_cast<size_t>(now().item / kWarpItems)];
  const uint64_t number = now().n_accesses[static_cast<size_t>(now().item)]++;
  if (number >= warp.size()) warp.resize(number + 1);
  const auto address = reinterpret_cast<uintptr_t>(data_.data()) + sector * kSectorBytes;
  auto& sectors = warp[number];
  if (std::find(sectors.rbegin(), sectors.rend(), address) == sectors.rend()) {
    sectors.push_back(address);
    traffic_.asked += kSectorBytes;
  }
  return data_.data() + at;
}

Traffic Memory::take_traffic() {
  std::ranges::fill(marks_, uint8_t{0});
  return std::exchange(traffic_, {});
}

}  // namespace limpid::counts
