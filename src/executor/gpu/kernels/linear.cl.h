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

// Columns [column, column + 8) of a row of x; those beyond the last are given as 0.
FUNCTION void load_x(GLOBAL const float* row, int column, int cols, float* x) {
  if (cols % 4 == 0 && column + OCTET <= cols) {
    load_4_floats(row + column, x);
    load_4_floats(row + column + 4, x + 4);
  } else {
    UNROLL for (int i = 0; i < OCTET; ++i) x[i] = column + i < cols ? row[column + i] : 0.0f;
  }
}

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

// Adds the lanes of all outputs of the group, and stores them. shared [tile * lane_rows * n_rows,
// LANES + 1]; the one more lets the columns of `shared` fall into different memory banks.
FUNCTION void add_lanes(const Matrix* m, const int lane_rows, const int n_rows, const int tile,
                        const float* sums, int n_tokens, int first, LOCAL float* shared) {
  const int item = ITEM_OF_GROUP();
  const int rows_of_group = lane_rows * n_rows;
  UNROLL for (int t = 0; t < tile; ++t) {
    UNROLL for (int i = 0; i < n_rows; ++i) {
      const int out = t * rows_of_group + item / LANES * n_rows + i;
      shared[out * (LANES + 1) + item % LANES] = sums[t * n_rows + i];
    }
  }
  BARRIER();
  // Now an item is one output.
  const int token = first + item / rows_of_group;
  const int out = m->group * rows_of_group + item % rows_of_group;
  if (item < tile * rows_of_group && token < n_tokens && out < m->rows) {
    float total = 0;
    UNROLL for (int i = 0; i < LANES; ++i) total += shared[item * (LANES + 1) + i];
    store_output(m, token, out, total);
  }
}

// ---- one token ----------------------------------------------------------------------------------

#define ONE_ITEMS 256
#define ONE_LANE_ROWS (ONE_ITEMS / LANES)  // rows of lanes of a group
#define SEGMENT 512                        // octets of x that lie in local memory
#define MOST_OF_BATCH 8                    // octets of a lane

// Puts a segment of x into local memory, from octet `begin` on: the first halves of the octets,
// then the second ones, so that lanes read neighbouring float4.
FUNCTION void stage_x(GLOBAL const float* x, int cols, int begin, LOCAL float4* of_x) {
  const int n = MIN((cols + OCTET - 1) / OCTET - begin, SEGMENT);
  BARRIER();
  for (int i = ITEM_OF_GROUP(); i < n; i += ONE_ITEMS) {
    float v[OCTET];
    load_x(x, (begin + i) * OCTET, cols, v);
    const float4 low = {v[0], v[1], v[2], v[3]};
    const float4 high = {v[4], v[5], v[6], v[7]};
    of_x[i] = low;
    of_x[SEGMENT + i] = high;
  }
  BARRIER();
}

FUNCTION void add_staged(const int n_rows, LOCAL const float4* of_x, int i, float (*w)[OCTET],
                         float* sums) {
  const float4 low = of_x[i];
  const float4 high = of_x[SEGMENT + i];
  const float of_token[OCTET] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  UNROLL for (int r = 0; r < n_rows; ++r) {
    UNROLL for (int k = 0; k < OCTET; ++k) sums[r] = FMA(w[r][k], of_token[k], sums[r]);
  }
}

// A batch: octets o, o + 32, o + 64, … of each row, all of which are there. w [batch, n_rows]
FUNCTION void decode_batch(const Matrix* m, const int n_rows, const int batch, int n_octets,
                           int row, int o, float (*w)[OCTET]) {
  UNROLL for (int b = 0; b < batch; ++b)
      decode_rows(m, n_rows, n_octets, row, o + b * LANES, w + b * n_rows);
}

// A row of lanes computes n_rows rows, a batch of octets at a time, so that many loads are on their
// way. The first batch comes while the launches before still run.
FUNCTION void multiply_one(const Matrix* m, const int n_rows, const int batch,
                           GLOBAL const float* x, int cols, LOCAL float4* of_x,
                           LOCAL float* shared) {
  const int row = (m->group * ONE_LANE_ROWS + ITEM_OF_GROUP() / LANES) * n_rows;
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_of_batches = n_octets / (batch * LANES) * (batch * LANES);
  int o = ITEM_OF_GROUP() % LANES;
  float w[MOST_OF_BATCH][OCTET];
  float sums[MOST_ROWS];
  UNROLL for (int i = 0; i < n_rows; ++i) sums[i] = 0;
  if (o < n_of_batches) decode_batch(m, n_rows, batch, n_octets, row, o, w);
  AWAIT();
  for (int begin = 0; begin < n_octets; begin += SEGMENT) {
    stage_x(x, cols, begin, of_x);
    const int end = MIN(begin + SEGMENT, n_octets);
    while (o < MIN(end, n_of_batches)) {
      UNROLL for (int b = 0; b < batch; ++b)
          add_staged(n_rows, of_x, o + b * LANES - begin, w + b * n_rows, sums);
      o += batch * LANES;
      if (o < n_of_batches) decode_batch(m, n_rows, batch, n_octets, row, o, w);
    }
    UNROLL_BY(4) for (; o < end; o += LANES) {
      decode_rows(m, n_rows, n_octets, row, o, w);
      add_staged(n_rows, of_x, o - begin, w, sums);
    }
  }
  add_lanes(m, ONE_LANE_ROWS, n_rows, 1, sums, 1, 0, shared);
}

#define BATCH_ONE MOST_OF_BATCH
#if defined(WEIGHT_f32)
#define BATCH_MANY 2  // a lane's registers hold no more
#else
#define BATCH_MANY (MOST_OF_BATCH / 2)
#endif

// Grid: rows / 8.
KERNEL_OF_GROUPS(256, 2)
linear_one(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[ONE_LANE_ROWS * (LANES + 1)];
  const Matrix m = MATRIX_OF(GROUP_X(), ONE_LANE_ROWS);
  multiply_one(&m, 1, BATCH_ONE, x, cols, of_x, shared);
}

// The same for so many rows that there are groups enough: x is read once for two of them. Grid:
// rows / 16.
KERNEL_OF_GROUPS(256, 2)
linear_one_of_many(MATRICES, GLOBAL const float* x, int cols, int n_tokens) {
  LOCAL_ARRAY float4 of_x[2 * SEGMENT];
  LOCAL_ARRAY float shared[ONE_LANE_ROWS * 2 * (LANES + 1)];
  const Matrix m = MATRIX_OF(GROUP_X(), ONE_LANE_ROWS * 2);
  multiply_one(&m, 2, BATCH_MANY, x, cols, of_x, shared);
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
  add_lanes(&m, LANE_ROWS, ROWS_FEW, FEW_TOKENS, sums, n_tokens, first, shared);
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
