// y = x / sqrt(mean(x^2) + eps) * weight for each run of n elements (Zhang & Sennrich 2019, eq. 4).
// A group for each run. Item i adds the squares of elements i, i + 128, i + 256, …, and the 128
// sums are added in the order of sum_of_group.
KERNEL(128)
rms_norm(GLOBAL const float* x, GLOBAL const float* weight, GLOBAL float* y, int n, float eps) {
  AWAIT();
  LOCAL_ARRAY float shared[128];
  const wide begin = (wide)GROUP_X() * n;
  float squares = 0;
  UNROLL_BY(16) for (int i = ITEM_OF_GROUP(); i < n; i += 128) {
    const float v = x[begin + i];
    squares = FMA(v, v, squares);
  }
  const float total = sum_of_group(squares, shared, 128);
  const float factor = 1.0f / SQRT(total / (float)n + eps);
  for (int first = ITEM_OF_GROUP(); first < n; first += 128 * AHEAD) {
    float v[AHEAD];
    float w[AHEAD];
    UNROLL for (int j = 0; j < AHEAD; ++j) {
      const int i = first + 128 * j;
      v[j] = i < n ? x[begin + i] : 0.0f;
      w[j] = i < n ? weight[i] : 0.0f;
    }
    UNROLL for (int j = 0; j < AHEAD; ++j) {
      const int i = first + 128 * j;
      if (i < n) y[begin + i] = v[j] * factor * w[j];
    }
  }
}
