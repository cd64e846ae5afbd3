// Rotary embedding (Su et al. 2021), half-split pairs: an item for each element of x [n_tokens,
// cols], whose heads have head_dim elements. Element i < n_rot/2 of a head is turned with element
// i + n_rot/2 by the angle of the token's position:
//
//   y[i]           = x[i] cos - x[i + n_rot/2] sin
//   y[i + n_rot/2] = x[i] sin + x[i + n_rot/2] cos
//
// `angles` holds cos [n_rot/2] and then sin [n_rot/2] for each position, made by the host in f64:
// no device's own sine is used. The positions begin at inputs[at].
KERNEL(128)
rope(GLOBAL const float* x, GLOBAL const float* angles, GLOBAL const int* inputs, int at,
     GLOBAL float* y, int n_tokens, int cols, int head_dim, int n_rot) {
  AWAIT();
  const wide item = ITEM();
  if (item >= (wide)n_tokens * cols) return;
  const int token = (int)(item / cols);
  const int i = (int)(item % cols) % head_dim;
  const int pairs = n_rot / 2;
  if (i >= n_rot) {
    y[item] = x[item];
    return;
  }
  const int pair = i < pairs ? i : i - pairs;
  GLOBAL const float* cosines = angles + (wide)inputs[at + token] * n_rot;
  const float c = cosines[pair];
  const float s = cosines[pairs + pair];
  y[item] = i < pairs ? x[item] * c - x[item + pairs] * s : x[item - pairs] * s + x[item] * c;
}
