// Causal attention over the KV cache, whose blocks hold 64 positions. A block of the cache holds
// all layers and KV heads, [n_layers, n_kv_heads] times K [head_dim, 64] and then V [64, head_dim]:
// K is turned, so that the items of 64 keys read neighbouring elements.
//
// K_f16 or K_f32, and V_f16 or V_f32, say how the elements are stored.

#define BLOCK 64         // positions of a block, and items of a group
#define MOST_PER_ITEM 8  // elements of a head that an item computes: heads of up to 512

#if defined(K_f16)
#define K_BYTES 2
#define LOAD_K(p, i) LOAD_HALF((GLOBAL const half_bits*)(p), i)
#define STORE_K(x, p, i) STORE_HALF(x, (GLOBAL half_bits*)(p), i)
#else
#define K_BYTES 4
#define LOAD_K(p, i) ((GLOBAL const float*)(p))[i]
#define STORE_K(x, p, i) ((GLOBAL float*)(p))[i] = x
#endif
#if defined(V_f16)
#define V_BYTES 2
#define LOAD_V(p, i) LOAD_HALF((GLOBAL const half_bits*)(p), i)
#define STORE_V(x, p, i) STORE_HALF(x, (GLOBAL half_bits*)(p), i)
#else
#define V_BYTES 4
#define LOAD_V(p, i) ((GLOBAL const float*)(p))[i]
#define STORE_V(x, p, i) ((GLOBAL float*)(p))[i] = x
#endif

// Where K of a block, layer and head begins, in bytes. V follows it.
FUNCTION wide k_offset(int block, int layer, int n_layers, int head, int n_kv_heads, int head_dim) {
  const wide bytes_of_head = (wide)BLOCK * head_dim * (K_BYTES + V_BYTES);
  return (((wide)block * n_layers + layer) * n_kv_heads + head) * bytes_of_head;
}

// The step's inputs lie in one buffer of ints; these are the places where its lists begin.
//   block of position p of sequence s: inputs[table + inputs[table_begin + s] + p / 64]
FUNCTION int block_of(GLOBAL const int* inputs, int table, int table_begin, int sequence,
                      int position) {
  return inputs[table + inputs[table_begin + sequence] + position / BLOCK];
}

// Puts k and v [n_tokens, n_kv_heads * head_dim] into the cache: an item for each element.
KERNEL(128)
append(GLOBAL const float* k, GLOBAL const float* v, GLOBAL uchar* cache, GLOBAL const int* inputs,
       int positions, int sequences, int table, int table_begin, int n_tokens, int layer,
       int n_layers, int n_kv_heads, int head_dim) {
  const wide item = ITEM();
  const int cols = n_kv_heads * head_dim;
  if (item >= (wide)n_tokens * cols) return;
  const int token = (int)(item / cols);
  const int head = (int)(item % cols) / head_dim;
  const int d = (int)(item % cols) % head_dim;
  const int position = inputs[positions + token];
  const int block = block_of(inputs, table, table_begin, inputs[sequences + token], position);
  GLOBAL uchar* keys = cache + k_offset(block, layer, n_layers, head, n_kv_heads, head_dim);
  GLOBAL uchar* values = keys + (wide)BLOCK * head_dim * K_BYTES;
  const int slot = position % BLOCK;
  STORE_K(k[item], keys, d * BLOCK + slot);
  STORE_V(v[item], values, slot * head_dim + d);
}

// out[t, h] = softmax(scale q[t, h] . K) V over the positions up to the token's own. A group for
// each token (x) and head (y). It goes through the blocks in order and keeps, as Milakov &
// Gimelshein 2018 (arXiv:1805.02867) do, the largest score m so far, the sum l of e^(score - m),
// and the sum a of values weighted by it. For a block with largest score m_b and sums l_b and a_b:
//
//   m' = max(m, m_b)    l' = l e^(m - m') + l_b e^(m_b - m')    a' likewise
//
// and in the end out = a / l. Keys beyond the token's position are not read.
KERNEL(64)
attend(GLOBAL const float* q, GLOBAL const uchar* cache, GLOBAL const int* inputs, int positions,
       int sequences, int table, int table_begin, GLOBAL float* out, int layer, int n_layers,
       int n_kv_heads, int group, int head_dim, float scale) {
  LOCAL_ARRAY float shared[BLOCK];
  LOCAL_ARRAY float weights[BLOCK];
  const int item = ITEM_OF_GROUP();
  const int token = GROUP_X();
  const int head = GROUP_Y();
  const int n_positions = inputs[positions + token] + 1;
  const int sequence = inputs[sequences + token];
  GLOBAL const float* query = q + ((wide)token * n_kv_heads * group + head) * head_dim;
  float m = NEGATIVE_INFINITY;
  float l = 0;
  float a[MOST_PER_ITEM];
  UNROLL for (int i = 0; i < MOST_PER_ITEM; ++i) a[i] = 0;
  for (int begin = 0; begin < n_positions; begin += BLOCK) {
    const int n = n_positions - begin < BLOCK ? n_positions - begin : BLOCK;
    const int block = block_of(inputs, table, table_begin, sequence, begin);
    GLOBAL const uchar* keys =
        cache + k_offset(block, layer, n_layers, head / group, n_kv_heads, head_dim);
    GLOBAL const uchar* values = keys + (wide)BLOCK * head_dim * K_BYTES;
    // An item is a key.
    float score = 0;
    if (item < n) {
      for (int d = 0; d < head_dim; ++d)
        score = FMA(query[d], LOAD_K(keys, d * BLOCK + item), score);
      score *= scale;
    }
    const float m_b = max_of_group(item < n ? score : NEGATIVE_INFINITY, shared, BLOCK);
    const float weight = item < n ? EXP(score - m_b) : 0.0f;
    const float l_b = sum_of_group(weight, shared, BLOCK);
    weights[item] = weight;
    BARRIER();
    const float larger = MAX(m, m_b);
    const float keep = EXP(m - larger);
    const float take = EXP(m_b - larger);
    m = larger;
    l = FMA(l, keep, l_b * take);
    // An item is an element of the head, or several.
    UNROLL for (int i = 0; i < MOST_PER_ITEM; ++i) {
      const int d = item + BLOCK * i;
      if (d < head_dim) {
        float a_b = 0;
        for (int j = 0; j < n; ++j) a_b = FMA(weights[j], LOAD_V(values, j * head_dim + d), a_b);
        a[i] = FMA(a[i], keep, a_b * take);
      }
    }
  }
  UNROLL for (int i = 0; i < MOST_PER_ITEM; ++i) {
    const int d = item + BLOCK * i;
    if (d < head_dim) out[((wide)token * n_kv_heads * group + head) * head_dim + d] = a[i] / l;
  }
}
