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

// Octet o of each row. w [n_rows]
FUNCTION void decode_rows(const Matrix* m, const int n_rows, int n_octets, int row, int o,
                          float (*w)[OCTET]) {
  UNROLL for (int i = 0; i < n_rows; ++i) decode_octet(
      m->weight, (wide)m->rows * n_octets, (wide)MIN(row + i, m->rows - 1) * n_octets + o, w[i]);
}

// Adds the products of octet o. The weights are decoded once for all of the tokens, and x is loaded
// once for all of the rows. sums [tile, n_rows]
FUNCTION void add_octet(const Matrix* m, const int n_rows, const int tile, GLOBAL const float* x,
                        int cols, int n_tokens, int row, int first, int o, float* sums) {
  const int n_octets = (cols + OCTET - 1) / OCTET;
  float w[MOST_ROWS][OCTET];
  decode_rows(m, n_rows, n_octets, row, o, w);
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

#define ONE_ITEMS NORM_ITEMS               // of a group
#define ONE_LANE_ROWS (ONE_ITEMS / LANES)  // rows of lanes of a group
#define SEGMENT 512                        // octets of x that lie in local memory
#define MOST_OF_BATCH 8                    // octets of a lane

// Puts octet i of a segment into local memory: the first halves of the octets lie there, then the
// second ones, so that lanes read neighbouring float4.
FUNCTION void stage_octet(const float* v, int i, LOCAL float4* of_x) {
  const float4 low = {v[0], v[1], v[2], v[3]};
  const float4 high = {v[4], v[5], v[6], v[7]};
  of_x[i] = low;
  of_x[SEGMENT + i] = high;
}

// Puts a segment of x into local memory, from octet `begin` on.
FUNCTION void stage_x(GLOBAL const float* x, int cols, int begin, LOCAL float4* of_x) {
  const int n = MIN((cols + OCTET - 1) / OCTET - begin, SEGMENT);
  BARRIER();
  for (int i = ITEM_OF_GROUP(); i < n; i += ONE_ITEMS) {
    float v[OCTET];
    load_x(x, (begin + i) * OCTET, cols, v);
    stage_octet(v, i, of_x);
  }
  BARRIER();
}

// Norms x, which is no longer than a segment, and puts it into local memory.
FUNCTION void stage_normed(GLOBAL const float* x, int cols, GLOBAL const float* norm_weight,
                           GLOBAL float* normed, float eps, LOCAL float4* of_x,
                           LOCAL float* shared) {
  float v[SEGMENT / ONE_ITEMS][OCTET];
  float w[SEGMENT / ONE_ITEMS][OCTET];
  float squares = 0;
  UNROLL for (int j = 0; j < SEGMENT / ONE_ITEMS; ++j) {
    const int column = (ITEM_OF_GROUP() + j * ONE_ITEMS) * OCTET;
    load_x(x, column, cols, v[j]);
    load_x(norm_weight, column, cols, w[j]);
  }
  UNROLL for (int j = 0; j < SEGMENT / ONE_ITEMS; ++j) squares = add_squares(v[j], squares);
  const float factor = norm_factor(squares, cols, eps, shared);
  UNROLL for (int j = 0; j < SEGMENT / ONE_ITEMS; ++j) {
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

// A row of lanes computes n_rows rows, a batch of octets at a time, and the next batch is on its
// way meanwhile. The first one comes while the launches before still run. sums [n_rows]
FUNCTION void multiply_one(const Row* rows, const int n_rows, const int batch,
                           GLOBAL const float* x, int cols, GLOBAL const float* norm_weight,
                           GLOBAL float* normed, float eps, int fused, LOCAL float4* of_x,
                           LOCAL float* shared, float* sums) {
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_of_batches = n_octets / (batch * LANES) * (batch * LANES);
  int o = ITEM_OF_GROUP() % LANES;
  Loaded next[MOST_OF_BATCH];
  float w[MOST_ROWS][OCTET];
  UNROLL for (int r = 0; r < n_rows; ++r) sums[r] = 0;
  if (o < n_of_batches) load_batch(rows, n_rows, batch, o, next);
  AWAIT();
  for (int begin = 0; begin < n_octets; begin += SEGMENT) {
    if (fused & NORMED) {
      stage_normed(x, cols, norm_weight, normed, eps, of_x, shared);
    } else {
      stage_x(x, cols, begin, of_x);
    }
    const int end = MIN(begin + SEGMENT, n_octets);
    while (o < MIN(end, n_of_batches)) {
      Loaded now[MOST_OF_BATCH];
      UNROLL for (int i = 0; i < batch * n_rows; ++i) now[i] = next[i];
      const int at = o - begin;
      o += batch * LANES;
      if (o < n_of_batches) load_batch(rows, n_rows, batch, o, next);
      UNROLL for (int b = 0; b < batch; ++b) {
        UNROLL for (int r = 0; r < n_rows; ++r) decode(now + b * n_rows + r, w[r]);
        add_staged(n_rows, of_x, at + b * LANES, w, sums);
      }
    }
    UNROLL_BY(4) for (; o < end; o += LANES) {
      UNROLL for (int r = 0; r < n_rows; ++r) {
        const Loaded octet = load_octet(rows + r, o, 0);
        decode(&octet, w[r]);
      }
      add_staged(n_rows, of_x, o - begin, w, sums);
    }
  }
}

// The first of the rows that the item's row of lanes computes; the last one if there is none.
FUNCTION int row_of_lanes(const Matrix* m, const int n_rows) {
  return m->group * ONE_LANE_ROWS * n_rows + ITEM_OF_GROUP() / LANES * n_rows;
}
FUNCTION Row row_of_matrix(const Matrix* m, int row, int cols) {
  const int n_octets = (cols + OCTET - 1) / OCTET;
  return row_of(m->weight, (wide)m->rows * n_octets, (wide)MIN(row, m->rows - 1) * n_octets);
}

// Adds the lanes and stores n_rows outputs for each row of lanes.
FUNCTION void store_rows(const Matrix* m, const int n_rows, const float* sums,
                         GLOBAL const float* addend, GLOBAL float* sum, int fused,
                         LOCAL float* shared) {
  const int item = ITEM_OF_GROUP();
  BARRIER();  // norms used `shared`
  UNROLL for (int r = 0; r < n_rows; ++r) share_lane(shared, item / LANES * n_rows + r, sums[r]);
  BARRIER();
  const int out = m->group * ONE_LANE_ROWS * n_rows + item;
  if (item >= ONE_LANE_ROWS * n_rows || out >= m->rows) return;
  const float y = with_bias(m, out, add_lanes(shared, item));
  m->y[out] = y;
  if (fused & ADDS) sum[out] = addend[out] + y;
}

#if defined(WEIGHT_f32)
#define BATCH_ONE (MOST_OF_BATCH / 2)  // a lane's registers hold no more
#else
#define BATCH_ONE MOST_OF_BATCH
#endif
#define BATCH_MANY (BATCH_ONE / 2)

// Grid: rows / 8.
KERNEL_OF_GROUPS(256, 2)
linear_one(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[ONE_LANE_ROWS * (LANES + 1)];
  const Matrix m = MATRIX_OF(GROUP_X(), ONE_LANE_ROWS);
  const Row rows[1] = {row_of_matrix(&m, row_of_lanes(&m, 1), cols)};
  float sums[1];
  multiply_one(rows, 1, BATCH_ONE, x, cols, norm_weight, normed, eps, fused, of_x, shared, sums);
  store_rows(&m, 1, sums, addend, sum, fused, shared);
}

// The same for so many rows that there are groups enough: x is read once for two of them. Grid:
// rows / 16.
KERNEL_OF_GROUPS(256, 2)
linear_one_of_many(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[ONE_LANE_ROWS * 2 * (LANES + 1)];
  const Matrix m = MATRIX_OF(GROUP_X(), ONE_LANE_ROWS * 2);
  const int row = row_of_lanes(&m, 2);
  const Row rows[2] = {row_of_matrix(&m, row, cols), row_of_matrix(&m, row + 1, cols)};
  float sums[2];
  multiply_one(rows, 2, BATCH_MANY, x, cols, norm_weight, normed, eps, fused, of_x, shared, sums);
  store_rows(&m, 2, sums, addend, sum, fused, shared);
}

// Two matrices of one shape, gate and up, and then sum = silu(gate) * up: a row of lanes computes
// the same row of both. Grid: rows / 8.
KERNEL_OF_GROUPS(256, 2)
linear_one_gated(MATRICES, GLOBAL const float* x, int cols, FUSED) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[ONE_LANE_ROWS * 2 * (LANES + 1)];
  const Matrix gate = {weight_0, bias_0, y_0, rows_0, biases & 1, GROUP_X()};
  const Matrix up = {weight_1, bias_1, y_1, rows_1, biases & 2, GROUP_X()};
  const int item = ITEM_OF_GROUP();
  const int row = row_of_lanes(&gate, 1);
  const Row rows[2] = {row_of_matrix(&gate, row, cols), row_of_matrix(&up, row, cols)};
  float sums[2];
  multiply_one(rows, 2, BATCH_MANY, x, cols, norm_weight, normed, eps, fused, of_x, shared, sums);
  BARRIER();
  UNROLL for (int r = 0; r < 2; ++r) share_lane(shared, item / LANES * 2 + r, sums[r]);
  BARRIER();
  const int out = GROUP_X() * ONE_LANE_ROWS + item;
  if (item >= ONE_LANE_ROWS || out >= gate.rows) return;
  const float g = with_bias(&gate, out, add_lanes(shared, 2 * item));
  const float u = with_bias(&up, out, add_lanes(shared, 2 * item + 1));
  gate.y[out] = g;
  up.y[out] = u;
  sum[out] = silu(g) * u;
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
  float sums[FEW_TOKENS * ROWS_FEW];
  UNROLL for (int i = 0; i < FEW_TOKENS * ROWS_FEW; ++i) sums[i] = 0;
  UNROLL_BY(1)
  for (int o = item % LANES; o < (cols + OCTET - 1) / OCTET; o += LANES)
    add_octet(&m, ROWS_FEW, FEW_TOKENS, x, cols, n_tokens, row, first, o, sums);
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

// Prompts: a group computes a tile of 64 rows by 64 tokens, an item 4 by 4 of it. 32 columns of
// both lie in local memory at a time, turned, so that items read neighbouring floats: an item
// decodes one octet of W's tile [32, 64] and copies one of x's. Grid: (rows / 64, n_tokens / 64).
#define TILE 64
#define PER_ITEM 4
#define TILE_LANES 4  // whose octets are in a tile
#define TILE_COLS (TILE_LANES * OCTET)
KERNEL(256)
linear_many(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  AWAIT();
  LOCAL_ARRAY float w_tile[TILE_COLS][TILE + 1];  // one more, for the memory banks
  LOCAL_ARRAY float x_tile[TILE_COLS][TILE + 1];
  const Matrix m = MATRIX_OF(GROUP_X(), TILE);
  const int item = ITEM_OF_GROUP();
  const int first_row = m.group * TILE;
  const int first_token = GROUP_Y() * TILE;
  const int my_row = item % 16;  // of the tile: my_row + 16 i
  const int my_token = item / 16;
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int load_row = MIN(first_row + item / TILE_LANES, m.rows - 1);
  const int load_token = MIN(first_token + item / TILE_LANES, n_tokens - 1);
  const int octet = item % TILE_LANES;  // of the tile
  float total[PER_ITEM][PER_ITEM];
  UNROLL for (int i = 0; i < PER_ITEM * PER_ITEM; ++i) total[i / PER_ITEM][i % PER_ITEM] = 0;
  for (int lane = 0; lane < LANES && lane < n_octets; lane += TILE_LANES) {
    float sum[TILE_LANES][PER_ITEM][PER_ITEM];
    UNROLL for (int l = 0; l < TILE_LANES; ++l) {
      UNROLL for (int i = 0; i < PER_ITEM * PER_ITEM; ++i) sum[l][i / PER_ITEM][i % PER_ITEM] = 0;
    }
    for (int begin = lane; begin < n_octets; begin += LANES) {
      const int o = begin + octet;
      float w[OCTET];
      float of_token[OCTET];
      UNROLL for (int k = 0; k < OCTET; ++k) w[k] = of_token[k] = 0;
      if (o < n_octets) {
        decode_octet(m.weight, (wide)m.rows * n_octets, (wide)load_row * n_octets + o, w);
        load_x(x + (wide)load_token * cols, o * OCTET, cols, of_token);
      }
      BARRIER();
      UNROLL for (int k = 0; k < OCTET; ++k) {
        w_tile[octet * OCTET + k][item / TILE_LANES] = w[k];
        x_tile[octet * OCTET + k][item / TILE_LANES] = of_token[k];
      }
      BARRIER();
      UNROLL for (int l = 0; l < TILE_LANES; ++l) {
        for (int k = l * OCTET; k < (l + 1) * OCTET; ++k) {
          UNROLL for (int i = 0; i < PER_ITEM; ++i) {
            const float of_row = w_tile[k][my_row + 16 * i];
            UNROLL for (int j = 0; j < PER_ITEM; ++j) sum[l][i][j] =
                FMA(of_row, x_tile[k][my_token + 16 * j], sum[l][i][j]);
          }
        }
      }
    }
    UNROLL for (int l = 0; l < TILE_LANES; ++l) {
      UNROLL for (int i = 0; i < PER_ITEM; ++i) {
        UNROLL for (int j = 0; j < PER_ITEM; ++j) total[i][j] += sum[l][i][j];
      }
    }
  }
  UNROLL for (int i = 0; i < PER_ITEM; ++i) {
    const int row = first_row + my_row + 16 * i;
    UNROLL for (int j = 0; j < PER_ITEM; ++j) {
      const int token = first_token + my_token + 16 * j;
      if (row < m.rows && token < n_tokens) store_output(&m, token, row, total[i][j]);
    }
  }
}
