// Rotary embedding (formulas.cl.h): an item for each element of x [n_tokens, cols], whose heads
// have head_dim elements. angles [n_positions, n_rot]; the tokens' positions begin at inputs[at].
KERNEL(128)
rope(GLOBAL const float* x, GLOBAL const float* angles, GLOBAL const int* inputs, int at,
     GLOBAL float* y, int cols, int head_dim, int n_rot) {
  AWAIT();
  const int token = row_of_group(cols, 128);
  const int element = element_of_item(cols, 128);
  if (element >= cols) return;
  const int i = element % head_dim;
  const wide begin = (wide)token * cols + element - i;  // of the head
  y[begin + i] = rotated(x + begin, i, angles + (wide)inputs[at + token] * n_rot, n_rot);
}
