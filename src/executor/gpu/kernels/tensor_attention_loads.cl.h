// What `tensor_attend` of tensor_attention.cl.h works on, how it brings K and V into local memory,
// and what devices do differently.
//
// HEAD_DIM: elements of a head, a multiple of 16. Elements that fill the last chunk up are 0.

#define KEY_FRAGMENTS (BLOCK / FRAGMENT_TOKENS)      // of the scores of a block
#define WEIGHT_FRAGMENTS (BLOCK / FRAGMENT_COLUMNS)  // of its weights
#define OCTETS (HEAD_DIM / OCTET)                    // of a head
#define QUERY_CHUNKS ((HEAD_DIM + 31) / 32)
#define KEYS_PLACE (BLOCK + 2)     // from an octet of all keys to the next: other memory banks
#define VALUES_PLACE (OCTETS + 1)  // from the values of a position to those of the next
#define KEYS_TILE (4 * QUERY_CHUNKS * KEYS_PLACE)  // of a block
#define VALUES_TILE (BLOCK * VALUES_PLACE)
#define TWO_ONES 0x3c003c00u  // halves
#define LOG2_E 1.44269504f
#if HEAD_DIM <= 64
#define GROUPS_AT_ONCE 2  // of a multiprocessor: how many have room for their registers
#define MOST_TILES 2      // of K and of V, in local memory
#else
#define GROUPS_AT_ONCE 1
#define MOST_TILES 1
#endif

// The rows g and g + 8 of a warp, as an item holds them.
typedef struct {
  uint4 q[2 * QUERY_CHUNKS];  // octet 4 i + t of row g, then that of row g + 8
  float a[4 * OCTETS];        // fragments of 8 columns
  float m[2];
  float l[2];
} Rows;

// Rows that a group computes together: tokens of one sequence. A group whose tokens belong to
// several has several tasks.
typedef struct {
  Work work;
  GLOBAL const uchar* keys;  // of the head, in block 0 of the cache
  wide bytes_of_block;
  GLOBAL const int* positions;  // of the tokens
  int next;                     // token that the group's next task begins with
  int tokens_end;               // of all tasks of the group
  int head;                     // of a token, the first one
  int part;                     // where a context is shared out; else 0
  int begin;                    // positions [begin, end)
  int end;
  // Of each row: what makes scores in units of ln 2 of the products, and how many positions it
  // sees, 0 for a row without a token.
  float factor[WARPS * FRAGMENT_ROWS];
  int seen[WARPS * FRAGMENT_ROWS];
} Task;

// ---- what devices do differently ----------------------------------------------------------------

#if defined(__CUDA_ARCH__)
#define WARPS_MEET false
// ITEM_OF_GROUP(), asked for anew, so that what follows from it takes no registers meanwhile.
FUNCTION int item_now() {
  int item;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(item));
  return item;
}
// Parts of two fragments of V: positions from `position` on, columns of two octets.
FUNCTION void load_value_fragments(const uint4* values, int item, int position, int octet,
                                   uint* b) {
  const int lane = item % LANES;
  const uint4* row = values + (position + lane % 16) * VALUES_PLACE + octet + lane / 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"((uint)__cvta_generic_to_shared(row))
               : "memory");
}
#else
#define WARPS_MEET true
FUNCTION int item_now() { return ITEM_OF_GROUP(); }

FUNCTION void load_value_fragments(LOCAL const uint4* values, int item, int position, int octet,
                                   uint* b) {
  const int g = item / 4 % 8;
  const int t = item % 4;
  const int place = VALUES_PLACE * OCTET;
  LOCAL const half_bits* column =
      (LOCAL const half_bits*)values + (position + 2 * t) * place + octet * OCTET + g;
  for (int i = 0; i < 4; ++i) {
    LOCAL const half_bits* at = column + i % 2 * 8 * place + i / 2 * OCTET;
    b[i] = (uint)at[0] | (uint)at[place] << 16;
  }
}
#endif

// The first row of the item.
FUNCTION int row_of_item() {
  const int item = item_now();
  return item / LANES * FRAGMENT_ROWS + item / 4 % 8;
}

// The maximum over the four items that hold a row, for all of them and for both rows.
FUNCTION void max_of_rows(float* x, LOCAL float* meeting) {
  join_lanes(x, 2, 4, true, meeting, WARPS * LANES);
}

// ---- loads --------------------------------------------------------------------------------------

// Where K of a block lies.
FUNCTION GLOBAL const uchar* keys_at(LOCAL const Task* task, int begin) {
  return task->keys + task->work.blocks[begin / BLOCK] * task->bytes_of_block;
}

// K of a block, [octet, key], of which n positions are seen by a row. `warps` of the group.
FUNCTION void fetch_keys(const int warps, GLOBAL const uchar* from, int n, LOCAL uint4* keys) {
  const int item = item_now();
  UNROLL_FRAGMENTS for (int i = 0; i < OCTETS * BLOCK; i += warps * LANES) {
    const int at = i + item;
    if (i + warps * LANES <= OCTETS * BLOCK || at < OCTETS * BLOCK) {
      LOCAL uint4* to = keys + at / BLOCK * KEYS_PLACE + at % BLOCK;
#if defined(K_f16)
      copy_ahead(to, (GLOBAL const uint4*)from + at, at % BLOCK < n);
#else
      const int low = at / BLOCK * 2 * BLOCK + at % BLOCK;  // its chunk of 4 elements
      float k[OCTET];
      load_k_chunk(from, low * K_CHUNK, k);
      load_k_chunk(from, (low + BLOCK) * K_CHUNK, k + K_CHUNK);
      *to = halves_of_floats(k);
#endif
    }
  }
}

// V of a block, [position, octet], behind K. Positions that no row sees are 0.
FUNCTION void fetch_values(const int warps, GLOBAL const uchar* keys, int n, LOCAL uint4* values) {
  const int item = item_now();
  GLOBAL const uchar* from = keys + BLOCK * HEAD_DIM * K_BYTES;
  UNROLL_FRAGMENTS for (int i = 0; i < OCTETS * BLOCK; i += warps * LANES) {
    const int at = i + item;
    if (i + warps * LANES <= OCTETS * BLOCK || at < OCTETS * BLOCK) {
      LOCAL uint4* to = values + at / OCTETS * VALUES_PLACE + at % OCTETS;
      const bool is_there = at / OCTETS < n;
#if defined(V_f16)
      copy_ahead(to, (GLOBAL const uint4*)from + at, is_there);
#else
      float v[OCTET];
      load_4_floats((GLOBAL const float*)from + at * OCTET, v);
      load_4_floats((GLOBAL const float*)from + at * OCTET + 4, v + 4);
      UNROLL_FRAGMENTS for (int d = 0; d < OCTET; ++d) v[d] = is_there ? v[d] : 0.0f;
      *to = halves_of_floats(v);
#endif
    }
  }
}

// Fills the last chunk of the keys up.
FUNCTION void fill_keys(const int warps, const int tiles, LOCAL uint4* keys) {
  uint4 zero;
  zero.x = zero.y = zero.z = zero.w = 0;
  UNROLL_BY(1)
  for (int at = OCTETS * BLOCK + ITEM_OF_GROUP(); at < 4 * QUERY_CHUNKS * BLOCK;
       at += warps * LANES) {
    UNROLL for (int i = 0; i < tiles; ++i)
        keys[i * KEYS_TILE + at / BLOCK * KEYS_PLACE + at % BLOCK] = zero;
  }
}
