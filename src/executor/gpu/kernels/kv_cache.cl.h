// The KV cache, whose blocks hold 64 positions. A block of the cache holds all layers and KV heads,
// [n_layers, n_kv_heads] times K and then V [64, head_dim].
//
// K is turned, so that items which are neighbouring keys read neighbouring 16 bytes: chunks of 8
// halves or 4 floats, [head_dim / chunk, 64, chunk]. Where the chunk does not divide head_dim, it
// is one element.
//
// K_f16 or K_f32, and V_f16 or V_f32, say how the elements are stored.

#define BLOCK 64      // positions of a block
#define MOST_CHUNK 8  // elements of a chunk, at most

#if defined(K_f16)
#define K_BYTES 2
#define LOAD_K(p, i) LOAD_HALF((GLOBAL const half_bits*)(p), i)
#define STORE_K(x, p, i) STORE_HALF(x, (GLOBAL half_bits*)(p), i)
FUNCTION void load_k_chunk(GLOBAL const uchar* keys, int at, float* to) {
  load_8_halves((GLOBAL const half_bits*)keys + at, to);
}
#else
#define K_BYTES 4
#define LOAD_K(p, i) ((GLOBAL const float*)(p))[i]
#define STORE_K(x, p, i) ((GLOBAL float*)(p))[i] = x
FUNCTION void load_k_chunk(GLOBAL const uchar* keys, int at, float* to) {
  load_4_floats((GLOBAL const float*)keys + at, to);
}
#endif
#define K_CHUNK (16 / K_BYTES)

#if defined(V_f16)
#define V_BYTES 2
#define LOAD_V(p, i) LOAD_HALF((GLOBAL const half_bits*)(p), i)
#define STORE_V(x, p, i) STORE_HALF(x, (GLOBAL half_bits*)(p), i)
FUNCTION void load_v_pair(GLOBAL const uchar* values, int at, float* to) {
  load_2_halves((GLOBAL const half_bits*)values + at, to);
}
#else
#define V_BYTES 4
#define LOAD_V(p, i) ((GLOBAL const float*)(p))[i]
#define STORE_V(x, p, i) ((GLOBAL float*)(p))[i] = x
FUNCTION void load_v_pair(GLOBAL const uchar* values, int at, float* to) {
  load_2_floats((GLOBAL const float*)values + at, to);
}
#endif

FUNCTION int chunk_of_keys(int head_dim) { return head_dim % K_CHUNK == 0 ? K_CHUNK : 1; }
// Where element d of the key of a slot lies in K.
FUNCTION int key_index(int d, int slot, int chunk) {
  return (d / chunk * BLOCK + slot) * chunk + d % chunk;
}

// Where K of a block, layer and head begins; V follows it. heads_of_block: n_layers * n_kv_heads;
// head_of_block: layer * n_kv_heads + head.
FUNCTION GLOBAL uchar* keys_of_block(GLOBAL uchar* cache, int block, int heads_of_block,
                                     int head_of_block, int head_dim) {
  const wide bytes_of_head = (wide)BLOCK * head_dim * (K_BYTES + V_BYTES);
  return cache + ((wide)block * heads_of_block + head_of_block) * bytes_of_head;
}

// Puts element d of a key and a value to a position's slot of its block. keys: where K of the
// block, layer and head begins.
FUNCTION void store_key(float key, GLOBAL uchar* keys, int d, int slot, int head_dim) {
  STORE_K(key, keys, key_index(d, slot, chunk_of_keys(head_dim)));
}
FUNCTION void store_value(float value, GLOBAL uchar* keys, int d, int slot, int head_dim) {
  GLOBAL uchar* values = keys + (wide)BLOCK * head_dim * K_BYTES;
  STORE_V(value, values, slot * head_dim + d);
}

// Puts k and v [n_tokens, n_kv_heads * head_dim] into the cache: an item for each 4 elements. When
// n_rot is not 0, k and q [n_tokens, n_heads * head_dim] are rotated first (formulas.cl.h), and the
// results go to rotated_k and rotated_q too; otherwise n_heads is 0.
#define APPENDED 4
KERNEL(128)
append(GLOBAL const float* k, GLOBAL const float* v, GLOBAL uchar* cache, GLOBAL const int* inputs,
       int positions, int sequences, int table, int table_begin, int layer, int n_layers,
       int n_kv_heads, int head_dim, GLOBAL const float* q, int n_heads, GLOBAL const float* angles,
       int n_rot, GLOBAL float* rotated_q, GLOBAL float* rotated_k) {
  AWAIT();
  const int n = (2 * n_kv_heads + n_heads) * head_dim;  // of k, then of v, then of q
  const int n_items = (n + APPENDED - 1) / APPENDED;
  const int token = row_of_group(n_items, 128);
  const int first = element_of_item(n_items, 128) * APPENDED;
  if (first >= n) return;
  const int position = inputs[positions + token];
  const int slot = position % BLOCK;
  // The step's inputs lie in one buffer of ints; table, table_begin and so on are the places where
  // its lists begin.
  const int begin = table + inputs[table_begin + inputs[sequences + token]];  // of the sequence
  const int block = inputs[begin + position / BLOCK];
  GLOBAL const float* turn = angles + (wide)position * n_rot;
  // All at once, where four elements always belong to one head and to one half of its pairs.
  const int step = head_dim % 4 == 0 && n_rot % 8 == 0 ? 4 : 1;
  for (int element = first; element < MIN(first + APPENDED, n); element += step) {
    const int head = element / head_dim;
    const int d = element % head_dim;
    const int kv_head = head % n_kv_heads;
    const bool is_q = head >= 2 * n_kv_heads;
    const bool is_v = !is_q && head >= n_kv_heads;
    const wide at = is_q ? ((wide)token * n_heads + head - 2 * n_kv_heads) * head_dim
                         : ((wide)token * n_kv_heads + kv_head) * head_dim;
    GLOBAL const float* x = (is_q ? q : is_v ? v : k) + at;
    GLOBAL uchar* keys =
        keys_of_block(cache, block, n_layers * n_kv_heads, layer * n_kv_heads + kv_head, head_dim);
    float y[4];
    if (step == 4) {
      rotated_4(x, d, turn, is_v ? 0 : n_rot, y);
    } else {
      y[0] = rotated(x, d, turn, is_v ? 0 : n_rot);
    }
    UNROLL for (int i = 0; i < 4; ++i) {
      if (i >= step || is_q) break;
      if (is_v) {
        store_value(y[i], keys, d + i, slot, head_dim);
      } else {
        store_key(y[i], keys, d + i, slot, head_dim);
      }
    }
    if (is_v || n_rot == 0) continue;
    GLOBAL float* to = (is_q ? rotated_q : rotated_k) + at + d;
    if (step == 4) {
      store_4_floats(y, to);
    } else {
      *to = y[0];
    }
  }
}
