// y[t, r] = x[t] . W[r] + bias[r]; x [n_tokens, cols], W [rows, cols] of one type, y [n_tokens,
// rows].
//
// One order of addition, whichever kernel runs. The columns are cut into spans of 32, and span s
// belongs to lane s % 32. A lane adds its spans one after the other, each element by FMA, and the
// lanes are added from 0 to 31, then the bias. With 2,048 columns, 64 spans:
//
//   lane 0: columns 0 … 31, 1024 … 1055     lane 1: columns 32 … 63, 1056 … 1087     …
//   y = ((lane 0 + lane 1) + lane 2) + … + lane 31 + bias
//
// For few tokens the lanes are items that work side by side, so that neighbours read neighbouring
// spans of the row. For many tokens an item computes whole outputs and goes through the lanes in
// turn, which needs two sums for an output: of the lane, and of the lanes before. So the result of
// a token has the same bits alone, in a batch and in a prompt.

#define LANES 32
#define ROWS_OF_GROUP 4  // of linear_one and linear_few: 4 rows of 32 lanes
#define FEW_TOKENS 8     // of linear_few, in one pass over the weights

// Lanes' sums of up to `tile` tokens from token `first` on: an item is one lane of one row. The
// weights are decoded once for all of the tokens. shared [tile, ROWS_OF_GROUP, LANES]
FUNCTION void multiply_by_lanes(const int tile, GLOBAL const uchar* weight, wide row_bytes,
                                GLOBAL const float* x, GLOBAL const float* bias, int has_bias,
                                GLOBAL float* y, int rows, int cols, int n_tokens, int first,
                                LOCAL float* shared) {
  const int item = ITEM_OF_GROUP();
  const int lane = item % LANES;
  const int row = GROUP_X() * ROWS_OF_GROUP + item / LANES;
  const int n_spans = (cols + SPAN - 1) / SPAN;
  float sums[FEW_TOKENS];
  UNROLL for (int t = 0; t < tile; ++t) sums[t] = 0;
  for (int span = lane; row < rows && span < n_spans; span += LANES) {
    float w[SPAN];
    decode_span(weight + row * row_bytes, span, cols, w);
    const int n = cols - span * SPAN < SPAN ? cols - span * SPAN : SPAN;
    UNROLL for (int t = 0; t < tile; ++t) {
      // Beyond the last token its sums are computed once more, and not stored.
      const int token = first + t < n_tokens ? first + t : n_tokens - 1;
      GLOBAL const float* of_token = x + (wide)token * cols + span * SPAN;
      float sum = sums[t];
      if (n == SPAN) {
        UNROLL for (int i = 0; i < SPAN; ++i) sum = FMA(w[i], of_token[i], sum);
      } else {
        for (int i = 0; i < n; ++i) sum = FMA(w[i], of_token[i], sum);
      }
      sums[t] = sum;
    }
  }
  UNROLL for (int t = 0; t < tile; ++t) shared[t * ROWS_OF_GROUP * LANES + item] = sums[t];
  BARRIER();
  // Now an item is one output.
  const int token = first + item / ROWS_OF_GROUP;
  const int of_group = item % ROWS_OF_GROUP;
  const int out = GROUP_X() * ROWS_OF_GROUP + of_group;
  if (item < tile * ROWS_OF_GROUP && token < n_tokens && out < rows) {
    LOCAL const float* lanes = shared + (item / ROWS_OF_GROUP * ROWS_OF_GROUP + of_group) * LANES;
    float total = 0;
    for (int i = 0; i < LANES; ++i) total += lanes[i];
    y[(wide)token * rows + out] = has_bias ? total + bias[out] : total;
  }
}

// One token. Grid: rows / 4.
KERNEL(128)
linear_one(GLOBAL const uchar* weight, wide row_bytes, GLOBAL const float* x,
           GLOBAL const float* bias, int has_bias, GLOBAL float* y, int rows, int cols,
           int n_tokens) {
  LOCAL_ARRAY float shared[ROWS_OF_GROUP * LANES];
  multiply_by_lanes(1, weight, row_bytes, x, bias, has_bias, y, rows, cols, n_tokens, 0, shared);
}

// 2 to 16 tokens. Grid: (rows / 4, n_tokens / 8).
KERNEL(128)
linear_few(GLOBAL const uchar* weight, wide row_bytes, GLOBAL const float* x,
           GLOBAL const float* bias, int has_bias, GLOBAL float* y, int rows, int cols,
           int n_tokens) {
  LOCAL_ARRAY float shared[FEW_TOKENS * ROWS_OF_GROUP * LANES];
  multiply_by_lanes(FEW_TOKENS, weight, row_bytes, x, bias, has_bias, y, rows, cols, n_tokens,
                    GROUP_Y() * FEW_TOKENS, shared);
}

// Prompts: a group computes a tile of 64 rows by 64 tokens, an item 4 by 4 of it. 32 columns of
// both lie in local memory at a time, turned, so that items read neighbouring floats: the tile of W
// is [32, 64], decoded once for 64 tokens. Grid: (rows / 64, n_tokens / 64).
#define TILE 64
#define PER_ITEM 4
KERNEL(256)
linear_many(GLOBAL const uchar* weight, wide row_bytes, GLOBAL const float* x,
            GLOBAL const float* bias, int has_bias, GLOBAL float* y, int rows, int cols,
            int n_tokens) {
  LOCAL_ARRAY float w_tile[SPAN][TILE + 1];  // one more: columns fall into different memory banks
  LOCAL_ARRAY float x_tile[SPAN][TILE + 1];
  const int item = ITEM_OF_GROUP();
  const int first_row = GROUP_X() * TILE;
  const int first_token = GROUP_Y() * TILE;
  const int my_row = item % 16;  // of the tile: my_row + 16 i
  const int my_token = item / 16;
  const int n_spans = (cols + SPAN - 1) / SPAN;
  float total[PER_ITEM][PER_ITEM];
  UNROLL for (int i = 0; i < PER_ITEM; ++i) {
    UNROLL for (int j = 0; j < PER_ITEM; ++j) total[i][j] = 0;
  }
  for (int lane = 0; lane < LANES && lane < n_spans; ++lane) {
    float sum[PER_ITEM][PER_ITEM];
    UNROLL for (int i = 0; i < PER_ITEM; ++i) {
      UNROLL for (int j = 0; j < PER_ITEM; ++j) sum[i][j] = 0;
    }
    for (int span = lane; span < n_spans; span += LANES) {
      const int n = cols - span * SPAN < SPAN ? cols - span * SPAN : SPAN;
      BARRIER();
      if (item < TILE && first_row + item < rows) {
        float w[SPAN];
        decode_span(weight + (first_row + item) * row_bytes, span, cols, w);
        UNROLL for (int k = 0; k < SPAN; ++k) w_tile[k][item] = w[k];
      }
      for (int i = item; i < SPAN * TILE; i += 256) {
        const int k = i % SPAN;
        const int token = first_token + i / SPAN;
        if (k < n && token < n_tokens)
          x_tile[k][i / SPAN] = x[(wide)token * cols + span * SPAN + k];
      }
      BARRIER();
      for (int k = 0; k < n; ++k) {
        UNROLL for (int i = 0; i < PER_ITEM; ++i) {
          const float w = w_tile[k][my_row + 16 * i];
          UNROLL for (int j = 0; j < PER_ITEM; ++j) {
            sum[i][j] = FMA(w, x_tile[k][my_token + 16 * j], sum[i][j]);
          }
        }
      }
    }
    UNROLL for (int i = 0; i < PER_ITEM; ++i) {
      UNROLL for (int j = 0; j < PER_ITEM; ++j) total[i][j] += sum[i][j];
    }
  }
  UNROLL for (int i = 0; i < PER_ITEM; ++i) {
    const int row = first_row + my_row + 16 * i;
    UNROLL for (int j = 0; j < PER_ITEM; ++j) {
      const int token = first_token + my_token + 16 * j;
      if (row < rows && token < n_tokens)
        y[(wide)token * rows + row] = has_bias ? total[i][j] + bias[row] : total[i][j];
    }
  }
}
