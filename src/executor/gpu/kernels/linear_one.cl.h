// Linear layers of one token, in the order of addition of linear.cl.h.
//
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
  const int of_line = ITEM_OF_GROUP() * (FETCHED_LINE / 4);
  if ((fused & NORMED) && of_line < cols) FETCH_LINE(norm_weight + of_line);
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
