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
