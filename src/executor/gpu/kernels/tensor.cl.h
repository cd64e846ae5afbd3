// Linear layers on tensor cores, for `--gpu-products f16`: y[t, r] = x[t] . W[r] + bias[r] with W
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
// none overflows, and elements down to 2^-28 of the largest keep all bits of a half. The rows have
// whole chunks, filled up with zeros: uint4 [n_tokens, CHUNK_OCTETS * n_chunks], then the numbers
// that undo the scaling, float [n_tokens]. A group is a row.
KERNEL(128) halve(GLOBAL const float* x, GLOBAL uint4* halves, int cols, int n_tokens) {
  AWAIT();
  LOCAL_ARRAY float shared[128];
  const int item = ITEM_OF_GROUP();
  const int n_octets = (cols + CHUNK - 1) / CHUNK * CHUNK_OCTETS;
  GLOBAL const float* row = x + (wide)GROUP_X() * cols;
  float largest = 0;
  for (int i = item; i < cols; i += 128) {
    const float value = row[i];
    largest = MAX(largest, MAX(value, -value));
  }
  shared[item] = largest;
  for (int half_of = 64; half_of > 0; half_of /= 2) {
    BARRIER();
    if (item < half_of) shared[item] = MAX(shared[item], shared[item + half_of]);
  }
  BARRIER();
  // The exponent as f32 stores it, at least that of 2^-100, so that both factors are normal.
  const int stored = BITS_OF_FLOAT(shared[0]) >> 23;
  const uint exponent = (uint)(stored < 27 ? 27 : stored);
  const float factor = FLOAT_OF_BITS((267u - exponent) << 23);
  UNROLL_BY(1) for (int o = item; o < n_octets; o += 128) {
    float values[OCTET];
    UNROLL for (int i = 0; i < OCTET; ++i) values[i] =
        OCTET * o + i < cols ? row[OCTET * o + i] * factor : 0.0f;
    halves[(wide)GROUP_X() * n_octets + o] = halves_of_floats(values);
  }
  GLOBAL float* undo = (GLOBAL float*)(halves + (wide)n_tokens * n_octets);
  if (item == 0) undo[GROUP_X()] = FLOAT_OF_BITS((exponent - 13u) << 23);
}

// ---- fragments ----------------------------------------------------------------------------------

// Octet o of a row of W as words of two halves. Octets beyond the last one, which fill the last
// chunk up, are 0, and rows beyond the last one are the last.
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

// The products of a chunk: of the octets of rows g and g + 8, and that of token g.
FUNCTION void multiply_chunk(uint4 low, uint4 high, uint4 token, float* c, LOCAL float* meeting) {
  const uint a_first[4] = {low.x, high.x, low.y, high.y};
  const uint a_second[4] = {low.z, high.z, low.w, high.w};
  const uint b_first[2] = {token.x, token.y};
  const uint b_second[2] = {token.z, token.w};
  multiply_fragments(a_first, b_first, c, meeting);
  multiply_fragments(a_second, b_second, c, meeting);
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

// ---- prompts ------------------------------------------------------------------------------------

// Many tokens need each weight many times, so W is decoded first, a few tiles of 128 rows at a
// time, into whole fragments: for a chunk of 16 rows, an item's parts of two fragments are one
// uint4 each.
//
//   uint4 [n_tiles, n_chunks, TILE_FRAGMENTS, 2, LANES]
//
// An item makes two of them, of rows g and g + 8. The tiles of several matrices follow each other;
// these begin with tile `first`.
#define TENSOR_TILE 128  // rows, and tokens
#define TILE_FRAGMENTS (TENSOR_TILE / FRAGMENT_ROWS)
KERNEL(128)
halve_tiles(MATRICES, GLOBAL uint4* halves, int cols, int first, int n_tiles) {
  AWAIT();
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_chunks = (cols + CHUNK - 1) / CHUNK;
  const int lane = (int)(ITEM() % LANES);
  const wide at = ITEM() / LANES;  // tile, chunk and fragment
  const int fragment = (int)(at % TILE_FRAGMENTS);
  const int chunk = (int)(at / TILE_FRAGMENTS % n_chunks);
  const int tile = (int)(at / TILE_FRAGMENTS / n_chunks);
  if (tile >= n_tiles) return;
  const Matrix m = MATRIX_OF(first + tile, TENSOR_TILE);
  const int row = m.group * TENSOR_TILE + fragment * FRAGMENT_ROWS + lane / 4;
  const int o = chunk * CHUNK_OCTETS + lane % 4;
  const uint4 low = halves_of_octet(m.weight, m.rows, n_octets, row, o);
  const uint4 high = halves_of_octet(m.weight, m.rows, n_octets, row + 8, o);
  const uint4 one = {low.x, high.x, low.y, high.y};
  const uint4 two = {low.z, high.z, low.w, high.w};
  halves[2 * LANES * at + lane] = one;
  halves[2 * LANES * at + LANES + lane] = two;
}

// A group computes a tile of 128 rows by 128 tokens, a warp 64 by 32 of it, a span at a time. Spans
// of both lie in local memory, [chunk of the span, W's TILE_OCTETS as `halve_tiles` made them, then
// x's as [token, octet]]. STAGES of them are there or on their way.
#define STAGES 3
#define WARP_ROW_FRAGMENTS 4
#define WARP_TOKEN_FRAGMENTS 4
#define WARP_SUMS (4 * WARP_ROW_FRAGMENTS * WARP_TOKEN_FRAGMENTS)  // of an item
#define TILE_OCTETS (TENSOR_TILE * CHUNK_OCTETS)
#define STAGE_OCTETS (SPAN_CHUNKS * 2 * TILE_OCTETS)
#define OCTETS_OF_ITEM (TILE_OCTETS / (WARPS * LANES))  // of each chunk

// The span after this one: in its lane, or the first one of the next lane; n_spans behind the last.
FUNCTION int next_span(int span, int n_spans) {
  if (span + K_LANES < n_spans) return span + K_LANES;
  const int lane = span % K_LANES + 1;
  return lane < K_LANES ? MIN(lane, n_spans) : n_spans;
}

// Lets a span come into a stage. of_x: where the item's octets of x lie in chunk 0.
FUNCTION void fetch_span(GLOBAL const uint4* w, GLOBAL const uint4* x, const int* of_x, int span,
                         int n_chunks, LOCAL uint4* stage) {
  UNROLL for (int c = 0; c < SPAN_CHUNKS; ++c) {
    const int chunk = span * SPAN_CHUNKS + c;
    if (chunk < n_chunks) {
      UNROLL for (int i = 0; i < OCTETS_OF_ITEM; ++i) {
        const int at = ITEM_OF_GROUP() + i * WARPS * LANES;
        LOCAL uint4* to = stage + c * 2 * TILE_OCTETS + at;
        copy_ahead(to, w + chunk * TILE_OCTETS + at, true);
        copy_ahead(to + TILE_OCTETS, x + of_x[i] + chunk * CHUNK_OCTETS, true);
      }
    }
  }
  END_OF_COPIES();
}

// The products of a chunk in local memory: of the warp's 64 rows and its 32 tokens.
FUNCTION void multiply_tile(LOCAL const uint4* w_tile, LOCAL const uint4* x_tile, int warp_row,
                            int warp_token, float* c, LOCAL float* meeting) {
  const int lane = ITEM_OF_GROUP() % LANES;
  uint4 of_token[WARP_TOKEN_FRAGMENTS];
  UNROLL for (int j = 0; j < WARP_TOKEN_FRAGMENTS; ++j) of_token[j] =
      x_tile[(warp_token + j * FRAGMENT_TOKENS) * CHUNK_OCTETS + lane];
  UNROLL_FRAGMENTS for (int i = 0; i < WARP_ROW_FRAGMENTS; ++i) {
    LOCAL const uint4* fragments = w_tile + (warp_row / FRAGMENT_ROWS + i) * 2 * LANES + lane;
    const uint4 one = fragments[0];
    const uint4 two = fragments[LANES];
    const uint a_first[4] = {one.x, one.y, one.z, one.w};
    const uint a_second[4] = {two.x, two.y, two.z, two.w};
    UNROLL_FRAGMENTS for (int j = 0; j < WARP_TOKEN_FRAGMENTS; ++j) {
      const uint b[2] = {of_token[j].x, of_token[j].y};
      multiply_fragments(a_first, b, c + 4 * (i * WARP_TOKEN_FRAGMENTS + j), meeting);
    }
    UNROLL_FRAGMENTS for (int j = 0; j < WARP_TOKEN_FRAGMENTS; ++j) {
      const uint b[2] = {of_token[j].z, of_token[j].w};
      multiply_fragments(a_second, b, c + 4 * (i * WARP_TOKEN_FRAGMENTS + j), meeting);
    }
  }
}

// Scales the sums of the warp back, and stores those of rows and tokens that are there.
FUNCTION void store_tile(const Matrix* m, const float* total, GLOBAL const float* undo,
                         int n_tokens, int first_row, int first_token) {
  const int g = ITEM_OF_GROUP() / 4 % 8;
  const int t = ITEM_OF_GROUP() % 4;
  UNROLL for (int i = 0; i < WARP_SUMS; ++i) {
    const int fragment = i / 4;
    const int row = first_row + fragment / WARP_TOKEN_FRAGMENTS * FRAGMENT_ROWS + g + i % 4 / 2 * 8;
    const int token =
        first_token + fragment % WARP_TOKEN_FRAGMENTS * FRAGMENT_TOKENS + 2 * t + i % 2;
    if (row < m->rows && token < n_tokens) store_output(m, token, row, total[i] * undo[token]);
  }
}

// More than 64 tokens; `halves` has the tiles that begin with `first`. Grid: (n_tokens / 128,
// tiles): groups that run together read the same rows of W.
KERNEL_OF_GROUPS(256, 1)
tensor_many(MATRICES, GLOBAL const uint4* halves, GLOBAL const uint4* x, int cols, int n_tokens,
            int first) {
  LARGE_LOCAL_ARRAY(uint4, stages, STAGES * STAGE_OCTETS);
  MEETING(meeting);
  const Matrix m = MATRIX_OF(first + GROUP_Y(), TENSOR_TILE);
  const int item = ITEM_OF_GROUP();
  const int first_row = m.group * TENSOR_TILE;
  const int first_token = GROUP_X() * TENSOR_TILE;
  // The warp's, within the tile.
  const int warp_row = item / LANES % 2 * WARP_ROW_FRAGMENTS * FRAGMENT_ROWS;
  const int warp_token = item / LANES / 2 * WARP_TOKEN_FRAGMENTS * FRAGMENT_TOKENS;
  const int n_chunks = (cols + CHUNK - 1) / CHUNK;
  GLOBAL const uint4* w = halves + (wide)GROUP_Y() * n_chunks * TILE_OCTETS;
  int of_x[OCTETS_OF_ITEM];
  UNROLL for (int i = 0; i < OCTETS_OF_ITEM; ++i) {
    const int at = item / CHUNK_OCTETS + i * (TENSOR_TILE / OCTETS_OF_ITEM);
    of_x[i] = MIN(first_token + at, n_tokens - 1) * n_chunks * CHUNK_OCTETS + item % CHUNK_OCTETS;
  }
  float total[WARP_SUMS];
  float c[WARP_SUMS];
  UNROLL for (int i = 0; i < WARP_SUMS; ++i) total[i] = c[i] = 0;
  AWAIT();
  const int n_spans = (n_chunks + SPAN_CHUNKS - 1) / SPAN_CHUNKS;
  int fetched = 0;  // the span that is fetched next
  for (int i = 0; i + 1 < STAGES; ++i) {
    fetch_span(w, x, of_x, fetched, n_chunks, stages + i * STAGE_OCTETS);
    fetched = next_span(fetched, n_spans);
  }
  int stage = 0;
  for (int span = 0; span < n_spans;) {
    AWAIT_COPIES(STAGES - 2);
    BARRIER();  // and all items are done with the span before, whose stage is filled again
    fetch_span(w, x, of_x, fetched, n_chunks,
               stages + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE_OCTETS);
    fetched = next_span(fetched, n_spans);
    UNROLL_FRAGMENTS for (int j = 0; j < SPAN_CHUNKS; ++j) {
      LOCAL const uint4* at = stages + stage * STAGE_OCTETS + j * 2 * TILE_OCTETS;
      if (span * SPAN_CHUNKS + j < n_chunks)
        multiply_tile(at, at + TILE_OCTETS, warp_row, warp_token, c, MEETING_OF(meeting));
    }
    const int next = next_span(span, n_spans);
    if (next >= n_spans || next % K_LANES != span % K_LANES) {
      UNROLL for (int j = 0; j < WARP_SUMS; ++j) {
        total[j] += c[j];
        c[j] = 0;
      }
    }
    span = next;
    stage = stage == STAGES - 1 ? 0 : stage + 1;
  }
  store_tile(&m, total, (GLOBAL const float*)(x + (wide)n_tokens * n_chunks * CHUNK_OCTETS),
             n_tokens, first_row + warp_row, first_token + warp_token);
}
