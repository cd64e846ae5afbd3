// y[t] = table[id of t], decoded: an item for each octet of y [n_tokens, cols]. The table has
// table_rows rows, and the ids begin at inputs[at]; the host has checked them.
KERNEL(64)
embed(GLOBAL const uchar* table, int table_rows, GLOBAL const int* inputs, int at, GLOBAL float* y,
      int cols) {
  AWAIT();
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int token = row_of_group(n_octets, 64);
  const int octet = element_of_item(n_octets, 64);
  if (octet >= n_octets) return;
  float w[OCTET];
  decode_octet(table, table_rows, n_octets, inputs[at + token], octet, w);
  store_x(w, y + (wide)token * cols, octet * OCTET, cols);
}
