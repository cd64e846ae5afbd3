// The dialect that kernels are written in: C with the words below, which compiles as OpenCL C 1.2
// and as CUDA C++. The text of this file comes before the text of every kernel; no C++ file
// includes it.
//
//   KERNEL(128) scale(GLOBAL const float* x, float factor, GLOBAL float* y, wide n) {
//     AWAIT();
//     const wide i = ITEM();
//     if (i < n) y[i] = x[i] * factor;
//   }
//
// A kernel runs as a grid of groups, and a group is a fixed number of items (128 above), which
// share local memory and can wait for each other:
//
//   this dialect     OpenCL            CUDA
//   item             work-item         thread
//   group            work-group        block
//   local memory     local             __shared__
//
// KERNEL_OF_GROUPS(128, 1) lets CUDA's compiler give an item as many registers as it likes, even if
// a multiprocessor then holds one group only. KERNEL_WITH_LOADER(128, 1) has 32 more items where
// CUDA compiles for sm_90a (HAS_LOADER).
//
// AWAIT() comes in a kernel before the first access to memory that other launches write. On
// NVIDIA's GPUs since Hopper a kernel begins while the one before still runs ("programmatic
// dependent launch" in CUDA's manual), which hides what it costs to begin. AWAIT lets the next
// kernel begin, and waits for the end of the one before. A kernel may read before AWAIT() what no
// launch of a step writes: weights, what the host wrote before the step, and the KV cache of steps
// before.
//
// Options keep both compilers from fusing products and sums by themselves. FMA is written where it
// is meant, so that a formula gives the same bits in every kernel of one device. 32 neighbouring
// items are a row of lanes; sums.cl.h adds over lanes by shuffles on CUDA, and in local memory on
// OpenCL: PoCL, on which the tests run, has no subgroups.
//
// Both have the vectors uint2, uint4, float2 and float4. A pointer to one must be a multiple of its
// size.
//
// DIALECT_GIVEN: somebody else has defined these words, as tests/executor/kernel_counts does to run
// kernels on the host and count what they read.
#if defined(DIALECT_GIVEN)
#elif defined(__OPENCL_VERSION__)

#pragma OPENCL FP_CONTRACT OFF

typedef long wide;         // 64 bits: offsets into weights
typedef ushort half_bits;  // an IEEE half, as it lies in memory

// NVIDIA's OpenCL has no variadic macros.
#define KERNEL(n_items) kernel __attribute__((reqd_work_group_size(n_items, 1, 1))) void
#define KERNEL_OF_GROUPS(n_items, n_groups) KERNEL(n_items)
#define KERNEL_WITH_LOADER(n_items, n_groups) KERNEL(n_items)
#define FUNCTION static inline
#define TABLE constant  // of constants, at file scope
#define GLOBAL global   // a pointer into the device's memory
#define LOCAL local     // a pointer into local memory
#define LOCAL_ARRAY local
#define LARGE_LOCAL_ARRAY(type, name, n) local type name[n]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define BARRIER_OF_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define AWAIT()
#define FETCH_LINE(p)
#ifdef ON_CPU  // where an unrolled text takes minutes to compile and runs no faster
#define UNROLL _Pragma("nounroll")
#define UNROLL_BY(n) _Pragma("nounroll")
#else
#define UNROLL _Pragma("unroll")
#define UNROLL_BY(n) PRAGMA(unroll n)
#endif
#define PRAGMA(x) _Pragma(#x)

#define ITEM_OF_GROUP() ((int)get_local_id(0))
#define GROUP_X() ((int)get_group_id(0))
#define GROUP_Y() ((int)get_group_id(1))
#define GROUPS_X() ((int)get_num_groups(0))
#define ITEM() ((wide)get_global_id(0))

#define FMA(a, b, c) fma(a, b, c)
#define EXP(x) exp(x)
#define EXP2(x) exp2(x)
#define ERF(x) erf(x)
#define SQRT(x) sqrt(x)
#define MAX(a, b) fmax(a, b)
#define MIN(a, b) min(a, b)  // of ints
#define FLOAT_OF_BITS(x) as_float(x)
#define BITS_OF_FLOAT(x) as_int(x)
// 2^23 + byte i of a word, whose last bit counts 1: without the conversion instruction, of which
// GPUs do a quarter as many as of others.
#define FLOAT_OVER_BYTE(word, i) as_float((word) >> 8 * (i)&255u | 0x4b000000u)
// Loads and stores of halves need no cl_khr_fp16.
#define LOAD_HALF(p, i) vload_half((size_t)(i), (GLOBAL const half*)(p))
#define STORE_HALF(x, p, i) vstore_half_rte(x, (size_t)(i), (GLOBAL half*)(p))

// Halves that lie together, as floats: 8 at a multiple of 16 bytes, 2 at a multiple of 4.
FUNCTION void load_8_halves(GLOBAL const half_bits* p, float* to) {
  vstore8(vload_half8(0, (GLOBAL const half*)p), 0, to);
}
FUNCTION void load_2_halves(GLOBAL const half_bits* p, float* to) {
  vstore2(vload_half2(0, (GLOBAL const half*)p), 0, to);
}
// Two halves in a word.
FUNCTION void floats_of_pair(uint pair, float* to) {
  vstore2(vload_half2(0, (const half*)&pair), 0, to);
}
FUNCTION uint pair_of_floats(float low, float high) {
  uint pair;
  vstore_half2_rte((float2)(low, high), 0, (half*)&pair);
  return pair;
}

#else  // CUDA

typedef long long wide;
typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short half_bits;

#define KERNEL(n_items) extern "C" __global__ void __launch_bounds__(n_items)
#define KERNEL_OF_GROUPS(n_items, n_groups) \
  extern "C" __global__ void __launch_bounds__(n_items, n_groups)
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_LOADER
#define KERNEL_WITH_LOADER(n_items, n_groups) KERNEL_OF_GROUPS((n_items) + 32, n_groups)
#else
#define KERNEL_WITH_LOADER(n_items, n_groups) KERNEL_OF_GROUPS(n_items, n_groups)
#endif
#define FUNCTION static __device__ __forceinline__
#define TABLE static __constant__
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY __shared__
// More than 48 KB, or as much as the launch says: the only such array of a kernel. It begins where
// a row of memory banks does: of any other 128 bytes, tensor cores read half at a time.
#define LARGE_LOCAL_ARRAY(type, name, n) extern __shared__ __align__(128) type name[]
#define BARRIER() __syncthreads()
// The same, also for what the group has written to the device's memory.
#define BARRIER_OF_ALL() __syncthreads()
#if __CUDA_ARCH__ >= 900
#define AWAIT() asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory")
#else
#define AWAIT()
#endif
// Brings the 128 bytes at p into the device's cache.
#define FETCH_LINE(p) asm volatile("prefetch.global.L2 [%0];" ::"l"(p))
#define UNROLL _Pragma("unroll")
#define UNROLL_BY(n) PRAGMA(unroll n)
#define PRAGMA(x) _Pragma(#x)

#define ITEM_OF_GROUP() ((int)threadIdx.x)
#define GROUP_X() ((int)blockIdx.x)
#define GROUP_Y() ((int)blockIdx.y)
#define GROUPS_X() ((int)gridDim.x)
#define ITEM() ((wide)blockIdx.x * blockDim.x + threadIdx.x)

#define FMA(a, b, c) fmaf(a, b, c)
#define EXP(x) expf(x)
#define EXP2(x) power_of_two(x)
#define ERF(x) erff(x)
#define SQRT(x) sqrtf(x)
#define MAX(a, b) fmaxf(a, b)
#define MIN(a, b) min(a, b)
#define FLOAT_OF_BITS(x) __uint_as_float(x)
#define SHUFFLE_XOR(x, lane) __shfl_xor_sync(0xffffffffu, x, lane)
#define BITS_OF_FLOAT(x) __float_as_int(x)
// From a variable, because two constants are one more than the instruction takes: the compiler
// would put one of them into a register each time.
__constant__ uint kTwoTo23 = 0x4b000000u;
#define FLOAT_OVER_BYTE(word, i) __uint_as_float(__byte_perm(word, kTwoTo23, 0x7650 + (i)))
#define LOAD_HALF(p, i) float_of_half((p)[i])
#define STORE_HALF(x, p, i) (p)[i] = half_of_float(x)

// One instruction each. The header cuda_fp16.h would do the same, but a machine with a driver alone
// does not have it.
FUNCTION float float_of_half(half_bits h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
FUNCTION half_bits half_of_float(float x) {
  half_bits h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
// 2^x within 2^-22 of itself, and 0 for what is below 2^-126.
FUNCTION float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FUNCTION void floats_of_pair(uint pair, float* to) {
  to[0] = float_of_half((half_bits)(pair & 0xffffu));
  to[1] = float_of_half((half_bits)(pair >> 16));
}
FUNCTION uint pair_of_floats(float low, float high) {
  return (uint)half_of_float(low) | (uint)half_of_float(high) << 16;
}
FUNCTION void load_2_halves(const half_bits* p, float* to) { floats_of_pair(*(const uint*)p, to); }
FUNCTION void load_8_halves(const half_bits* p, float* to) {
  const uint4 pairs = *(const uint4*)p;
  floats_of_pair(pairs.x, to);
  floats_of_pair(pairs.y, to + 2);
  floats_of_pair(pairs.z, to + 4);
  floats_of_pair(pairs.w, to + 6);
}

#endif

#define FETCHED_LINE 128  // bytes that FETCH_LINE brings

FUNCTION void load_4_floats(GLOBAL const float* p, float* to) {
  const float4 x = *(GLOBAL const float4*)p;
  to[0] = x.x;
  to[1] = x.y;
  to[2] = x.z;
  to[3] = x.w;
}
FUNCTION void load_2_floats(GLOBAL const float* p, float* to) {
  const float2 x = *(GLOBAL const float2*)p;
  to[0] = x.x;
  to[1] = x.y;
}
FUNCTION void store_4_floats(const float* x, GLOBAL float* to) {
  float4 all;
  all.x = x[0];
  all.y = x[1];
  all.z = x[2];
  all.w = x[3];
  *(GLOBAL float4*)to = all;
}
