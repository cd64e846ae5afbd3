// y[t] = table[id of t], decoded: an item for each span of 32 columns of y [n_tokens, cols]. The
// ids begin at inputs[at]; the host has checked them.
KERNEL(64)
embed(GLOBAL const uchar* table, wide row_bytes, GLOBAL const int* inputs, int at, GLOBAL float* y,
      int n_tokens, int cols) {
  const int n_spans = (cols + SPAN - 1) / SPAN;
  const wide item = ITEM();
  if (item >= (wide)n_tokens * n_spans) return;
  const int token = (int)(item / n_spans);
  const int span = (int)(item % n_spans);
  float w[SPAN];
  decode_span(table + inputs[at + token] * row_bytes, span, cols, w);
  const int n = cols - span * SPAN < SPAN ? cols - span * SPAN : SPAN;
  for (int i = 0; i < n; ++i) y[(wide)token * cols + span * SPAN + i] = w[i];
}
