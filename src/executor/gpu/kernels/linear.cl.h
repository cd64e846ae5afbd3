// y[t, r] = x[t] . W[r] + bias[r]; x [n_tokens, cols], W [rows, cols] of one type, y [n_tokens,
// rows].
//
// One order of addition, whichever kernel runs. The columns are cut into octets, and octet o
// belongs to lane o % 32, so that neighbouring lanes read neighbouring octets of the row and of x.
// A lane adds its octets one after the other, each element by FMA, and the lanes are added from 0
// to 31, then the bias. With 512 columns, 64 octets:
//
//   lane 0: columns 0 … 7, 256 … 263     lane 1: columns 8 … 15, 264 … 271     …
//   y = ((lane 0 + lane 1) + lane 2) + … + lane 31 + bias
//
// For few tokens the lanes are items that work side by side. For many tokens an item computes whole
// outputs and goes through the lanes in turn, four at a time, which needs a sum for each of the
// four and one for the lanes before. So the result of a token has the same bits alone, in a batch
// and in a prompt.

#define LANE_ROWS 4   // rows of lanes of linear_few
#define FEW_TOKENS 8  // of linear_few, in one pass over the weights
#define MOST_ROWS 4   // that a row of lanes computes together, so that x is loaded once for them

// What a row of lanes works on: n_rows rows from `row` on, and a tile of tokens from `first` on.
// Beyond the last row, and the last token, those are computed once more, and not stored.

FUNCTION Row row_of_matrix(const Matrix* m, int row, int cols) {
  const int n_octets = (cols + OCTET - 1) / OCTET;
  return row_of(m->weight, (wide)m->rows * n_octets, MIN(row, m->rows - 1), n_octets);
}

// Adds the products of octet o of n_rows rows with a tile of tokens from `first` on. The weights
// are decoded once for all of the tokens, and x is loaded once for all of the rows. sums [tile,
// n_rows]
FUNCTION void add_octet(const Row* rows, const int n_rows, const int tile, GLOBAL const float* x,
                        int cols, int n_tokens, int first, int o, float* sums) {
  float w[MOST_ROWS][OCTET];
  UNROLL for (int i = 0; i < n_rows; ++i) {
    const Loaded octet = load_octet(rows + i, o, 0);
    decode(&octet, w[i]);
  }
  UNROLL for (int t = 0; t < tile; ++t) {
    float of_token[OCTET];
    load_x(x + (wide)MIN(first + t, n_tokens - 1) * cols, o * OCTET, cols, of_token);
    UNROLL for (int i = 0; i < n_rows; ++i) {
      UNROLL for (int k = 0; k < OCTET; ++k) sums[t * n_rows + i] =
          FMA(w[i][k], of_token[k], sums[t * n_rows + i]);
    }
  }
}

// Puts a lane's sum of an output of the group where the item that adds the lanes finds it. shared
// [outputs, LANES + 1]; the one more lets the columns fall into different memory banks.
FUNCTION void share_lane(LOCAL float* shared, int output, float sum) {
  shared[output * (LANES + 1) + ITEM_OF_GROUP() % LANES] = sum;
}
FUNCTION float add_lanes(LOCAL const float* shared, int output) {
  float total = 0;
  UNROLL for (int i = 0; i < LANES; ++i) total += shared[output * (LANES + 1) + i];
  return total;
}

// ---- one token ----------------------------------------------------------------------------------

// While a token is generated, a launch that does little costs as much as reading megabytes of
// weights. So these kernels can also do what comes before and after the product:
//
//   NORMED  x is normed first, and `normed` receives the result
//   ADDS    sum = addend + y
#define NORMED 1
#define ADDS 2
#define FUSED                                                                                   \
  GLOBAL const float *norm_weight, GLOBAL float *normed, float eps, GLOBAL const float *addend, \
      GLOBAL float *sum, int fused
#define FUSED_NAMES norm_weight, normed, eps, addend, sum, fused

#define ONE_ITEMS NORM_ITEMS               // of a group
#define ONE_LANE_ROWS (ONE_ITEMS / LANES)  // rows of lanes of a group
#define SEGMENT 1024                       // octets of x that lie in local memory
#define NORMED_OCTETS 512                  // of a row that is normed, at most
#define MOST_OF_BATCH 8                    // octets of a lane

// Puts octet i of a segment into local memory: the first halves of the octets lie there, then the
// second ones, so that lanes read neighbouring float4.
FUNCTION void stage_octet(const float* v, int i, LOCAL float4* of_x) {
  const float4 low = {v[0], v[1], v[2], v[3]};
  const float4 high = {v[4], v[5], v[6], v[7]};
  of_x[i] = low;
  of_x[SEGMENT + i] = high;
}

// Puts a segment of x into local memory, from octet `begin` on. An item loads all its octets before
// it stores the first one.
FUNCTION void stage_x(GLOBAL const float* x, int cols, int begin, LOCAL float4* of_x) {
  float v[SEGMENT / ONE_ITEMS][OCTET];
  UNROLL for (int j = 0; j < SEGMENT / ONE_ITEMS; ++j)
      load_x(x, (begin + ITEM_OF_GROUP() + j * ONE_ITEMS) * OCTET, cols, v[j]);
  BARRIER();
  UNROLL for (int j = 0; j < SEGMENT / ONE_ITEMS; ++j)
      stage_octet(v[j], ITEM_OF_GROUP() + j * ONE_ITEMS, of_x);
  BARRIER();
}

// Norms x and puts it into local memory; the first group stores it too.
FUNCTION void stage_normed(GLOBAL const float* x, int cols, GLOBAL const float* norm_weight,
                           GLOBAL float* normed, float eps, LOCAL float4* of_x,
                           LOCAL float* shared) {
  float v[NORMED_OCTETS / ONE_ITEMS][OCTET];
  float w[NORMED_OCTETS / ONE_ITEMS][OCTET];
  float squares = 0;
  UNROLL for (int j = 0; j < NORMED_OCTETS / ONE_ITEMS; ++j) {
    const int column = (ITEM_OF_GROUP() + j * ONE_ITEMS) * OCTET;
    load_x(x, column, cols, v[j]);
    load_x(norm_weight, column, cols, w[j]);
  }
  UNROLL for (int j = 0; j < NORMED_OCTETS / ONE_ITEMS; ++j) squares = add_squares(v[j], squares);
  const float factor = norm_factor(squares, cols, eps, shared);
  UNROLL for (int j = 0; j < NORMED_OCTETS / ONE_ITEMS; ++j) {
    const int o = ITEM_OF_GROUP() + j * ONE_ITEMS;
    norm_octet(v[j], factor, w[j]);
    stage_octet(v[j], o, of_x);
    if (GROUP_X() == 0) store_x(v[j], normed, o * OCTET, cols);
  }
  BARRIER();
}

// Adds the products of octet i of the segment. w [n_rows]
FUNCTION void add_staged(const int n_rows, LOCAL const float4* of_x, int i, float (*w)[OCTET],
                         float* sums) {
  const float4 low = of_x[i];
  const float4 high = of_x[SEGMENT + i];
  const float of_token[OCTET] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  UNROLL for (int r = 0; r < n_rows; ++r) {
    UNROLL for (int k = 0; k < OCTET; ++k) sums[r] = FMA(w[r][k], of_token[k], sums[r]);
  }
}

// A batch: octets o, o + 32, o + 64, … of each row, all of which are there. to [batch, n_rows]
FUNCTION void load_batch(const Row* rows, const int n_rows, const int batch, int o, Loaded* to) {
  UNROLL for (int b = 0; b < batch; ++b) {
    UNROLL for (int r = 0; r < n_rows; ++r) to[b * n_rows + r] = load_octet(rows + r, o, b);
  }
}

// A tile is what a group computes at a time: n_rows rows for each row of lanes. They are
// neighbours, or (IS_GATED) the same row of both matrices.
#define IS_GATED 1
FUNCTION int tiles_of(int rows, const int n_rows) {
  return (rows + ONE_LANE_ROWS * n_rows - 1) / (ONE_LANE_ROWS * n_rows);
}
FUNCTION void rows_of_tile(int tile, const int n_rows, const int is_gated, int cols, Row* rows,
                           MATRICES) {
  const int lane_row = ITEM_OF_GROUP() / LANES;
  if (is_gated) {
    const Matrix gate = {weight_0, bias_0, y_0, rows_0, 0, tile};
    const Matrix up = {weight_1, bias_1, y_1, rows_1, 0, tile};
    rows[0] = row_of_matrix(&gate, tile * ONE_LANE_ROWS + lane_row, cols);
    rows[1] = row_of_matrix(&up, tile * ONE_LANE_ROWS + lane_row, cols);
  } else {
    const Matrix m = MATRIX_OF(tile, ONE_LANE_ROWS * n_rows);
    UNROLL for (int r = 0; r < n_rows; ++r) rows[r] =
        row_of_matrix(&m, (m.group * ONE_LANE_ROWS + lane_row) * n_rows + r, cols);
  }
}

// Adds the lanes of a tile's outputs and stores them. An item is one output, or a pair of them.
FUNCTION void store_tile(int tile, const int n_rows, const int is_gated, const float* sums,
                         LOCAL float* shared, MATRICES, FUSED) {
  const int item = ITEM_OF_GROUP();
  UNROLL for (int r = 0; r < n_rows; ++r) share_lane(shared, item / LANES * n_rows + r, sums[r]);
  BARRIER();
  if (is_gated) {
    const Matrix gate = {weight_0, bias_0, y_0, rows_0, biases & 1, tile};
    const Matrix up = {weight_1, bias_1, y_1, rows_1, biases & 2, tile};
    const int out = tile * ONE_LANE_ROWS + item;
    if (item >= ONE_LANE_ROWS || out >= gate.rows) return;
    const float g = with_bias(&gate, out, add_lanes(shared, 2 * item));
    const float u = with_bias(&up, out, add_lanes(shared, 2 * item + 1));
    gate.y[out] = g;
    up.y[out] = u;
    sum[out] = silu(g) * u;
  } else {
    const Matrix m = MATRIX_OF(tile, ONE_LANE_ROWS * n_rows);
    const int out = m.group * ONE_LANE_ROWS * n_rows + item;
    if (item >= ONE_LANE_ROWS * n_rows || out >= m.rows) return;
    const float y = with_bias(&m, out, add_lanes(shared, item));
    m.y[out] = y;
    if (fused & ADDS) sum[out] = addend[out] + y;
  }
}

#define SHARED_OF_TILE(n_rows) (ONE_LANE_ROWS * (n_rows) * (LANES + 1))

// A group goes through its tiles, a batch of octets at a time, and the next batch, of this tile or
// the next one, is on its way meanwhile. The first one comes while the launches before still run.
// There are as many groups as the device runs at the same time, so x is put into local memory once.
// shared: for two tiles, because some items still add the lanes of one when others are done with
// the next.
FUNCTION void multiply_one(const int n_rows, const int batch, const int is_gated,
                           GLOBAL const float* x, int cols, LOCAL float4* of_x, LOCAL float* shared,
                           MATRICES, FUSED) {
  const int lane = ITEM_OF_GROUP() % LANES;
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_of_batches = n_octets / (batch * LANES) * (batch * LANES);
  const int n_tiles =
      is_gated ? tiles_of(rows_0, 1)
               : tiles_of(rows_0, n_rows) + tiles_of(rows_1, n_rows) + tiles_of(rows_2, n_rows);
  Row rows[MOST_ROWS];
  Loaded next[MOST_OF_BATCH];
  rows_of_tile(GROUP_X(), n_rows, is_gated, cols, rows, MATRIX_NAMES);
  if (n_of_batches > 0) load_batch(rows, n_rows, batch, lane, next);
  AWAIT();
  for (int tile = GROUP_X(), turn = 0; tile < n_tiles; tile += GROUPS_X(), turn ^= 1) {
    float sums[MOST_ROWS];
    float w[MOST_ROWS][OCTET];
    int o = lane;
    UNROLL for (int r = 0; r < n_rows; ++r) sums[r] = 0;
    for (int begin = 0; begin < n_octets; begin += SEGMENT) {
      if (tile != GROUP_X() && n_octets <= SEGMENT) {
        // x is there
      } else if (fused & NORMED) {
        stage_normed(x, cols, norm_weight, normed, eps, of_x, shared);
      } else {
        stage_x(x, cols, begin, of_x);
      }
      const int end = MIN(begin + SEGMENT, n_octets);
      while (o < MIN(end, n_of_batches)) {
        Loaded loaded[MOST_OF_BATCH];
        UNROLL for (int i = 0; i < batch * n_rows; ++i) loaded[i] = next[i];
        const int at = o - begin;
        o += batch * LANES;
        if (o < n_of_batches) {
          load_batch(rows, n_rows, batch, o, next);
        } else if (tile + GROUPS_X() < n_tiles) {
          rows_of_tile(tile + GROUPS_X(), n_rows, is_gated, cols, rows, MATRIX_NAMES);
          load_batch(rows, n_rows, batch, lane, next);
        }
        UNROLL for (int b = 0; b < batch; ++b) {
          UNROLL for (int r = 0; r < n_rows; ++r) decode(loaded + b * n_rows + r, w[r]);
          add_staged(n_rows, of_x, at + b * LANES, w, sums);
        }
      }
      if (o < end) {  // what is left when the batches are done
        Row here[MOST_ROWS];
        rows_of_tile(tile, n_rows, is_gated, cols, here, MATRIX_NAMES);
        UNROLL_BY(1) for (; o < end; o += LANES) {
          UNROLL for (int r = 0; r < n_rows; ++r) {
            const Loaded octet = load_octet(here + r, o, 0);
            decode(&octet, w[r]);
          }
          add_staged(n_rows, of_x, o - begin, w, sums);
        }
      }
    }
    store_tile(tile, n_rows, is_gated, sums, shared + turn * SHARED_OF_TILE(n_rows), MATRIX_NAMES,
               FUSED_NAMES);
  }
}

#if defined(WEIGHT_f32)
#define BATCH_ONE (MOST_OF_BATCH / 2)  // a lane's registers hold no more
#else
#define BATCH_ONE MOST_OF_BATCH
#endif
#define BATCH_TWO (BATCH_ONE / 2)

// Tiles of 8 rows.
KERNEL_OF_GROUPS(256, 2)
linear_one(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[2 * SHARED_OF_TILE(1)];
  multiply_one(1, BATCH_ONE, 0, x, cols, of_x, shared, MATRIX_NAMES, FUSED_NAMES);
}

// Tiles of 16 rows, for so many rows that there are tiles enough: x is read from local memory once
// for two of them.
KERNEL_OF_GROUPS(256, 2)
linear_one_of_many(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[2 * SHARED_OF_TILE(2)];
  multiply_one(2, BATCH_TWO, 0, x, cols, of_x, shared, MATRIX_NAMES, FUSED_NAMES);
}

// Two matrices of one shape, gate and up, in tiles of 8 rows of both; then sum = silu(gate) * up.
KERNEL_OF_GROUPS(256, 2)
linear_one_gated(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[2 * SHARED_OF_TILE(2)];
  multiply_one(2, BATCH_TWO, IS_GATED, x, cols, of_x, shared, MATRIX_NAMES, FUSED_NAMES);
}

// ---- few tokens ---------------------------------------------------------------------------------

// 2 to 16 tokens. Grid: (rows / 16, n_tokens / 8).
#define ROWS_FEW 4
KERNEL(128)
linear_few(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  AWAIT();
  LOCAL_ARRAY float shared[FEW_TOKENS * LANE_ROWS * ROWS_FEW * (LANES + 1)];
  const Matrix m = MATRIX_OF(GROUP_X(), LANE_ROWS * ROWS_FEW);
  const int item = ITEM_OF_GROUP();
  const int row = (m.group * LANE_ROWS + item / LANES) * ROWS_FEW;
  const int first = GROUP_Y() * FEW_TOKENS;
  Row rows[ROWS_FEW];
  float sums[FEW_TOKENS * ROWS_FEW];
  UNROLL for (int i = 0; i < ROWS_FEW; ++i) rows[i] = row_of_matrix(&m, row + i, cols);
  UNROLL for (int i = 0; i < FEW_TOKENS * ROWS_FEW; ++i) sums[i] = 0;
  UNROLL_BY(1)
  for (int o = item % LANES; o < (cols + OCTET - 1) / OCTET; o += LANES)
    add_octet(rows, ROWS_FEW, FEW_TOKENS, x, cols, n_tokens, first, o, sums);
  const int rows_of_group = LANE_ROWS * ROWS_FEW;
  UNROLL for (int t = 0; t < FEW_TOKENS; ++t) {
    UNROLL for (int i = 0; i < ROWS_FEW; ++i)
        share_lane(shared, t * rows_of_group + item / LANES * ROWS_FEW + i, sums[t * ROWS_FEW + i]);
  }
  BARRIER();
  // Now an item is one output.
  const int token = first + item / rows_of_group;
  const int out = m.group * rows_of_group + item % rows_of_group;
  if (item < FEW_TOKENS * rows_of_group && token < n_tokens && out < m.rows)
    store_output(&m, token, out, add_lanes(shared, item));
}

// ---- some and many tokens -----------------------------------------------------------------------

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
