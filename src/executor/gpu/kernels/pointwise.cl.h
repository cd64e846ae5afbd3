// Ops on elements: an item for each element of the result. Grid: n / 128 groups.

KERNEL(128) add(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* y, wide n) {
  AWAIT();
  const wide i = ITEM();
  if (i < n) y[i] = a[i] + b[i];
}

KERNEL(128) scale(GLOBAL const float* x, float factor, GLOBAL float* y, wide n) {
  AWAIT();
  const wide i = ITEM();
  if (i < n) y[i] = x[i] * factor;
}

// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), as x / (1 + e^-2u): the same function
// without the cancellation of 1 + tanh(u) where u is far below 0.
FUNCTION float gelu_tanh(float x) {
  const float u = 0.797884560802865f * FMA(0.044715f * x * x, x, x);
  return x / (1.0f + EXP(-2.0f * u));
}

// x Phi(x) = x/2 (1 + erf(x / sqrt 2)).
FUNCTION float gelu_erf(float x) { return 0.5f * x * (1.0f + ERF(x * 0.707106781186547f)); }

// `kind` counts as UnaryKind of unary_kind.h does.
KERNEL(128) unary(int kind, GLOBAL const float* x, GLOBAL float* y, wide n) {
  AWAIT();
  const wide i = ITEM();
  if (i >= n) return;
  const float v = x[i];
  y[i] = kind == 0 ? silu(v) : kind == 1 ? gelu_tanh(v) : kind == 2 ? gelu_erf(v) : v > 0 ? v : 0;
}

KERNEL(128) swiglu(GLOBAL const float* gate, GLOBAL const float* up, GLOBAL float* y, wide n) {
  AWAIT();
  const wide i = ITEM();
  if (i < n) y[i] = silu(gate[i]) * up[i];
}

// y[i] = x[rows[i]]: an item for each element of y [n_rows, cols]; `rows` begins at inputs[at].
KERNEL(128)
select_rows(GLOBAL const float* x, GLOBAL const int* inputs, int at, GLOBAL float* y, int n_rows,
            int cols) {
  AWAIT();
  const wide i = ITEM();
  if (i >= (wide)n_rows * cols) return;
  const int row = inputs[at + (int)(i / cols)];
  y[i] = x[(wide)row * cols + i % cols];
}
