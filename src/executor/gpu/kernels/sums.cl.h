// Sums and maxima over the items of a group, in one order whatever the device.

#define NEGATIVE_INFINITY FLOAT_OF_BITS(0xff800000u)
#define LANES 32  // of a row of lanes

// Sum and maximum of what the items of a group give, for all of them. `shared` has an element for
// each item; n_items is a power of two. Element i takes i + n/2, then i + n/4, ….
FUNCTION float sum_of_group(float x, LOCAL float* shared, int n_items) {
  const int i = ITEM_OF_GROUP();
  BARRIER();
  shared[i] = x;
  for (int half_of = n_items / 2; half_of > 0; half_of /= 2) {
    BARRIER();
    if (i < half_of) shared[i] += shared[i + half_of];
  }
  BARRIER();
  return shared[0];
}

// For each of the n numbers x of an item: the sum, or the maximum, over the 32 lanes of the item's
// row, for all of them. Lane i takes lane i ^ 16, then i ^ 8, …, i ^ 1: a sum of two has the same
// bits in either order, so all lanes get the same. `shared` has n elements for each item; where
// items can exchange registers it is not used.
#ifdef SHUFFLE_XOR
FUNCTION void sum_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < n; ++i) x[i] += SHUFFLE_XOR(x[i], step);
  }
}
FUNCTION void max_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < n; ++i) x[i] = MAX(x[i], SHUFFLE_XOR(x[i], step));
  }
}
#else
FUNCTION void sum_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  const int item = ITEM_OF_GROUP();
  for (int step = LANES / 2; step > 0; step /= 2) {
    BARRIER();
    for (int i = 0; i < n; ++i) shared[i * n_items + item] = x[i];
    BARRIER();
    for (int i = 0; i < n; ++i) x[i] += shared[i * n_items + (item ^ step)];
  }
}
FUNCTION void max_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  const int item = ITEM_OF_GROUP();
  for (int step = LANES / 2; step > 0; step /= 2) {
    BARRIER();
    for (int i = 0; i < n; ++i) shared[i * n_items + item] = x[i];
    BARRIER();
    for (int i = 0; i < n; ++i) x[i] = MAX(x[i], shared[i * n_items + (item ^ step)]);
  }
}
#endif
