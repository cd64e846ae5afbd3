// y = (x - mean) / sqrt(var + eps) * weight + bias for each row of n elements (Ba et al. 2016). A
// group for each row; the mean comes first, so that the squares are those of small numbers. Without
// a bias, `bias` may be any buffer.
KERNEL(128)
layer_norm(GLOBAL const float* x, GLOBAL const float* weight, GLOBAL const float* bias,
           int has_bias, GLOBAL float* y, int n, float eps) {
  AWAIT();
  LOCAL_ARRAY float shared[128];
  const wide begin = (wide)GROUP_X() * n;
  float sum = 0;
  UNROLL_BY(16)
  for (int i = ITEM_OF_GROUP(); i < n; i += 128) sum += x[begin + i];
  const float mean = sum_of_group(sum, shared, 128) / (float)n;
  float squares = 0;
  UNROLL_BY(16)
  for (int i = ITEM_OF_GROUP(); i < n; i += 128) {
    const float v = x[begin + i] - mean;
    squares = FMA(v, v, squares);
  }
  const float total = sum_of_group(squares, shared, 128);
  const float factor = 1.0f / SQRT(total / (float)n + eps);
  for (int first = ITEM_OF_GROUP(); first < n; first += 128 * AHEAD) {
    float v[AHEAD];
    float w[AHEAD];
    float shift[AHEAD];
    UNROLL for (int j = 0; j < AHEAD; ++j) {
      const int i = first + 128 * j;
      v[j] = i < n ? x[begin + i] : 0.0f;
      w[j] = i < n ? weight[i] : 0.0f;
      shift[j] = i < n && has_bias ? bias[i] : 0.0f;
    }
    UNROLL for (int j = 0; j < AHEAD; ++j) {
      const int i = first + 128 * j;
      if (i < n) y[begin + i] = FMA((v[j] - mean) * factor, w[j], shift[j]);
    }
  }
}
