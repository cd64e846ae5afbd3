// Ops on elements. An item computes 4 neighbouring elements of the result, whose loads are one
// each; what is left behind the last 4 is for the item behind them. Grid: n / 512 groups, rounded
// up.

FUNCTION void load_quad(GLOBAL const float* x, wide first, wide n, float* v) {
  if (first + 4 <= n) {
    load_4_floats(x + first, v);
  } else {
    UNROLL for (int i = 0; i < 4; ++i) v[i] = first + i < n ? x[first + i] : 0.0f;
  }
}
FUNCTION void store_quad(const float* v, GLOBAL float* y, wide first, wide n) {
  if (first + 4 <= n) {
    store_4_floats(v, y + first);
  } else {
    UNROLL for (int i = 0; i < 4; ++i) {
      if (first + i < n) y[first + i] = v[i];
    }
  }
}

KERNEL(128) add(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* y, wide n) {
  AWAIT();
  float of_a[4];
  float of_b[4];
  load_quad(a, 4 * ITEM(), n, of_a);
  load_quad(b, 4 * ITEM(), n, of_b);
  UNROLL for (int i = 0; i < 4; ++i) of_a[i] += of_b[i];
  store_quad(of_a, y, 4 * ITEM(), n);
}

KERNEL(128) scale(GLOBAL const float* x, float factor, GLOBAL float* y, wide n) {
  AWAIT();
  float v[4];
  load_quad(x, 4 * ITEM(), n, v);
  UNROLL for (int i = 0; i < 4; ++i) v[i] *= factor;
  store_quad(v, y, 4 * ITEM(), n);
}

// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), as x / (1 + e^-2u): the same function
// without the cancellation of 1 + tanh(u) where u is far below 0.
FUNCTION float gelu_tanh(float x) {
  const float u = 0.797884560802865f * FMA(0.044715f * x * x, x, x);
  return x / (1.0f + EXP(-2.0f * u));
}

// x Phi(x) = x/2 (1 + erf(x / sqrt 2)).
FUNCTION float gelu_erf(float x) { return 0.5f * x * (1.0f + ERF(x * 0.707106781186547f)); }

// `kind` counts as UnaryKind of unary_kind.h does. Each function of NaN is NaN.
KERNEL(128) unary(int kind, GLOBAL const float* x, GLOBAL float* y, wide n) {
  AWAIT();
  float all[4];
  load_quad(x, 4 * ITEM(), n, all);
  UNROLL for (int i = 0; i < 4; ++i) {
    const float v = all[i];
    all[i] = kind == 0   ? silu(v)
             : kind == 1 ? gelu_tanh(v)
             : kind == 2 ? gelu_erf(v)
             : v < 0     ? 0
                         : v;
  }
  store_quad(all, y, 4 * ITEM(), n);
}

KERNEL(128) swiglu(GLOBAL const float* gate, GLOBAL const float* up, GLOBAL float* y, wide n) {
  AWAIT();
  float g[4];
  float u[4];
  load_quad(gate, 4 * ITEM(), n, g);
  load_quad(up, 4 * ITEM(), n, u);
  UNROLL for (int i = 0; i < 4; ++i) u[i] *= silu(g[i]);
  store_quad(u, y, 4 * ITEM(), n);
}

// y[i] = x[rows[i]]: an item for each element of y [n_rows, cols]; `rows` begins at inputs[at].
KERNEL(128)
select_outputs(GLOBAL const float* x, GLOBAL const int* inputs, int at, GLOBAL float* y, int cols) {
  AWAIT();
  const int row = row_of_group(cols, 128);
  const int i = element_of_item(cols, 128);
  if (i < cols) y[(wide)row * cols + i] = x[(wide)inputs[at + row] * cols + i];
}
