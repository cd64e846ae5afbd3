// The dialect that kernels are written in: C with the words below, which compiles as OpenCL C 1.2
// and as CUDA C++. The text of this file comes before the text of every kernel; no C++ file
// includes it.
//
//   KERNEL(128) scale(GLOBAL const float* x, float factor, GLOBAL float* y, wide n) {
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
// Both compilers are told not to fuse products and sums by themselves. FMA is written where it is
// meant, so that a formula gives the same bits in every kernel of one device. Subgroups (warps) are
// not used: PoCL, on which the tests run, has none.
#ifdef __OPENCL_VERSION__

#pragma OPENCL FP_CONTRACT OFF

typedef long wide;         // 64 bits: offsets into weights
typedef ushort half_bits;  // an IEEE half, as it lies in memory

#define KERNEL(n_items) kernel __attribute__((reqd_work_group_size(n_items, 1, 1))) void
#define FUNCTION static inline
#define TABLE constant  // of constants, at file scope
#define GLOBAL global   // a pointer into the device's memory
#define LOCAL local     // a pointer into local memory
#define LOCAL_ARRAY local
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define UNROLL _Pragma("unroll")

#define ITEM_OF_GROUP() ((int)get_local_id(0))
#define GROUP_X() ((int)get_group_id(0))
#define GROUP_Y() ((int)get_group_id(1))
#define ITEM() ((wide)get_global_id(0))

#define FMA(a, b, c) fma(a, b, c)
#define EXP(x) exp(x)
#define ERF(x) erf(x)
#define SQRT(x) sqrt(x)
#define MAX(a, b) fmax(a, b)
#define FLOAT_OF_BITS(x) as_float(x)
// Loads and stores of halves need no cl_khr_fp16.
#define LOAD_HALF(p, i) vload_half((size_t)(i), (GLOBAL const half*)(p))
#define STORE_HALF(x, p, i) vstore_half_rte(x, (size_t)(i), (GLOBAL half*)(p))

#else  // CUDA

typedef long long wide;
typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short half_bits;

#define KERNEL(n_items) extern "C" __global__ void __launch_bounds__(n_items)
#define FUNCTION static __device__ __forceinline__
#define TABLE static __constant__
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY __shared__
#define BARRIER() __syncthreads()
#define UNROLL _Pragma("unroll")

#define ITEM_OF_GROUP() ((int)threadIdx.x)
#define GROUP_X() ((int)blockIdx.x)
#define GROUP_Y() ((int)blockIdx.y)
#define ITEM() ((wide)blockIdx.x * blockDim.x + threadIdx.x)

#define FMA(a, b, c) fmaf(a, b, c)
#define EXP(x) expf(x)
#define ERF(x) erff(x)
#define SQRT(x) sqrtf(x)
#define MAX(a, b) fmaxf(a, b)
#define FLOAT_OF_BITS(x) __uint_as_float(x)
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

#endif

#define NEGATIVE_INFINITY FLOAT_OF_BITS(0xff800000u)

// Sum and maximum of what the items of a group give, for all of them. `shared` has an element for
// each item; n_items is a power of two. Element i takes i + n/2, then i + n/4, …: one order,
// whatever the device.
FUNCTION float sum_of_group(float x, LOCAL float* shared, int n_items) {
  const int i = ITEM_OF_GROUP();
  BARRIER();
  shared[i] = x;
  for (int half_of = n_items / 2; half_of > 0; half_of /= 2) {
    BARRIER();
    if (i < half_of) shared[i] += shared[i + half_of];
  }
  BARRIER();
  return shared[0];
}
FUNCTION float max_of_group(float x, LOCAL float* shared, int n_items) {
  const int i = ITEM_OF_GROUP();
  BARRIER();
  shared[i] = x;
  for (int half_of = n_items / 2; half_of > 0; half_of /= 2) {
    BARRIER();
    if (i < half_of) shared[i] = MAX(shared[i], shared[i + half_of]);
  }
  BARRIER();
  return shared[0];
}
