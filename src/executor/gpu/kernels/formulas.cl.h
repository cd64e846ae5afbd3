// Formulas that several kernels share, so that a number has the same bits whichever computes it.

// A row of `n` elements is divided among groups of n_items, the next row among the next groups: the
// row that a group works on, and the element of an item, which may lie behind the last one. With
// 64-bit divisions of a number of all items instead, these would take longer than what follows.
FUNCTION int row_of_group(int n, const int n_items) {
  return GROUP_X() / ((n + n_items - 1) / n_items);
}
FUNCTION int element_of_item(int n, const int n_items) {
  return GROUP_X() % ((n + n_items - 1) / n_items) * n_items + ITEM_OF_GROUP();
}

#define OCTET 8  // neighbouring columns that an item works on

// Columns [column, column + 8) of a row of x; those beyond the last are given as 0.
FUNCTION void load_x(GLOBAL const float* row, int column, int cols, float* x) {
  if (cols % 4 == 0 && column + OCTET <= cols) {
    load_4_floats(row + column, x);
    load_4_floats(row + column + 4, x + 4);
  } else {
    UNROLL for (int i = 0; i < OCTET; ++i) x[i] = column + i < cols ? row[column + i] : 0.0f;
  }
}
FUNCTION void store_x(const float* x, GLOBAL float* row, int column, int cols) {
  if (cols % 4 == 0 && column + OCTET <= cols) {
    store_4_floats(x, row + column);
    store_4_floats(x + 4, row + column + 4);
  } else {
    UNROLL for (int i = 0; i < OCTET; ++i) {
      if (column + i < cols) row[column + i] = x[i];
    }
  }
}

FUNCTION float silu(float x) { return x / (1.0f + EXP(-x)); }

// RMSNorm of a row x (Zhang & Sennrich 2019, eq. 4): y = x * factor * weight with factor = 1 /
// sqrt(mean(x^2) + eps). Item i of 256 adds the squares of octets i, i + 256, …, and the 256 sums
// are added in the order of sum_of_group.
#define NORM_ITEMS 256
FUNCTION float add_squares(const float* x, float squares) {
  UNROLL for (int i = 0; i < OCTET; ++i) squares = FMA(x[i], x[i], squares);
  return squares;
}
FUNCTION float norm_factor(float squares, int cols, float eps, LOCAL float* shared) {
  return 1.0f / SQRT(sum_of_group(squares, shared, NORM_ITEMS) / (float)cols + eps);
}
FUNCTION void norm_octet(float* x, float factor, const float* weight) {
  UNROLL for (int i = 0; i < OCTET; ++i) x[i] = x[i] * factor * weight[i];
}

// Rotary embedding (Su et al. 2021), half-split pairs. Element i < n_rot/2 of a head is turned with
// element i + n_rot/2 by the angle of the token's position:
//
//   y[i]           = x[i] cos - x[i + n_rot/2] sin
//   y[i + n_rot/2] = x[i] sin + x[i + n_rot/2] cos
//
// Gives element i of a head x. `angles` holds cos [n_rot/2] and then sin [n_rot/2] of the position,
// made by the host in f64: no device's own sine is used.
FUNCTION float rotated(GLOBAL const float* x, int i, GLOBAL const float* angles, int n_rot) {
  const int pairs = n_rot / 2;
  if (i >= n_rot) return x[i];
  const int pair = i < pairs ? i : i - pairs;
  const float c = angles[pair];
  const float s = angles[pairs + pair];
  return i < pairs ? x[i] * c - x[i + pairs] * s : x[i - pairs] * s + x[i] * c;
}
// Elements [i, i + 4) of a head; i, n_rot / 2 and the places of x and angles are multiples of 4.
FUNCTION void rotated_4(GLOBAL const float* x, int i, GLOBAL const float* angles, int n_rot,
                        float* y) {
  const int pairs = n_rot / 2;
  const int pair = i < pairs ? i : i - pairs;
  float a[4];
  float b[4];
  float c[4];
  float s[4];
  load_4_floats(x + i, y);
  if (i >= n_rot) return;
  load_4_floats(x + pair, a);
  load_4_floats(x + pairs + pair, b);
  load_4_floats(angles + pair, c);
  load_4_floats(angles + pairs + pair, s);
  UNROLL for (int j = 0; j < 4; ++j) y[j] =
      i < pairs ? a[j] * c[j] - b[j] * s[j] : a[j] * s[j] + b[j] * c[j];
}
