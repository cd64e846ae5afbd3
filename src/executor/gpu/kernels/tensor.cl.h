// Linear layers on tensor cores, for `--products f16`: y[t, r] = x[t] . W[r] + bias[r] with W
// and x rounded to halves and sums in f32. Fragments are those of fragments.cl.h.
//
// A dot product does not care which of its columns are called 2t. So of a chunk of 32 columns item
// t takes octet t, its first half for one fragment and its second half for the next: what a decoder
// gives is a fragment already, and 16 bytes of halves are the parts of two fragments of x.
//
// One order of addition, whichever kernel runs. Two chunks are a span, and span s belongs to lane
// s % 8. A lane multiplies its chunks one after the other into one sum, and the lanes' sums are
// added from 0 to 7. An element of c depends on its own row and token only. So the result of a
// token has the same bits alone, in a batch and in a prompt, whatever order the hardware has
// within a fragment.

#define CHUNK_OCTETS 4
#define CHUNK (CHUNK_OCTETS * OCTET)
#define SPAN_CHUNKS 2
#define K_LANES 8         // of a dot product
#define MOST_FRAGMENTS 8  // of x, which tensor_some takes together

// ---- x as halves --------------------------------------------------------------------------------

// A row of x is multiplied by a power of two that brings its largest element to [2^13, 2^14), so
// none overflows, and elements down to 2^-27 of the largest keep all bits of a half. The rows have
// whole chunks, filled up with zeros: uint4 [n_tokens, CHUNK_OCTETS * n_chunks], or whole spans in
// the tiles of tensor_many.cl.h. Then come the numbers that undo the scaling, float [n_tokens]. A
// group is a row.
#define TENSOR_TILE 128  // tokens, and rows of W

FUNCTION int octets_of_chunks(int cols) { return (cols + CHUNK - 1) / CHUNK * CHUNK_OCTETS; }
FUNCTION int octets_of_spans(int cols) {
  return (cols + SPAN_CHUNKS * CHUNK - 1) / (SPAN_CHUNKS * CHUNK) * SPAN_CHUNKS * CHUNK_OCTETS;
}

// How many tokens there is memory for before those numbers.
FUNCTION wide tokens_with_room(int n_tokens, int in_tiles) {
  return in_tiles ? (wide)(n_tokens + TENSOR_TILE - 1) / TENSOR_TILE * TENSOR_TILE : n_tokens;
}

// Stores octet o of a token. In a tile, word j of octet t of a chunk is word t of octet j.
FUNCTION void store_halves(uint4 octet, int token, int o, int n_octets, int in_tiles,
                           GLOBAL uint4* halves) {
  if (in_tiles) {
    const wide tile = (wide)(token / TENSOR_TILE) * TENSOR_TILE * n_octets;
    GLOBAL uint4* chunk = halves + tile + o / CHUNK_OCTETS * CHUNK_OCTETS * TENSOR_TILE;
    GLOBAL uint* to = (GLOBAL uint*)(chunk + token % TENSOR_TILE) + o % CHUNK_OCTETS;
    to[0] = octet.x;
    to[4 * TENSOR_TILE] = octet.y;
    to[8 * TENSOR_TILE] = octet.z;
    to[12 * TENSOR_TILE] = octet.w;
  } else {
    halves[(wide)token * n_octets + o] = octet;
  }
}

#define HALVE_ITEMS 256
#define HALVED_AT_ONCE 4  // octets of an item, so that it loads all before it stores the first one
KERNEL(256)
halve(GLOBAL const float* x, GLOBAL uint4* halves, int cols, int n_tokens, int in_tiles) {
  AWAIT();
  LOCAL_ARRAY float shared[HALVE_ITEMS];
  const int item = ITEM_OF_GROUP();
  const int n_octets = in_tiles ? octets_of_spans(cols) : octets_of_chunks(cols);
  const int n_at_once = HALVED_AT_ONCE * HALVE_ITEMS;
  GLOBAL const float* row = x + (wide)GROUP_X() * cols;
  float v[HALVED_AT_ONCE][OCTET];
  float largest = 0;
  for (int begin = 0; begin < n_octets; begin += n_at_once) {
    UNROLL for (int j = 0; j < HALVED_AT_ONCE; ++j)
        load_x(row, (begin + item + j * HALVE_ITEMS) * OCTET, cols, v[j]);
    UNROLL for (int j = 0; j < HALVED_AT_ONCE; ++j) {
      UNROLL for (int i = 0; i < OCTET; ++i) largest = MAX(largest, MAX(v[j][i], -v[j][i]));
    }
  }
  shared[item] = largest;
  for (int half_of = HALVE_ITEMS / 2; half_of > 0; half_of /= 2) {
    BARRIER();
    if (item < half_of) shared[item] = MAX(shared[item], shared[item + half_of]);
  }
  BARRIER();
  // The exponent as f32 stores it, at least that of 2^-100, so that both factors are normal.
  const int stored = BITS_OF_FLOAT(shared[0]) >> 23;
  const uint exponent = (uint)(stored < 27 ? 27 : stored);
  const float factor = FLOAT_OF_BITS((267u - exponent) << 23);
  for (int begin = 0; begin < n_octets; begin += n_at_once) {
    UNROLL for (int j = 0; j < HALVED_AT_ONCE; ++j) {
      const int o = begin + item + j * HALVE_ITEMS;
      if (n_octets > n_at_once) load_x(row, o * OCTET, cols, v[j]);
      UNROLL for (int i = 0; i < OCTET; ++i) v[j][i] *= factor;
      if (o < n_octets)
        store_halves(halves_of_floats(v[j]), GROUP_X(), o, n_octets, in_tiles, halves);
    }
  }
  GLOBAL float* undo = (GLOBAL float*)(halves + tokens_with_room(n_tokens, in_tiles) * n_octets);
  if (item == 0) undo[GROUP_X()] = FLOAT_OF_BITS((exponent - 13u) << 23);
}

// ---- fragments ----------------------------------------------------------------------------------

// Octet o of a row of W as words of two halves. Octets beyond the last one, which fill the last
// chunk or span up, are 0, and rows beyond the last one are the last.
FUNCTION uint4 halves_of_octet(GLOBAL const uchar* weight, int rows, int n_octets, int row, int o) {
  float w[OCTET];
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = 0;
  if (o < n_octets) decode_octet(weight, rows, n_octets, MIN(row, rows - 1), o, w);
  return halves_of_floats(w);
}

// Octet o of a token's halves. A chunk that is not there counts as 0, also where W's 0 would meet
// NaN.
FUNCTION uint4 octet_of_x(GLOBAL const uint4* token, int n_chunks, int o) {
  uint4 halves;
  halves.x = halves.y = halves.z = halves.w = 0;
  if (o < n_chunks * CHUNK_OCTETS) halves = token[o];
  return halves;
}

// The i-th chunk of a lane, whether it is there or not.
FUNCTION int chunk_of_lane(int lane, int i) {
  return (i / SPAN_CHUNKS * K_LANES + lane) * SPAN_CHUNKS + i % SPAN_CHUNKS;
}

// ---- few and some tokens ------------------------------------------------------------------------

// Adds the products of a lane's chunk with all tokens of the tile.
FUNCTION void add_chunk(const Matrix* m, const int n_fragments, GLOBAL const uint4* x, int cols,
                        int n_tokens, int row, int first, int chunk, float* c,
                        LOCAL float* meeting) {
  const int g = ITEM_OF_GROUP() / 4 % 8;
  const int t = ITEM_OF_GROUP() % 4;
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_chunks = (n_octets + CHUNK_OCTETS - 1) / CHUNK_OCTETS;
  const int o = chunk * CHUNK_OCTETS + t;
  const uint4 low = halves_of_octet(m->weight, m->rows, n_octets, row, o);
  const uint4 high = halves_of_octet(m->weight, m->rows, n_octets, row + 8, o);
  UNROLL_FRAGMENTS for (int j = 0; j < n_fragments; ++j) {
    const wide token = MIN(first + j * FRAGMENT_TOKENS + g, n_tokens - 1);
    const uint4 of_token = octet_of_x(x + token * n_chunks * CHUNK_OCTETS, n_chunks, o);
    multiply_chunk(low, high, of_token, c + 4 * j, meeting);
  }
}

// A group computes 16 rows for a tile of 8 or 64 tokens. A warp is a lane of the dot products, and
// reads its fragments from the device's memory. sums [WARPS, tile, FRAGMENT_ROWS]
FUNCTION void multiply_rows(const Matrix* m, const int n_fragments, GLOBAL const uint4* x, int cols,
                            int n_tokens, LOCAL float* sums, LOCAL float* meeting) {
  const int item = ITEM_OF_GROUP();
  const int lane = item / LANES;
  const int g = item / 4 % 8;
  const int t = item % 4;
  const int tile = n_fragments * FRAGMENT_TOKENS;
  const int n_chunks = (cols + CHUNK - 1) / CHUNK;
  const int row = m->group * FRAGMENT_ROWS + g;
  const int first = GROUP_Y() * tile;
  float c[4 * MOST_FRAGMENTS];
  UNROLL_FRAGMENTS for (int i = 0; i < 4 * n_fragments; ++i) c[i] = 0;
  // All lanes go as often, because the items of a group may have to meet.
  const int n_spans = (n_chunks + SPAN_CHUNKS - 1) / SPAN_CHUNKS;
  const int n = (n_spans + K_LANES - 1) / K_LANES * SPAN_CHUNKS;
  if (n_fragments == 1) {  // two chunks at a time, so that more loads are on their way
    UNROLL_SPAN for (int i = 0; i < n; ++i) add_chunk(m, n_fragments, x, cols, n_tokens, row, first,
                                                      chunk_of_lane(lane, i), c, meeting);
  } else {
    for (int i = 0; i < n; ++i)
      add_chunk(m, n_fragments, x, cols, n_tokens, row, first, chunk_of_lane(lane, i), c, meeting);
  }
  UNROLL_FRAGMENTS for (int j = 0; j < n_fragments; ++j) {
    UNROLL for (int i = 0; i < 4; ++i) {
      const int token = j * FRAGMENT_TOKENS + 2 * t + i % 2;
      sums[(lane * tile + token) * FRAGMENT_ROWS + g + i / 2 * 8] = c[4 * j + i];
    }
  }
  BARRIER();
  GLOBAL const float* undo = (GLOBAL const float*)(x + (wide)n_tokens * n_chunks * CHUNK_OCTETS);
  for (int i = item; i < tile * FRAGMENT_ROWS; i += WARPS * LANES) {
    const int token = first + i / FRAGMENT_ROWS;
    const int out = m->group * FRAGMENT_ROWS + i % FRAGMENT_ROWS;
    if (token < n_tokens && out < m->rows) {
      float total = 0;
      UNROLL for (int l = 0; l < K_LANES; ++l) total += sums[l * tile * FRAGMENT_ROWS + i];
      store_output(m, token, out, total * undo[token]);
    }
  }
}

// Up to 8 tokens. Grid: (rows / 16, 1).
KERNEL_OF_GROUPS(256, 1)
tensor_few(MATRICES, GLOBAL const uint4* x, int cols, int n_tokens) {
  AWAIT();
  LOCAL_ARRAY float sums[WARPS * FRAGMENT_TOKENS * FRAGMENT_ROWS];
  MEETING(meeting);
  const Matrix m = MATRIX_OF(GROUP_X(), FRAGMENT_ROWS);
  multiply_rows(&m, 1, x, cols, n_tokens, sums, MEETING_OF(meeting));
}

// 9 to 64 tokens. Grid: (rows / 16, n_tokens / 64).
KERNEL_OF_GROUPS(256, 2)
tensor_some(MATRICES, GLOBAL const uint4* x, int cols, int n_tokens) {
  AWAIT();
  LOCAL_ARRAY float sums[WARPS * MOST_FRAGMENTS * FRAGMENT_TOKENS * FRAGMENT_ROWS];
  MEETING(meeting);
  const Matrix m = MATRIX_OF(GROUP_X(), FRAGMENT_ROWS);
  multiply_rows(&m, MOST_FRAGMENTS, x, cols, n_tokens, sums, MEETING_OF(meeting));
}
