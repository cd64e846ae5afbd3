// What a group of `attend` or `tensor_attend` works on.

// Parameters of both. From k on they are those of `append` of kv_cache.cl.h, which `attend` can do
// by itself; n_rot below 0 says that it has been done.
#define ATTENTION                                                                                  \
  GLOBAL const float *q, GLOBAL uchar *cache, GLOBAL const int *inputs, int positions,             \
      int sequences, int table, int table_begin, GLOBAL float *out, GLOBAL float *parts,           \
      int n_tokens, int layer, int n_layers, int n_kv_heads, int group, int head_dim,              \
      int tokens_of_group, int n_parts, float scale, GLOBAL const float *k, GLOBAL const float *v, \
      GLOBAL const float *angles, int n_rot, GLOBAL float *rotated_q, GLOBAL float *rotated_k

#define ATTENTION_NAMES                                                                            \
  q, cache, inputs, positions, sequences, table, table_begin, out, parts, n_tokens, layer,         \
      n_layers, n_kv_heads, group, head_dim, tokens_of_group, n_parts, scale, k, v, angles, n_rot, \
      rotated_q, rotated_k

// Tokens of one sequence and query heads of one KV head. Row r of the results is head r % heads of
// token r / heads.
typedef struct {
  GLOBAL uchar* cache;
  GLOBAL const int* blocks;  // of the sequence
  int heads_of_block;        // n_layers * n_kv_heads
  int head_of_block;         // layer * n_kv_heads + head
  int head_dim;
  int most;   // positions that the last token sees
  int least;  // positions that the first token sees
  float scale;
  int n_rows;
  int heads;
  wide first;   // of q and out: row 0's head among those of all tokens
  int n_heads;  // of a token
} Work;

// Where row r lies in q and out, in heads.
FUNCTION wide place_of(const Work* work, int r) {
  return work->first + (wide)(r / work->heads) * work->n_heads + r % work->heads;
}

FUNCTION GLOBAL uchar* keys_of(const Work* work, int position) {
  return keys_of_block(work->cache, work->blocks[position / BLOCK], work->heads_of_block,
                       work->head_of_block, work->head_dim);
}

// Asks for the keys and values of positions [begin, begin + n) that the last token sees, by all
// n_items items of a group.
FUNCTION void fetch_positions(const Work* work, int begin, int n, const int n_items) {
  const int k_bytes = BLOCK * work->head_dim * K_BYTES;
  const int all_bytes = BLOCK * work->head_dim * (K_BYTES + V_BYTES);
  const int bytes_of_slot = chunk_of_keys(work->head_dim) * K_BYTES;  // that lie together
  for (int first = begin; first < MIN(begin + n, work->most); first += BLOCK) {
    GLOBAL const uchar* block = keys_of(work, first);
    for (int at = ITEM_OF_GROUP() * FETCHED_LINE; at < all_bytes; at += n_items * FETCHED_LINE) {
      const int slot = at < k_bytes ? at % (BLOCK * bytes_of_slot) / bytes_of_slot
                                    : (at - k_bytes) / (work->head_dim * V_BYTES);
      if (slot < work->most - first) FETCH_LINE(block + at);
    }
  }
}
