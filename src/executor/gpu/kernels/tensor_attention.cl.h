// Causal attention on tensor cores, for `--products f16`: what attention.cl.h computes, with
// q, K, V and the weights rounded to halves and sums in f32. Fragments are those of fragments.cl.h.
//
// A warp owns 16 rows of results and keeps them in registers, as Dao 2023 (arXiv:2307.08691) does.
// The sum of a row's products with 64 keys has the places that the next product wants its weights
// at. The group's warps read K and V of a block of 64 positions from local memory, to which the
// next ones are copied meanwhile.
//
// Orders of addition: blocks of 64 positions are taken one after the other. For a block with
// scores s, in units of ln 2:
//
//   m_b = max s    p = 2^(s - m_b), rounded to a half    l_b = sum of p    a_b = sum of p v
//   m' = max(m, m_b)    l' = l 2^(m - m') + l_b 2^(m_b - m')    a' likewise
//
// and in the end out = a (1 / l). A score adds chunks of 32 elements in order, each in two
// fragments; l_b and a_b add 16 positions after 16 positions. An element of a fragment depends on
// its own row and column only. So the result depends on positions only, and not on how the work was
// cut. When a long context is shared out, each group computes the a, l and m of a block, and
// `tensor_combine` takes them by the same formulas in the same order.

// The queries of rows `row` and `row` + 8, scaled, and rows that have met no position yet. As in
// `halve` of tensor.cl.h, a power of two brings a row's largest element to [2^13, 2^14).
FUNCTION void begin_rows(LOCAL Task* task, GLOBAL const float* q, Rows* rows,
                         LOCAL float* meeting) {
  const Work work = task->work;
  const int t = item_now() % 4;
  const int row = row_of_item();
  float values[2][QUERY_CHUNKS * OCTET];
  float largest[2];
  UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) {
    const int r = row + 8 * h;
    const bool is_there = r < work.n_rows;
    task->seen[r] = is_there ? task->positions[r / work.heads] + 1 : 0;
    rows->m[h] = NEGATIVE_INFINITY;
    rows->l[h] = 0;
    largest[h] = 0;
    GLOBAL const float* from = q + (is_there ? place_of(&work, r) : 0) * HEAD_DIM;
    UNROLL_FRAGMENTS for (int i = 0; i < QUERY_CHUNKS; ++i) {
      const int o = 4 * i + t;
      if (is_there && o < OCTETS) {
        load_4_floats(from + o * OCTET, values[h] + i * OCTET);
        load_4_floats(from + o * OCTET + 4, values[h] + i * OCTET + 4);
      } else {
        UNROLL_FRAGMENTS for (int d = 0; d < OCTET; ++d) values[h][i * OCTET + d] = 0;
      }
      UNROLL_FRAGMENTS for (int d = 0; d < OCTET; ++d) {
        const float x = values[h][i * OCTET + d] * work.scale;
        values[h][i * OCTET + d] = x;
        largest[h] = MAX(largest[h], MAX(x, -x));
      }
    }
  }
  max_of_rows(largest, meeting);
  UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) {
    const int stored = BITS_OF_FLOAT(largest[h]) >> 23;
    const uint exponent = (uint)(stored < 27 ? 27 : stored);
    const float factor = FLOAT_OF_BITS((267u - exponent) << 23);
    task->factor[row + 8 * h] = FLOAT_OF_BITS((exponent - 13u) << 23) * LOG2_E;
    UNROLL_FRAGMENTS for (int i = 0; i < QUERY_CHUNKS; ++i) {
      UNROLL_FRAGMENTS for (int d = 0; d < OCTET; ++d) values[h][i * OCTET + d] *= factor;
      rows->q[2 * i + h] = halves_of_floats(values[h] + i * OCTET);
    }
  }
  UNROLL_FRAGMENTS for (int i = 0; i < 4 * OCTETS; ++i) rows->a[i] = 0;
}

// ---- a block ------------------------------------------------------------------------------------

// The weights of a block as fragments of halves, and the rows' m_b.
FUNCTION void weigh_block(LOCAL const Task* task, const Rows* rows, int begin,
                          LOCAL const uint4* keys, uint* weights, float* m_b,
                          LOCAL float* meeting) {
  const int item = item_now();
  const int g = item / 4 % 8;
  const int t = item % 4;
  float score[4 * KEY_FRAGMENTS];
  UNROLL_FRAGMENTS for (int i = 0; i < 4 * KEY_FRAGMENTS; ++i) score[i] = 0;
  UNROLL_FRAGMENTS for (int n = 0; n < KEY_FRAGMENTS; ++n) {
    UNROLL_FRAGMENTS for (int i = 0; i < QUERY_CHUNKS; ++i) {
      const uint4 low = rows->q[2 * i];
      const uint4 high = rows->q[2 * i + 1];
      const uint4 key = keys[(4 * i + t) * KEYS_PLACE + n * FRAGMENT_TOKENS + g];
      multiply_chunk(low, high, key, score + 4 * n, meeting);
    }
  }
  const int row = row_of_item();
  if (begin + BLOCK > task->work.least) {
    const int seen[2] = {task->seen[row], task->seen[row + 8]};
    UNROLL_FRAGMENTS for (int i = 0; i < 4 * KEY_FRAGMENTS; ++i) {
      const int position = begin + i / 4 * FRAGMENT_TOKENS + 2 * t + i % 2;
      score[i] = position < seen[i % 4 / 2] ? score[i] : NEGATIVE_INFINITY;
    }
  }
  const float factor[2] = {task->factor[row], task->factor[row + 8]};
  m_b[0] = m_b[1] = NEGATIVE_INFINITY;
  UNROLL_FRAGMENTS for (int i = 0; i < 4 * KEY_FRAGMENTS; ++i) {
    const int h = i % 4 / 2;
    m_b[h] = MAX(m_b[h], score[i]);
  }
  max_of_rows(m_b, meeting);
  UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) m_b[h] *= factor[h];
  UNROLL_FRAGMENTS for (int i = 0; i < 2 * KEY_FRAGMENTS; ++i) {
    const int h = i % 2;
    weights[i] = pair_of_floats(EXP2(FMA(score[2 * i], factor[h], -m_b[h])),
                                EXP2(FMA(score[2 * i + 1], factor[h], -m_b[h])));
  }
}

// Adds a block to the rows that are to be added.
FUNCTION void add_block(Rows* rows, const uint* weights, const float* m_b, const bool* adds,
                        LOCAL const uint4* values, LOCAL float* meeting) {
  const uint ones[2] = {TWO_ONES, TWO_ONES};
  const int item = item_now();
  float keep[2];
  float take[2];
  float l_b[4] = {0, 0, 0, 0};
  UNROLL_FRAGMENTS for (int k = 0; k < WEIGHT_FRAGMENTS; ++k)
      multiply_fragments(weights + 4 * k, ones, l_b, meeting);
  UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) {
    const float m = MAX(rows->m[h], m_b[h]);
    keep[h] = EXP2(rows->m[h] - m);
    take[h] = EXP2(m_b[h] - m);
    if (adds[h]) {
      rows->m[h] = m;
      rows->l[h] = FMA(rows->l[h], keep[h], l_b[2 * h] * take[h]);
    }
  }
  UNROLL_FRAGMENTS for (int o = 0; o < OCTETS; o += 2) {
    float c[8];
    UNROLL_FRAGMENTS for (int i = 0; i < 8; ++i) c[i] = 0;
    UNROLL_FRAGMENTS for (int k = 0; k < WEIGHT_FRAGMENTS; ++k) {
      uint b[4];
      load_value_fragments(values, item, k * FRAGMENT_COLUMNS, o, b);
      multiply_fragments(weights + 4 * k, b, c, meeting);
      multiply_fragments(weights + 4 * k, b + 2, c + 4, meeting);
    }
    UNROLL_FRAGMENTS for (int i = 0; i < 8; ++i) {
      const int h = i % 4 / 2;
      if (adds[h]) rows->a[4 * o + i] = FMA(rows->a[4 * o + i], keep[h], c[i] * take[h]);
    }
  }
}

// Whether a half of a word is infinite or NaN.
FUNCTION bool is_bad_pair(uint pair) {
  return (pair & 0x7c00u) == 0x7c00u || (pair & 0x7c000000u) == 0x7c000000u;
}

// Whether values of a block that some row does not see are not finite: 0 times them is not 0.
FUNCTION bool are_bad(const int warps, LOCAL const Task* task, int begin, LOCAL const uint4* values,
                      LOCAL int* is_bad) {
  if (begin + BLOCK <= task->work.least || task->work.least == task->work.most) return false;
  const int item = item_now();
  const int first = begin < task->work.least ? task->work.least - begin : 0;
  if (item == 0) *is_bad = 0;
  BARRIER();
  UNROLL_BY(1) for (int i = first * OCTETS + item; i < BLOCK * OCTETS; i += warps * LANES) {
    const uint4 octet = values[i / OCTETS * VALUES_PLACE + i % OCTETS];
    if (is_bad_pair(octet.x) || is_bad_pair(octet.y) || is_bad_pair(octet.z) ||
        is_bad_pair(octet.w))
      *is_bad = 1;
  }
  BARRIER();
  return *is_bad != 0;
}

// Clears the values of a block from a position on.
FUNCTION void clear_values(const int warps, int first, LOCAL uint4* values) {
  uint4 zero;
  zero.x = zero.y = zero.z = zero.w = 0;
  BARRIER();
  UNROLL_BY(1)
  for (int i = first * OCTETS + item_now(); i < BLOCK * OCTETS; i += warps * LANES)
    values[i / OCTETS * VALUES_PLACE + i % OCTETS] = zero;
  BARRIER();
}

// ---- rows ---------------------------------------------------------------------------------------

// Results of all positions, or the part of one block.
FUNCTION void store_rows(LOCAL const Task* task, const Rows* rows, GLOBAL float* out,
                         GLOBAL float* parts, int n_parts) {
  const Work work = task->work;
  const int t = item_now() % 4;
  const int row = row_of_item();
  UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) {
    const int r = row + 8 * h;
    if (r < work.n_rows && (n_parts == 1 || task->begin < task->seen[r])) {
      const wide place = place_of(&work, r);
      GLOBAL float* to = n_parts == 1 ? out + place * HEAD_DIM
                                      : parts + (place * n_parts + task->part) * (HEAD_DIM + 2);
      const float factor = n_parts == 1 ? 1.0f / rows->l[h] : 1.0f;
      UNROLL_FRAGMENTS for (int o = 0; o < OCTETS; ++o) {
        float2 pair;
        pair.x = rows->a[4 * o + 2 * h] * factor;
        pair.y = rows->a[4 * o + 2 * h + 1] * factor;
        *(GLOBAL float2*)(to + o * OCTET + 2 * t) = pair;
      }
      if (n_parts > 1 && t == 0) {
        to[HEAD_DIM] = rows->m[h];
        to[HEAD_DIM + 1] = rows->l[h];
      }
    }
  }
}

// Whether a row of the warp sees a position.
FUNCTION bool is_seen_by_warp(LOCAL const Task* task, int position) {
  const int first = item_now() / LANES * FRAGMENT_ROWS;
  const int last = MIN(first + FRAGMENT_ROWS, task->work.n_rows) - 1;
  return last >= first && position < task->seen[last];
}

// The rows of a task. With two tiles of K and of V the next block is on its way while one is
// computed. With one tile V is on its way while scores are computed, and K of the next block while
// values are added.
FUNCTION void attend_rows(const int warps, const int tiles, LOCAL Task* task, GLOBAL const float* q,
                          GLOBAL float* out, GLOBAL float* parts, int n_parts,
                          LOCAL uint4* all_keys, LOCAL uint4* all_values, LOCAL int* is_bad,
                          LOCAL float* meeting) {
  Rows rows;
  begin_rows(task, q, &rows, meeting);
  fill_keys(warps, tiles, all_keys);
  if (task->begin < task->end) {
    const int tile = task->begin / BLOCK % tiles;
    const int n = task->work.most - task->begin;
    GLOBAL const uchar* from = keys_at(task, task->begin);
    fetch_keys(warps, from, n, all_keys + tile * KEYS_TILE);
    if (tiles == 2) fetch_values(warps, from, n, all_values + tile * VALUES_TILE);
  }
  UNROLL_BY(1) for (int begin = task->begin; begin < task->end; begin += BLOCK) {
    LOCAL uint4* keys = all_keys + begin / BLOCK % tiles * KEYS_TILE;
    LOCAL uint4* values = all_values + begin / BLOCK % tiles * VALUES_TILE;
    const int next = begin + BLOCK;
    uint weights[4 * WEIGHT_FRAGMENTS];
    float m_b[2];
    AWAIT_ALL_COPIES();
    BARRIER();
    if (tiles == 1) fetch_values(warps, keys_at(task, begin), task->work.most - begin, values);
    if (tiles == 2 && next < task->end) {
      const int tile = next / BLOCK % tiles;
      const int n = task->work.most - next;
      GLOBAL const uchar* from = keys_at(task, next);
      fetch_keys(warps, from, n, all_keys + tile * KEYS_TILE);
      fetch_values(warps, from, n, all_values + tile * VALUES_TILE);
    }
    const bool has_rows = WARPS_MEET || is_seen_by_warp(task, begin);
    if (has_rows) weigh_block(task, &rows, begin, keys, weights, m_b, meeting);
    if (tiles == 1) {
      AWAIT_ALL_COPIES();
      BARRIER();
      if (next < task->end) fetch_keys(warps, keys_at(task, next), task->work.most - next, keys);
    }
    // Almost always all rows are added at once. If not, those of one token after the other, from
    // the last one on, and values that it does not see are cleared before.
    const bool by_token = are_bad(warps, task, begin, values, is_bad);
    UNROLL_BY(1)
    for (int i = by_token ? (task->work.n_rows - 1) / task->work.heads : 0; i >= 0; --i) {
      const int seen = by_token ? task->positions[i] + 1 : 0;
      if (by_token) clear_values(warps, seen < begin ? 0 : MIN(seen - begin, BLOCK), values);
      const int row = row_of_item();
      const int of_row[2] = {task->seen[row], task->seen[row + 8]};
      bool adds[2];
      UNROLL_FRAGMENTS for (int h = 0; h < 2; ++h) adds[h] =
          begin < of_row[h] && (!by_token || of_row[h] == seen);
      if (has_rows) add_block(&rows, weights, m_b, adds, values, meeting);
    }
  }
  store_rows(task, &rows, out, parts, n_parts);
}

// Groups begin with the last tokens, which see most, those of all heads together. One item finds
// out what to do, and all read it from local memory, which leaves more registers for the rows.
FUNCTION void attend_tokens(const int warps, const int tiles, ATTENTION, LOCAL Task* task,
                            LOCAL uint4* keys, LOCAL uint4* values, LOCAL int* is_bad,
                            LOCAL float* meeting) {
  if (ITEM_OF_GROUP() == 0) {
    const int most_rows = warps * FRAGMENT_ROWS;
    const int tiles = (group + most_rows - 1) / most_rows;
    const int kv_head = GROUP_X() / tiles % n_kv_heads;
    const int tile = GROUP_X() % tiles * most_rows;
    const int of_tokens = GROUP_X() / (n_kv_heads * tiles);  // among the groups of the same heads
    const int n_groups = (n_tokens + tokens_of_group - 1) / tokens_of_group;
    task->work.cache = cache;
    task->work.heads_of_block = n_layers * n_kv_heads;
    task->work.head_of_block = layer * n_kv_heads + kv_head;
    task->work.head_dim = HEAD_DIM;
    task->work.scale = scale;
    task->work.heads = MIN(group - tile, most_rows);
    task->work.n_heads = n_kv_heads * group;
    const wide bytes_of_head = (wide)BLOCK * HEAD_DIM * (K_BYTES + V_BYTES);
    task->keys = cache + (layer * n_kv_heads + kv_head) * bytes_of_head;
    task->bytes_of_block = n_layers * n_kv_heads * bytes_of_head;
    task->head = kv_head * group + tile;
    task->part = of_tokens % n_parts;
    task->next = (n_groups - 1 - of_tokens / n_parts) * tokens_of_group;
    task->tokens_end = MIN(task->next + tokens_of_group, n_tokens);
  }
  do {
    BARRIER();  // all are done with the task before
    if (ITEM_OF_GROUP() == 0) {
      // Tokens [token, next) belong to one sequence.
      const int token = task->next;
      const int sequence = inputs[sequences + token];
      int next = token;
      while (next < task->tokens_end && inputs[sequences + next] == sequence) ++next;
      const int most = inputs[positions + next - 1] + 1;
      task->work.blocks = inputs + table + inputs[table_begin + sequence];
      task->work.most = most;
      task->work.least = inputs[positions + token] + 1;
      task->work.n_rows = (next - token) * task->work.heads;
      task->work.first = (wide)token * task->work.n_heads + task->head;
      task->positions = inputs + positions + token;
      task->next = next;
      task->begin = task->part * BLOCK;
      task->end = n_parts == 1 ? most : MIN(task->begin + BLOCK, most);
    }
    BARRIER();
    attend_rows(warps, tiles, task, q, out, parts, n_parts, keys, values, is_bad, meeting);
  } while (task->next < task->tokens_end);
}

// Up to 16 rows. Grid: [groups of tokens, n_parts, n_kv_heads, tiles of up to 16 query heads]. out
// [n_tokens, n_heads * head_dim] when n_parts is 1; else parts [n_tokens, n_heads,
// n_parts] times (a [head_dim], m, l), where a part is a block, with one token a group.
KERNEL_OF_GROUPS(32, 1)
tensor_attend_few(ATTENTION) {
  AWAIT();
  LOCAL_ARRAY uint4 keys[KEYS_TILE];
  LOCAL_ARRAY uint4 values[VALUES_TILE];
  LOCAL_ARRAY Task task[1];
  LOCAL_ARRAY int is_bad[1];
  MEETING(meeting);
  attend_tokens(1, 1, ATTENTION_NAMES, task, keys, values, is_bad, MEETING_OF(meeting));
}

// The same for up to 128 rows.
KERNEL_OF_GROUPS(256, GROUPS_AT_ONCE)
tensor_attend(ATTENTION) {
  AWAIT();
  LOCAL_ARRAY uint4 keys[MOST_TILES * KEYS_TILE];
  LOCAL_ARRAY uint4 values[MOST_TILES * VALUES_TILE];
  LOCAL_ARRAY Task task[1];
  LOCAL_ARRAY int is_bad[1];
  MEETING(meeting);
  attend_tokens(WARPS, MOST_TILES, ATTENTION_NAMES, task, keys, values, is_bad,
                MEETING_OF(meeting));
}

// The parts of a head taken together. The factors of up to 128 parts are computed side by side:
// they depend on the largest m before, and a maximum has the same bits in any order. A group is a
// head of a token, and an item an element.
#define COMBINED 128
KERNEL(128)
tensor_combine(GLOBAL const float* parts, GLOBAL const int* inputs, int positions,
               GLOBAL float* out, int n_heads, int head_dim, int n_parts) {
  AWAIT();
  LOCAL_ARRAY float of_part[COMBINED];  // m
  LOCAL_ARRAY float keep[COMBINED];
  LOCAL_ARRAY float take[COMBINED];
  LOCAL_ARRAY float sum[COMBINED];  // l
  const int item = ITEM_OF_GROUP();
  const int d = MIN(item, head_dim - 1);
  const int n = inputs[positions + GROUP_X() / n_heads] / BLOCK + 1;
  GLOBAL const float* part = parts + (wide)GROUP_X() * n_parts * (head_dim + 2);
  float m = NEGATIVE_INFINITY;
  float l = 0;
  float a = 0;
  for (int begin = 0; begin < n; begin += COMBINED) {
    const int n_here = MIN(n - begin, COMBINED);
    GLOBAL const float* mine = part + (wide)MIN(begin + item, n - 1) * (head_dim + 2);
    BARRIER();
    of_part[item] = mine[head_dim];
    sum[item] = mine[head_dim + 1];
    BARRIER();
    float before = m;
    for (int i = 0; i < n_here; ++i) {
      if (i < item) before = MAX(before, of_part[i]);
      m = MAX(m, of_part[i]);
    }
    const float larger = MAX(before, of_part[item]);
    keep[item] = EXP2(before - larger);
    take[item] = EXP2(of_part[item] - larger);
    BARRIER();
    UNROLL_BY(8) for (int i = 0; i < n_here; ++i) {
      const float a_b = part[(wide)(begin + i) * (head_dim + 2) + d];
      l = FMA(l, keep[i], sum[i] * take[i]);
      a = FMA(a, keep[i], a_b * take[i]);
    }
  }
  if (item < head_dim) out[(wide)GROUP_X() * head_dim + d] = a * (1.0f / l);
}
