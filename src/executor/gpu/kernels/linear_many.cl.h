// Linear layers of more than 16 tokens, in the order of addition of linear.cl.h.
//
// A group computes a tile of row_quads * 64 rows by token_quads * 64 tokens; an item 4 by 4 of each
// 64 by 64. The octets of n_lanes lanes of W and x lie in local memory at a time, turned, so that
// items read neighbouring float4; what comes next is loaded meanwhile. What an item keeps in
// registers grows with all three numbers; what it reads from local memory for a product shrinks
// with the first two.
//
// Octets lie in local memory as [column, row], and those of the second lane with a bit of the row
// flipped, and so on: neighbouring items store the octets of neighbouring lanes, and then of the
// next row, which would fall into the same memory banks otherwise.
#define TILE_ITEMS 256
#define QUAD_ROWS 64
#define MOST_QUADS 2
#define MOST_TILE_LANES 4
#define MOST_BROUGHT 2  // octets that an item brings of W, or of x

FUNCTION int turned_row(int row, int lane, const int n_lanes) {
  return row ^ lane * (32 / n_lanes);
}
FUNCTION void store_turned(const float* v, LOCAL float* tile, int lane, int row, const int n_lanes,
                           const int n_rows) {
  LOCAL float* to = tile + lane * OCTET * n_rows + turned_row(row, lane, n_lanes);
  UNROLL for (int k = 0; k < OCTET; ++k) to[k * n_rows] = v[k];
}
FUNCTION void load_turned(LOCAL const float* tile, int column, int row, const int n_lanes,
                          const int n_rows, float* v) {
  const float4 quad =
      *(LOCAL const float4*)(tile + column * n_rows + turned_row(row, column / OCTET, n_lanes));
  v[0] = quad.x;
  v[1] = quad.y;
  v[2] = quad.z;
  v[3] = quad.w;
}

// The first of the next n_lanes octets, which belong to the same lanes or, when these are done, to
// the next ones. n_octets behind the last.
FUNCTION int next_octets(int o, const int n_lanes, int n_octets) {
  if (o + LANES < n_octets) return o + LANES;
  const int lane = o % LANES + n_lanes;
  return lane < LANES ? MIN(lane, n_octets) : n_octets;
}

FUNCTION void multiply_many(const int row_quads, const int token_quads, const int n_lanes,
                            const Matrix* m, GLOBAL const float* x, int cols, int n_tokens,
                            LOCAL float* w_tile, LOCAL float* x_tile) {
  const int tile_rows = row_quads * QUAD_ROWS;
  const int tile_tokens = token_quads * QUAD_ROWS;
  const int rows_at_once = TILE_ITEMS / n_lanes;  // whose octets are brought together
  const int w_brought = (tile_rows + rows_at_once - 1) / rows_at_once;
  const int x_brought = (tile_tokens + rows_at_once - 1) / rows_at_once;
  const int item = ITEM_OF_GROUP();
  const int first_row = m->group * tile_rows;
  const int first_token = GROUP_Y() * tile_tokens;
  const int my_row = item % 16 * 4;  // of a quad
  const int my_token = item / 16 * 4;
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int lane = item % n_lanes;  // whose octets the item brings
  const int row = item / n_lanes;   // and of which row and token, the first time
  Loaded of_w[MOST_BROUGHT];
  int tokens[MOST_BROUGHT];
  float of_x[MOST_BROUGHT][OCTET];
  float total[MOST_QUADS * 4][MOST_QUADS * 4];
  float sum[MOST_TILE_LANES][MOST_QUADS * 4][MOST_QUADS * 4];
  UNROLL for (int i = 0; i < w_brought; ++i) {
    const Row place = row_of_matrix(m, first_row + i * rows_at_once + row, cols);
    if (lane < n_octets) of_w[i] = load_octet(&place, lane, 0);
  }
  UNROLL for (int i = 0; i < row_quads * 4; ++i) {
    UNROLL for (int j = 0; j < token_quads * 4; ++j) {
      total[i][j] = 0;
      UNROLL for (int l = 0; l < n_lanes; ++l) sum[l][i][j] = 0;
    }
  }
  AWAIT();
  UNROLL for (int i = 0; i < x_brought; ++i) {
    tokens[i] = MIN(first_token + i * rows_at_once + row, n_tokens - 1);
    load_x(x + (wide)tokens[i] * cols, lane * OCTET, cols, of_x[i]);
  }
  for (int begin = 0; begin < n_octets;) {
    BARRIER();
    UNROLL for (int i = 0; i < w_brought; ++i) {
      float w[OCTET];
      UNROLL for (int k = 0; k < OCTET; ++k) w[k] = 0;
      if (begin + lane < n_octets) decode(of_w + i, w);
      if (i * rows_at_once + row < tile_rows)
        store_turned(w, w_tile, lane, i * rows_at_once + row, n_lanes, tile_rows);
    }
    UNROLL for (int i = 0; i < x_brought; ++i) {
      if (i * rows_at_once + row < tile_tokens)
        store_turned(of_x[i], x_tile, lane, i * rows_at_once + row, n_lanes, tile_tokens);
    }
    BARRIER();
    const int next = next_octets(begin, n_lanes, n_octets);
    UNROLL for (int l = 0; l < n_lanes; ++l) {
      if (l == n_lanes - 1) {  // late, which takes fewer registers
        if (next + lane < n_octets) {
          UNROLL for (int i = 0; i < w_brought; ++i) {
            const Row place = row_of_matrix(m, first_row + i * rows_at_once + row, cols);
            of_w[i] = load_octet(&place, next + lane, 0);
          }
        }
        UNROLL for (int i = 0; i < x_brought; ++i)
            load_x(x + (wide)tokens[i] * cols, (next + lane) * OCTET, cols, of_x[i]);
      }
      UNROLL for (int k = l * OCTET; k < (l + 1) * OCTET; ++k) {
        float w[MOST_QUADS * 4];
        float v[MOST_QUADS * 4];
        UNROLL for (int q = 0; q < row_quads; ++q)
            load_turned(w_tile, k, q * QUAD_ROWS + my_row, n_lanes, tile_rows, w + 4 * q);
        UNROLL for (int q = 0; q < token_quads; ++q)
            load_turned(x_tile, k, q * QUAD_ROWS + my_token, n_lanes, tile_tokens, v + 4 * q);
        UNROLL for (int i = 0; i < row_quads * 4; ++i) {
          UNROLL for (int j = 0; j < token_quads * 4; ++j) sum[l][i][j] =
              FMA(w[i], v[j], sum[l][i][j]);
        }
      }
    }
    if (next >= n_octets || next % LANES != begin % LANES) {  // these lanes are done
      UNROLL for (int i = 0; i < row_quads * 4; ++i) {
        UNROLL for (int j = 0; j < token_quads * 4; ++j) {
          UNROLL for (int l = 0; l < n_lanes; ++l) {
            total[i][j] += sum[l][i][j];
            sum[l][i][j] = 0;
          }
        }
      }
    }
    begin = next;
  }
  UNROLL for (int i = 0; i < row_quads * 4; ++i) {
    const int out = first_row + i / 4 * QUAD_ROWS + my_row + i % 4;
    UNROLL for (int j = 0; j < token_quads * 4; ++j) {
      const int t = first_token + j / 4 * QUAD_ROWS + my_token + j % 4;
      if (out < m->rows && t < n_tokens) store_output(m, t, out, total[i][j]);
    }
  }
}

// Three sizes of tiles: the largest that leaves few units of the device without work.
//
//                rows   tokens   lanes
//   linear_some    64       64       4
//   linear_more   128       64       4
//   linear_many   128      128       2
//
// Grid: rows and tokens, each in tiles.
KERNEL_OF_GROUPS(256, 1)
linear_some(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  LOCAL_ARRAY float4 w_tile[4 * OCTET * 1 * QUAD_ROWS / 4];
  LOCAL_ARRAY float4 x_tile[4 * OCTET * 1 * QUAD_ROWS / 4];
  const Matrix m = MATRIX_OF(GROUP_X(), 1 * QUAD_ROWS);
  multiply_many(1, 1, 4, &m, x, cols, n_tokens, (LOCAL float*)w_tile, (LOCAL float*)x_tile);
}

KERNEL_OF_GROUPS(256, 1)
linear_more(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  LOCAL_ARRAY float4 w_tile[4 * OCTET * 2 * QUAD_ROWS / 4];
  LOCAL_ARRAY float4 x_tile[4 * OCTET * 1 * QUAD_ROWS / 4];
  const Matrix m = MATRIX_OF(GROUP_X(), 2 * QUAD_ROWS);
  multiply_many(2, 1, 4, &m, x, cols, n_tokens, (LOCAL float*)w_tile, (LOCAL float*)x_tile);
}

KERNEL_OF_GROUPS(256, 1)
linear_many(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  LOCAL_ARRAY float4 w_tile[2 * OCTET * 2 * QUAD_ROWS / 4];
  LOCAL_ARRAY float4 x_tile[2 * OCTET * 2 * QUAD_ROWS / 4];
  const Matrix m = MATRIX_OF(GROUP_X(), 2 * QUAD_ROWS);
  multiply_many(2, 2, 2, &m, x, cols, n_tokens, (LOCAL float*)w_tile, (LOCAL float*)x_tile);
}
