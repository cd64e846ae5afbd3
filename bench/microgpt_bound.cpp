// What a step of `limpid microgpt --engine fast` in f32 cannot go below on this machine: the
// arithmetic of the model, at the rates measured here, one phase behind the other.
// docs/performance.md derives it.

// The widest vectors that the compiler may use here.
#if defined(__AVX512F__)
#define LIMPID_ISA_avx512 1  // NOLINT(readability-identifier-naming): as CMake names it
#elif defined(__AVX2__)
#define LIMPID_ISA_avx2 1  // NOLINT(readability-identifier-naming)
#endif

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "train/microgpt/config.h"
#include "train/microgpt/dataset.h"
#include "train/microgpt/kernels/vectors.h"
#include "train/microgpt/parameters.h"

namespace limpid::LIMPID_ISA {
namespace {

using V = Vector<float>;

double nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The compiler may assume nothing about `v` behind this.
inline void forget(V& v) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(v));
#else
  asm volatile("" : "+w"(v));
#endif
}

// Nanoseconds of `operation` on a vector, best of many rounds, on so many vectors that none waits
// for another. Indices are constants, so that the vectors stay in registers.
template <typename Operation, size_t... kIndex>
double cost(const Operation& operation, std::index_sequence<kIndex...>) {
  constexpr int kTimes = 10000;
  V v[] = {((void)kIndex, V{} - 0.7F)...};
  double best = 1e30;
  for (int round = 0; round < 100; ++round) {
    const double begin = nanoseconds();
    for (int i = 0; i < kTimes; ++i) ((operation(v[kIndex]), forget(v[kIndex])), ...);
    best = std::min(best, (nanoseconds() - begin) / (kTimes * sizeof...(kIndex)));
  }
  return best;
}

struct Names {
  double positions = 0;  // mean of a name
  double pairs = 0;      // of a position and one it may look at
};

Names measure_names(int64_t block_size) {
  const auto dataset = microgpt::Dataset::parse(microgpt::names_text(), "names.txt");
  Names names;
  for (const auto& document : dataset.documents()) {
    const auto n =
        std::min<double>(static_cast<double>(block_size), static_cast<double>(document.size()) + 1);
    names.positions += n;
    names.pairs += n * (n + 1) / 2;
  }
  names.positions /= static_cast<double>(dataset.documents().size());
  names.pairs /= static_cast<double>(dataset.documents().size());
  return names;
}

void report() {
  constexpr auto kVectors = std::make_index_sequence<16>();
  V x = V{} + 0.999F;
  V y = V{} + 0.001F;
  forget(x);
  forget(y);
  const double multiply_add = cost([=](V& v) { v = v * x + y; }, kVectors);
  const double root_and_division = cost([=](V& v) { v = y / root_of<float>(v * v); }, kVectors);
  const double power = cost([=](V& v) { v = exp_of<float>(v); }, kVectors);
  microgpt::Config config = microgpt::preset("python");
  config.shape.vocab_size = 27;
  const auto d = static_cast<double>(config.shape.n_embd);
  const auto n_params = static_cast<double>(microgpt::Matrices(config.shape).n_params);
  const double in_products = 12 * d * d + 27 * d;
  const Names names = measure_names(config.shape.block_size);
  constexpr double kN = kLanes<float>;
  const double products = names.positions * in_products * 3 / kN * multiply_add;
  const double attention = names.pairs * d * 6 / kN * multiply_add;
  const double adam = n_params / kN * root_and_division;
  const double heads = static_cast<double>(config.shape.n_head);
  const double powers = (names.pairs * heads + names.positions * 27) / kN * power;
  fmt::print("vectors of {} floats: multiply-add {:.3f} ns, root and division {:.3f}, exp {:.3f}\n",
             kN, multiply_add, root_and_division, power);
  fmt::print("names: {:.3f} positions, {:.3f} pairs in the mean\n", names.positions, names.pairs);
  fmt::print("products {:.3f} us, attention {:.3f}, Adam {:.3f}, exp {:.3f}: together {:.3f} us\n",
             products / 1e3, attention / 1e3, adam / 1e3, powers / 1e3,
             (products + attention + adam + powers) / 1e3);
}

}  // namespace
}  // namespace limpid::LIMPID_ISA

int main() {
  limpid::LIMPID_ISA::report();
  return 0;
}
