// Fragments of tensor cores, which multiply halves and add in f32.
//
// A warp, 32 items, multiplies a fragment of W [16 rows, 16 columns] by a fragment of x [16
// columns, 8 tokens]. Each item holds a part of the fragments, in words of two halves. With g =
// item / 4 % 8 and t = item % 4, the places are those of mma.m16n8k16 in NVIDIA's PTX manual:
//
//   a[0] row g, columns 2t, 2t + 1      b[0] columns 2t, 2t + 1      c[0] row g, token 2t
//   a[1] row g + 8, the same columns    b[1] columns 2t + 8, 2t + 9  c[1] row g, token 2t + 1
//   a[2] row g, columns 2t + 8, 2t + 9       both of token g         c[2] row g + 8, token 2t
//   a[3] row g + 8, columns 2t + 8, …                                c[3] row g + 8, token 2t + 1
//
// On other devices than CUDA's the warp meets in local memory and adds the 16 products one after
// the other. That tests the places above and the kernels, not the hardware's order.

#define FRAGMENT_ROWS 16
#define FRAGMENT_COLUMNS 16
#define FRAGMENT_TOKENS 8
#define WARPS 8  // of a group

#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ < 800
#error "products of halves need a GPU of compute capability 8.0 or later: use f32"
#endif
#define MEETING(name)
#define MEETING_OF(name) 0
#define UNROLL_FRAGMENTS UNROLL
#define UNROLL_SPAN UNROLL_BY(SPAN_CHUNKS)
// Copies 16 bytes into local memory, or clears them there, while the item works on. The copies up
// to END_OF_COPIES are a batch, and AWAIT_COPIES waits until at most n of the item's batches are on
// their way.
FUNCTION void copy_ahead(uint4* to, const uint4* from, bool is_there) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)__cvta_generic_to_shared(to)),
      "l"(from), "r"(is_there ? 16 : 0)
      : "memory");
}
#define END_OF_COPIES() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT_COPIES(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define AWAIT_ALL_COPIES() asm volatile("cp.async.wait_all;" ::: "memory")

// Word t of octet g of four lists of 8 octets in local memory: list i begins at octet i % 2 * low +
// i / 2 * high.
FUNCTION void load_octets(const uint4* octets, int low, int high, uint* to) {
  const int lane = ITEM_OF_GROUP() % LANES;
  const uint4* octet = octets + lane / 8 % 2 * low + lane / 16 * high + lane % 8;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((uint)__cvta_generic_to_shared(octet))
               : "memory");
}

// c += a b, for a warp.
FUNCTION void multiply_fragments(const uint* a, const uint* b, float* c, LOCAL float* meeting) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
// Floats of a warp: both fragments.
#define MEETING_FLOATS ((FRAGMENT_ROWS + FRAGMENT_TOKENS) * FRAGMENT_COLUMNS)
#define MEETING(name) LOCAL_ARRAY float name[WARPS * MEETING_FLOATS]
#define MEETING_OF(name) name
#define UNROLL_FRAGMENTS  // barriers are not repeated
#define UNROLL_SPAN
FUNCTION void copy_ahead(LOCAL uint4* to, GLOBAL const uint4* from, bool is_there) {
  uint4 octet;
  octet.x = octet.y = octet.z = octet.w = 0;
  if (is_there) octet = *from;
  *to = octet;
}
#define END_OF_COPIES()
#define AWAIT_COPIES(n)
#define AWAIT_ALL_COPIES()

FUNCTION void load_octets(LOCAL const uint4* octets, int low, int high, uint* to) {
  const int g = ITEM_OF_GROUP() / 4 % 8;
  const int t = ITEM_OF_GROUP() % 4;
  for (int i = 0; i < 4; ++i)
    to[i] = ((LOCAL const uint*)(octets + i % 2 * low + i / 2 * high + g))[t];
}

FUNCTION void multiply_fragments(const uint* a, const uint* b, float* c, LOCAL float* meeting) {
  const int g = ITEM_OF_GROUP() / 4 % 8;
  const int t = ITEM_OF_GROUP() % 4;
  LOCAL float* of_w = meeting + ITEM_OF_GROUP() / LANES * MEETING_FLOATS;  // [row, column]
  LOCAL float* of_x = of_w + FRAGMENT_ROWS * FRAGMENT_COLUMNS;             // [token, column]
  float pair[2];
  BARRIER();
  for (int i = 0; i < 4; ++i) {
    floats_of_pair(a[i], pair);
    LOCAL float* to = of_w + (g + i % 2 * 8) * FRAGMENT_COLUMNS + 2 * t + i / 2 * 8;
    to[0] = pair[0];
    to[1] = pair[1];
  }
  for (int i = 0; i < 2; ++i) {
    floats_of_pair(b[i], pair);
    LOCAL float* to = of_x + g * FRAGMENT_COLUMNS + 2 * t + 8 * i;
    to[0] = pair[0];
    to[1] = pair[1];
  }
  BARRIER();
  for (int i = 0; i < 4; ++i) {
    LOCAL const float* row = of_w + (g + i / 2 * 8) * FRAGMENT_COLUMNS;
    LOCAL const float* token = of_x + (2 * t + i % 2) * FRAGMENT_COLUMNS;
    for (int k = 0; k < FRAGMENT_COLUMNS; ++k) c[i] = FMA(row[k], token[k], c[i]);
  }
}
#endif

FUNCTION uint4 halves_of_floats(const float* x) {
  uint4 pairs;
  pairs.x = pair_of_floats(x[0], x[1]);
  pairs.y = pair_of_floats(x[2], x[3]);
  pairs.z = pair_of_floats(x[4], x[5]);
  pairs.w = pair_of_floats(x[6], x[7]);
  return pairs;
}

// The products of a chunk of 32 columns, of which item t has octet t: those of rows g and g + 8
// with that of token g.
FUNCTION void multiply_chunk(uint4 low, uint4 high, uint4 token, float* c, LOCAL float* meeting) {
  const uint a_first[4] = {low.x, high.x, low.y, high.y};
  const uint a_second[4] = {low.z, high.z, low.w, high.w};
  const uint b_first[2] = {token.x, token.y};
  const uint b_second[2] = {token.z, token.w};
  multiply_fragments(a_first, b_first, c, meeting);
  multiply_fragments(a_second, b_second, c, meeting);
}
