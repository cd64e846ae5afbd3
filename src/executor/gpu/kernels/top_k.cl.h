// The k best elements of each span of TOP_K_SPAN columns of a row, best first: the host merges the
// spans of a row. A group for each span. It reads x once, keeps the elements as integers of the
// same order, and takes the best one k times: each item knows the best of its own elements, i, i +
// 128, i + 256, …, and only the item whose element was taken looks for its next one.
#define TOP_K_SPAN 2048
#define TOP_K_TAKEN (-2147483647 - 1)

// Floats in their order, both zeros alike; what is not finite comes before all others.
FUNCTION int key_of(float x) {
  const int bits = BITS_OF_FLOAT(x);
  if ((bits & 0x7f800000) == 0x7f800000) return 0x7fffffff;
  if ((bits & 0x7fffffff) == 0) return 0;
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// best [rows, n_spans, k, 2]: column and bits of the value; column -1 where a span has fewer.
KERNEL(128) top_k(GLOBAL const float* x, GLOBAL int* best, int cols, int n_spans, int k) {
  AWAIT();
  LOCAL_ARRAY int keys[TOP_K_SPAN];
  LOCAL_ARRAY int best_key[128];
  LOCAL_ARRAY int best_at[128];
  const int item = ITEM_OF_GROUP();
  const int begin = GROUP_X() * TOP_K_SPAN;
  const int n = cols - begin;
  GLOBAL const float* span = x + (wide)GROUP_Y() * cols + begin;
  GLOBAL int* out = best + ((wide)GROUP_Y() * n_spans + GROUP_X()) * k * 2;
  int own_key = TOP_K_TAKEN;
  int own_at = item;
  float own[TOP_K_SPAN / 128];
  UNROLL for (int j = 0; j < TOP_K_SPAN / 128; ++j) own[j] =
      item + j * 128 < n ? span[item + j * 128] : 0.0f;
  UNROLL for (int j = 0; j < TOP_K_SPAN / 128; ++j) {
    const int i = item + j * 128;
    keys[i] = i < n ? key_of(own[j]) : TOP_K_TAKEN;
    if (keys[i] > own_key) {
      own_key = keys[i];
      own_at = i;
    }
  }
  for (int j = 0; j < k; ++j) {
    best_key[item] = own_key;
    best_at[item] = own_at;
    for (int half_of = 64; half_of > 0; half_of /= 2) {
      BARRIER();
      const int other = item + half_of;
      if (item < half_of &&
          (best_key[other] > best_key[item] ||
           (best_key[other] == best_key[item] && best_at[other] < best_at[item]))) {
        best_key[item] = best_key[other];
        best_at[item] = best_at[other];
      }
    }
    BARRIER();
    const int key = best_key[0];
    const int at = best_at[0];
    BARRIER();
    if (item == at % 128) {
      out[2 * j] = key == TOP_K_TAKEN ? -1 : begin + at;
      out[2 * j + 1] = key == TOP_K_TAKEN ? 0 : BITS_OF_FLOAT(span[at]);
      keys[at] = TOP_K_TAKEN;
      own_key = TOP_K_TAKEN;
      for (int i = item; i < TOP_K_SPAN; i += 128) {
        if (keys[i] > own_key) {
          own_key = keys[i];
          own_at = i;
        }
      }
    }
  }
}
