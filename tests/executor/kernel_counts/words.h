// The words of kernels/dialect.h, for kernels that run on the host and count. Included by what
// generate.cpp writes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>

#include "executor/gpu/gpu_api.h"
#include "executor/kernel_counts/memory.h"
#include "tensor/codec.h"

namespace limpid::counts {

// The names are the dialect's. NOLINTBEGIN(readability-identifier-naming)
using wide = int64_t;
using uchar = unsigned char;
using uint = unsigned int;
using half_bits = uint16_t;
struct uint2 {
  uint x, y;
};
struct uint4 {
  uint x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
// NOLINTEND(readability-identifier-naming)

// Lets the other items of the group come to the same place.
void wait_for_group();
// The number that another item of the group gives at the same place.
float number_of_item(float x, int item);

// A kernel of a program: the items of a group, and what calls it for the item that runs now.
struct Runner {
  int n_items;
  std::function<void(std::span<const gpu::Argument>)> run;
};
// Enters a program into the table of all.
struct Entry {
  Entry(const std::string& program, std::map<std::string, Runner> kernels);
};
const std::map<std::string, std::map<std::string, Runner>>& programs();

Memory& memory_of(const gpu::Buffer& buffer);

template <class T>
struct Parameter {
  static T of(const gpu::Argument& a) {
    if (a.buffer() != nullptr || a.n_bytes() != sizeof(T))
      throw std::logic_error("a number's type");
    T value;
    std::memcpy(&value, a.value(), sizeof(value));
    return value;
  }
};
template <class T>
struct Parameter<Global<T>> {
  static Global<T> of(const gpu::Argument& a) {
    if (a.buffer() == nullptr) throw std::logic_error("a number for a buffer");
    return Global<T>(&memory_of(*a.buffer()));
  }
};
template <class... P>
auto runner(void (*kernel)(P...)) {
  return [kernel](std::span<const gpu::Argument> arguments) {
    if (arguments.size() != sizeof...(P)) throw std::logic_error("the number of arguments");
    size_t i = 0;
    std::apply(kernel, std::tuple<P...>{Parameter<P>::of(arguments[i++])...});
  };
}

inline float counted_fma(float a, float b, float c) {
  ++now().n_fused;
  return std::fma(a, b, c);
}
inline float counted_exp(float x) {
  ++now().n_exp;
  return std::exp(x);
}
inline float counted_exp2(float x) {
  ++now().n_exp;
  return std::exp2(x);
}

inline float load_half(Global<const half_bits> p, int64_t i) { return f16_to_f32(p[i]); }
inline void floats_of_pair(uint pair, float* to) {
  to[0] = f16_to_f32(static_cast<half_bits>(pair & 0xffff));
  to[1] = f16_to_f32(static_cast<half_bits>(pair >> 16));
}
inline uint pair_of_floats(float low, float high) {
  return static_cast<uint>(f32_to_f16(low)) | static_cast<uint>(f32_to_f16(high)) << 16;
}
inline void load_2_halves(Global<const half_bits> p, float* to) {
  floats_of_pair(*(Global<const uint>)p, to);
}
inline void load_8_halves(Global<const half_bits> p, float* to) {
  const uint4 pairs = *(Global<const uint4>)p;
  const uint all[] = {pairs.x, pairs.y, pairs.z, pairs.w};
  for (int i = 0; i < 8; ++i)
    to[i] = f16_to_f32(static_cast<half_bits>(all[i / 2] >> (16 * (i % 2))));
}

}  // namespace limpid::counts

#define DIALECT_GIVEN 1
#define FETCH_LINE(p)
#define KERNEL(n_items) void
#define KERNEL_OF_GROUPS(n_items, n_groups) void
#define KERNEL_WITH_LOADER(n_items, n_groups) void
#define FUNCTION inline
#define TABLE const
#define LOCAL
#define LOCAL_ARRAY static
#define LARGE_LOCAL_ARRAY(type, name, n) static type name[n]
#define BARRIER() wait_for_group()
#define BARRIER_OF_ALL() wait_for_group()
#define AWAIT()
#define UNROLL
#define UNROLL_BY(n)
#define ITEM_OF_GROUP() now().item
#define GROUP_X() now().group_x
#define GROUP_Y() now().group_y
#define GROUPS_X() now().groups_x
#define ITEM() (static_cast<wide>(now().group_x) * now().n_items + now().item)
#define FMA(a, b, c) counted_fma(a, b, c)
#define EXP(x) counted_exp(x)
#define EXP2(x) counted_exp2(x)
#define ERF(x) std::erf(x)
#define SQRT(x) std::sqrt(x)
#define MAX(a, b) std::fmax(a, b)
#define MIN(a, b) std::min<int>(a, b)
#define FLOAT_OF_BITS(x) std::bit_cast<float>(static_cast<uint>(x))
#define BITS_OF_FLOAT(x) std::bit_cast<int>(static_cast<float>(x))
#define FLOAT_OVER_BYTE(word, i) FLOAT_OF_BITS((word) >> 8 * (i)&255u | 0x4b000000u)
#define SHUFFLE_XOR(x, lane) number_of_item(x, now().item ^ (lane))
#define LOAD_HALF(p, i) load_half(p, i)
#define STORE_HALF(x, p, i) (p)[i] = f32_to_f16(x)
