// RMSNorm of each run of n elements (formulas.cl.h). A group for each run.
KERNEL(256)
rms_norm(GLOBAL const float* x, GLOBAL const float* weight, GLOBAL float* y, int n, float eps) {
  AWAIT();
  LOCAL_ARRAY float shared[NORM_ITEMS];
  const wide begin = (wide)GROUP_X() * n;
  float v[OCTET];
  float squares = 0;
  UNROLL_BY(2) for (int o = ITEM_OF_GROUP(); o * OCTET < n; o += NORM_ITEMS) {
    load_x(x + begin, o * OCTET, n, v);
    squares = add_squares(v, squares);
  }
  const float factor = norm_factor(squares, n, eps, shared);
  UNROLL_BY(2) for (int o = ITEM_OF_GROUP(); o * OCTET < n; o += NORM_ITEMS) {
    float w[OCTET];
    load_x(x + begin, o * OCTET, n, v);
    load_x(weight, o * OCTET, n, w);
    norm_octet(v, factor, w);
    store_x(v, y + begin, o * OCTET, n);
  }
}
