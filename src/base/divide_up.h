// Division of whole numbers, rounded up.
#pragma once

#include <concepts>
#include <type_traits>

namespace limpid {

// How many parts of `size` hold `n`: n / size, rounded up. `n` is 0 or more, `size` is 1 or more.
// Unlike (n + size - 1) / size it cannot overflow.
template <std::integral T>
[[nodiscard]] constexpr T divide_up(T n, std::type_identity_t<T> size) {
  return static_cast<T>(n / size + (n % size == 0 ? 0 : 1));
}

}  // namespace limpid
