// Rotary embedding (formulas.cl.h): an item for each element of x [n_tokens, cols], whose heads
// have head_dim elements. angles [n_positions, n_rot]; the tokens' positions begin at inputs[at].
KERNEL(128)
rope(GLOBAL const float* x, GLOBAL const float* angles, GLOBAL const int* inputs, int at,
     GLOBAL float* y, int n_tokens, int cols, int head_dim, int n_rot) {
  AWAIT();
  const wide item = ITEM();
  if (item >= (wide)n_tokens * cols) return;
  const int token = (int)(item / cols);
  const int i = (int)(item % cols) % head_dim;
  y[item] = rotated(x + item - i, i, angles + (wide)inputs[at + token] * n_rot, n_rot);
}
