// Sums and maxima over the items of a group, in one order whatever the device.

#define NEGATIVE_INFINITY FLOAT_OF_BITS(0xff800000u)
#define LANES 32  // of a row of lanes
// Elements that an item loads before it stores the first result: a compiler cannot know that a
// store does not change what is loaded next.
#define AHEAD 16

// For each of the n numbers x of an item: the sum, or the maximum, over n_lanes neighbouring items,
// a power of two up to 32, for all of them. Lane i takes lane i ^ 16, then i ^ 8, …, i ^ 1: a sum
// of two has the same bits in either order, so all lanes get the same. `shared` has n elements for
// each item; where items can exchange registers it is not used.
FUNCTION float joined(float a, float b, const bool is_max) { return is_max ? MAX(a, b) : a + b; }
FUNCTION void join_lanes(float* x, const int n, const int n_lanes, const bool is_max,
                         LOCAL float* shared, const int n_items) {
#ifdef SHUFFLE_XOR
  UNROLL for (int step = n_lanes / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < n; ++i) x[i] = joined(x[i], SHUFFLE_XOR(x[i], step), is_max);
  }
#else
  const int item = ITEM_OF_GROUP();
  for (int step = n_lanes / 2; step > 0; step /= 2) {
    BARRIER();
    for (int i = 0; i < n; ++i) shared[i * n_items + item] = x[i];
    BARRIER();
    for (int i = 0; i < n; ++i) x[i] = joined(x[i], shared[i * n_items + (item ^ step)], is_max);
  }
  BARRIER();
#endif
}
FUNCTION void sum_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  join_lanes(x, n, LANES, false, shared, n_items);
}
FUNCTION void max_of_lanes(float* x, const int n, LOCAL float* shared, const int n_items) {
  join_lanes(x, n, LANES, true, shared, n_items);
}

// The sum of what the items of a group give, for all of them: sum_of_lanes, then the rows of lanes
// in order. `shared` has an element for each item.
FUNCTION float sum_of_group(float x, LOCAL float* shared, const int n_items) {
  const int item = ITEM_OF_GROUP();
  sum_of_lanes(&x, 1, shared, n_items);
  BARRIER();
  if (item % LANES == 0) shared[item / LANES] = x;
  BARRIER();
  float sum = 0;
  UNROLL for (int i = 0; i < n_items / LANES; ++i) sum += shared[i];
  return sum;
}
