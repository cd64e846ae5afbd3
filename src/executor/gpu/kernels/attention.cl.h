// Causal attention: out[t, h] = softmax(scale q[t, h] . K) V over the positions up to the token's
// own, of the KV cache in kv_cache.cl.h.
//
// A group of 128 items computes ROWS outputs, which read the same K and V: the query heads that
// share a KV head, and in prompts several tokens of one sequence. It goes through the positions in
// spans of 256 and keeps for each row, as Milakov & Gimelshein 2018 (arXiv:1805.02867) do, the
// largest score m so far, the sum l of e^(score - m), and the sum a of values weighted by it. For a
// span with largest score m_s and sums l_s and a_s:
//
//   m' = max(m, m_s)    l' = l e^(m - m') + l_s e^(m_s - m')    a' likewise
//
// and in the end out = a / l. When there are few tokens, a long context is shared out: n_parts
// groups compute a span each, and `combine` takes their m, l and a by the same formulas in the same
// order. So the result depends on positions only, and not on how the work was cut.
//
// Orders of addition: a score adds its products by FMA from element 0 on. l_s: an item adds the
// weights of its two keys, j and j + 128; then sum_of_lanes; then the four rows of lanes in order.
// a_s: the 64 positions of a block by FMA in order, then the span's four blocks in order.

#define ITEMS 128
#define SPAN_POSITIONS 256
#define KEYS_OF_ITEM 2  // of a span
#define LANE_ROWS 4     // of a group; in a span each takes the values of one block
#define COLUMNS 64      // elements of a head that a row of lanes computes at a time, two a lane
#if ROWS <= 4
#define VALUES_AHEAD 32  // that an item loads before it uses the first
#else
#define VALUES_AHEAD 8
#endif
#define MOST_STATE 2048  // elements of a group's results: ROWS * head_dim

// Memory that the items of a group share.
typedef struct {
  LOCAL float* query;     // [ROWS, head_dim]
  LOCAL float* state;     // a: [ROWS, head_dim]
  LOCAL float* weights;   // of a span: [256, ROWS]
  LOCAL float* sums;      // a_s: [ROWS, COLUMNS]
  LOCAL float* largest;   // of each row of lanes: [4, ROWS]
  LOCAL float* of_lanes;  // sums of each row of lanes: [4, ROWS]
  LOCAL float* m;         // [ROWS], and so are the next four
  LOCAL float* l;
  LOCAL float* keep;  // e^(m - m')
  LOCAL float* take;  // e^(m_s - m')
  LOCAL int* seen;    // positions that the row's token sees; 0 for a row without a token
} Shared;

// Scores of all rows for the key of one position: an item is a key.
FUNCTION void score_key(const Work* work, const Shared* shared, int position, float* score) {
  GLOBAL const uchar* keys = keys_of(work, position);
  const int slot = position % BLOCK;
  const int head_dim = work->head_dim;
  UNROLL for (int r = 0; r < ROWS; ++r) score[r] = 0;
  if (chunk_of_keys(head_dim) == 1) {
    for (int d = 0; d < head_dim; ++d) {
      const float k = LOAD_K(keys, d * BLOCK + slot);
      UNROLL for (int r = 0; r < ROWS; ++r) score[r] =
          FMA(shared->query[r * head_dim + d], k, score[r]);
    }
  } else {
    UNROLL_BY(8) for (int d = 0; d < head_dim; d += K_CHUNK) {
      float k[MOST_CHUNK];
      load_k_chunk(keys, d * BLOCK + slot * K_CHUNK, k);
      UNROLL for (int r = 0; r < ROWS; ++r) {
        UNROLL for (int i = 0; i < K_CHUNK; i += 4) {
          const float4 q = *(LOCAL const float4*)(shared->query + r * head_dim + d + i);
          score[r] = FMA(q.x, k[i], score[r]);
          score[r] = FMA(q.y, k[i + 1], score[r]);
          score[r] = FMA(q.z, k[i + 2], score[r]);
          score[r] = FMA(q.w, k[i + 3], score[r]);
        }
      }
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r) score[r] =
      position < shared->seen[r] ? score[r] * work->scale : NEGATIVE_INFINITY;
}

// Puts a number of each row of lanes where all items see it.
FUNCTION void share_of_lanes(LOCAL float* to, const float* of_row) {
  const int item = ITEM_OF_GROUP();
  if (item % LANES == 0) {
    UNROLL for (int r = 0; r < ROWS; ++r) to[item / LANES * ROWS + r] = of_row[r];
  }
  BARRIER();
}

FUNCTION float largest_of_span(const Shared* shared, int r) {
  LOCAL const float* largest = shared->largest + r;
  return MAX(MAX(largest[0], largest[ROWS]), MAX(largest[2 * ROWS], largest[3 * ROWS]));
}

// The rows' new m, l, keep and take: an item is a row. of_lanes has the sums of weights.
FUNCTION void merge_sums(const Shared* shared, int begin) {
  const int r = ITEM_OF_GROUP();
  if (r >= ROWS) return;
  LOCAL const float* l_s = shared->of_lanes + r;
  const float m_s = largest_of_span(shared, r);
  const bool is_seen = begin < shared->seen[r];
  const float m = is_seen ? MAX(shared->m[r], m_s) : shared->m[r];
  const float keep = is_seen ? EXP(shared->m[r] - m) : 1.0f;
  const float take = is_seen ? EXP(m_s - m) : 0.0f;
  const float sum = ((l_s[0] + l_s[ROWS]) + l_s[2 * ROWS]) + l_s[3 * ROWS];
  shared->l[r] = FMA(shared->l[r], keep, sum * take);
  shared->m[r] = m;
  shared->keep[r] = keep;
  shared->take[r] = take;
}

// Weights e^(score - m_s) of the span that begins at a position.
FUNCTION void weigh_span(const Work* work, const Shared* shared, int begin) {
  const int item = ITEM_OF_GROUP();
  float score[KEYS_OF_ITEM][ROWS];
  float of_row[ROWS];
  UNROLL for (int i = 0; i < KEYS_OF_ITEM; ++i) {
    const int position = begin + item + ITEMS * i;
    UNROLL for (int r = 0; r < ROWS; ++r) score[i][r] = NEGATIVE_INFINITY;
    if (position < work->most) score_key(work, shared, position, score[i]);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) of_row[r] = MAX(score[0][r], score[1][r]);
  max_of_lanes(of_row, ROWS, shared->weights, ITEMS);
  share_of_lanes(shared->largest, of_row);
  UNROLL for (int r = 0; r < ROWS; ++r) {
    const float m_s = largest_of_span(shared, r);
    UNROLL for (int i = 0; i < KEYS_OF_ITEM; ++i) {
      const bool is_seen = begin + item + ITEMS * i < shared->seen[r];
      score[i][r] = is_seen ? EXP(score[i][r] - m_s) : 0.0f;
    }
    of_row[r] = score[0][r] + score[1][r];
  }
  sum_of_lanes(of_row, ROWS, shared->weights, ITEMS);
  UNROLL for (int i = 0; i < KEYS_OF_ITEM; ++i) {
    LOCAL float* weights = shared->weights + (item + ITEMS * i) * ROWS;
    UNROLL for (int r = 0; r < ROWS; ++r) weights[r] = score[i][r];
  }
  share_of_lanes(shared->of_lanes, of_row);
  merge_sums(shared, begin);
}

FUNCTION void load_values(GLOBAL const uchar* values, const bool is_even, int column, int head_dim,
                          int slot, float* v) {
  if (is_even) {
    load_v_pair(values, slot * head_dim + column, v);
  } else {
    v[0] = LOAD_V(values, slot * head_dim + column);
    v[1] = column + 1 < head_dim ? LOAD_V(values, slot * head_dim + column + 1) : 0.0f;
  }
}

// Adds the values of a block to two columns: positions first to first + n, of which only some rows
// see those from first + n_all on. Many loads are on their way. acc [ROWS, 2]
FUNCTION void add_values(const Shared* shared, GLOBAL const uchar* values, const bool is_even,
                         int column, int head_dim, int first, int of_span, int n, int n_all,
                         float* acc) {
  LOCAL const float* weights = shared->weights + of_span * ROWS;
  UNROLL_BY(VALUES_AHEAD) for (int j = 0; j < n_all; ++j) {
    float v[2];
    load_values(values, is_even, column, head_dim, j, v);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      acc[2 * r] = FMA(weights[j * ROWS + r], v[0], acc[2 * r]);
      acc[2 * r + 1] = FMA(weights[j * ROWS + r], v[1], acc[2 * r + 1]);
    }
  }
  UNROLL_BY(1) for (int j = n_all; j < n; ++j) {
    float v[2];
    load_values(values, is_even, column, head_dim, j, v);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      const bool is_seen = first + j < shared->seen[r];
      acc[2 * r] = is_seen ? FMA(weights[j * ROWS + r], v[0], acc[2 * r]) : acc[2 * r];
      acc[2 * r + 1] = is_seen ? FMA(weights[j * ROWS + r], v[1], acc[2 * r + 1]) : acc[2 * r + 1];
    }
  }
}

// a_s of the span, and its part in a. 64 columns at a time: a lane is two of them, and each row of
// lanes takes a block of positions.
FUNCTION void add_span(const Work* work, const Shared* shared, int begin) {
  const int item = ITEM_OF_GROUP();
  const int lanes = item / LANES;
  const int head_dim = work->head_dim;
  const int first = begin + BLOCK * lanes;
  const int n = MIN(work->most - first, BLOCK);
  for (int columns = 0; columns < head_dim; columns += COLUMNS) {
    const int column = item % LANES * 2;
    float acc[2 * ROWS];
    UNROLL for (int i = 0; i < 2 * ROWS; ++i) acc[i] = 0;
    if (n > 0 && columns + column < head_dim) {
      GLOBAL const uchar* values = keys_of(work, first) + (wide)BLOCK * head_dim * K_BYTES;
      const int n_all = work->least < first ? 0 : MIN(work->least - first, n);
      if (head_dim % 2 == 0) {
        add_values(shared, values, true, columns + column, head_dim, first, BLOCK * lanes, n, n_all,
                   acc);
      } else {
        add_values(shared, values, false, columns + column, head_dim, first, BLOCK * lanes, n,
                   n_all, acc);
      }
    }
    for (int row = 0; row < LANE_ROWS; ++row) {
      BARRIER();
      if (lanes == row) {
        UNROLL for (int i = 0; i < 2 * ROWS; ++i) {
          LOCAL float* sum = shared->sums + i / 2 * COLUMNS + column + i % 2;
          *sum = row == 0 ? acc[i] : *sum + acc[i];
        }
      }
    }
    BARRIER();
    UNROLL_BY(1) for (int i = item; i < ROWS * COLUMNS; i += ITEMS) {
      const int r = i / COLUMNS;
      const int d = columns + i % COLUMNS;
      if (d < head_dim) {
        LOCAL float* a = shared->state + r * head_dim + d;
        *a = FMA(*a, shared->keep[r], shared->sums[i] * shared->take[r]);
      }
    }
  }
  BARRIER();
}

// What `append` of kv_cache.cl.h does before attention, for steps with one token of each sequence:
// the group does it for its own token and heads. n_rot below 0: it is done.
typedef struct {
  GLOBAL const float* k;
  GLOBAL const float* v;
  GLOBAL const float* angles;
  int n_rot;
  GLOBAL float* rotated_q;
  GLOBAL float* rotated_k;
} Append;

// Puts the key and the value of a token's KV head into the cache. Other groups that look at the
// same head may do the same, with the same numbers. `at`: where they begin in k and v.
FUNCTION void append_head(const Work* work, const Append* append, wide at) {
  const int position = work->most - 1;
  GLOBAL const float* turn = append->angles + (wide)position * append->n_rot;
  for (int d = ITEM_OF_GROUP(); d < work->head_dim; d += ITEMS) {
    const float key = rotated(append->k + at, d, turn, append->n_rot);
    store_key(key, keys_of(work, position), d, position % BLOCK, work->head_dim);
    store_value(append->v[at + d], keys_of(work, position), d, position % BLOCK, work->head_dim);
    if (append->n_rot > 0) append->rotated_k[at + d] = key;
  }
  BARRIER_OF_ALL();
}

// The queries, and rows that have met no position yet.
FUNCTION void begin_rows(const Work* work, const Shared* shared, GLOBAL const float* q,
                         GLOBAL const int* positions, const Append* append) {
  const int item = ITEM_OF_GROUP();
  const int head_dim = work->head_dim;
  BARRIER();
  if (item < ROWS) {
    shared->m[item] = NEGATIVE_INFINITY;
    shared->l[item] = 0;
    shared->seen[item] = item < work->n_rows ? positions[item / work->heads] + 1 : 0;
  }
  UNROLL_BY(1) for (int i = item; i < ROWS * head_dim; i += ITEMS) {
    const int r = i / head_dim;
    if (r >= work->n_rows) {
      shared->query[i] = 0;
    } else if (append->n_rot > 0) {
      const wide begin = place_of(work, r) * head_dim;
      GLOBAL const float* turn = append->angles + (wide)(work->most - 1) * append->n_rot;
      shared->query[i] = rotated(q + begin, i % head_dim, turn, append->n_rot);
      append->rotated_q[begin + i % head_dim] = shared->query[i];
    } else {
      shared->query[i] = q[place_of(work, r) * head_dim + i % head_dim];
    }
    shared->state[i] = 0;
  }
  BARRIER();
}

// Results of all positions, or the part of one span.
FUNCTION void store_rows(const Work* work, const Shared* shared, GLOBAL float* out,
                         GLOBAL float* parts, int part, int n_parts) {
  const int head_dim = work->head_dim;
  UNROLL_BY(1) for (int i = ITEM_OF_GROUP(); i < work->n_rows * head_dim; i += ITEMS) {
    const int r = i / head_dim;
    const int d = i % head_dim;
    if (n_parts == 1) {
      out[place_of(work, r) * head_dim + d] = shared->state[i] / shared->l[r];
    } else if (part * SPAN_POSITIONS < shared->seen[r]) {
      GLOBAL float* to = parts + (place_of(work, r) * n_parts + part) * (head_dim + 2);
      to[d] = shared->state[i];
      if (d == 0) {
        to[head_dim] = shared->m[r];
        to[head_dim + 1] = shared->l[r];
      }
    }
  }
}

// Grid: [groups of tokens, n_parts, n_kv_heads, tiles of up to ROWS query heads]. The last tokens,
// which see most, come first, those of all heads together. out [n_tokens, n_heads * head_dim] when
// n_parts is 1; else parts [n_tokens, n_heads, n_parts] times (a [head_dim], m, l), with one token
// a group.
KERNEL_OF_GROUPS(128, 1)
attend(ATTENTION) {
  LOCAL_ARRAY float4 query[MOST_STATE / 4];
  LOCAL_ARRAY float4 weights[SPAN_POSITIONS * ROWS / 4];
  LOCAL_ARRAY float state[MOST_STATE];
  LOCAL_ARRAY float sums[ROWS * COLUMNS];
  LOCAL_ARRAY float largest[LANE_ROWS * ROWS];
  LOCAL_ARRAY float of_lanes[LANE_ROWS * ROWS];
  LOCAL_ARRAY float m[ROWS];
  LOCAL_ARRAY float l[ROWS];
  LOCAL_ARRAY float keep[ROWS];
  LOCAL_ARRAY float take[ROWS];
  LOCAL_ARRAY int seen[ROWS];
  const Shared shared = {(LOCAL float*)query,
                         state,
                         (LOCAL float*)weights,
                         sums,
                         largest,
                         of_lanes,
                         m,
                         l,
                         keep,
                         take,
                         seen};
  const Append append = {k, v, angles, n_rot, rotated_q, rotated_k};
  const int tiles = (group + ROWS - 1) / ROWS;
  const int kv_head = GROUP_X() / tiles % n_kv_heads;
  const int tile = GROUP_X() % tiles * ROWS;
  const int heads = MIN(group - tile, ROWS);
  const int n_heads = n_kv_heads * group;
  const int of_tokens = GROUP_X() / (n_kv_heads * tiles);  // among the groups of the same heads
  const int n_groups = (n_tokens + tokens_of_group - 1) / tokens_of_group;
  const int part = of_tokens % n_parts;
  const int begin = (n_groups - 1 - of_tokens / n_parts) * tokens_of_group;
  const int end = MIN(begin + tokens_of_group, n_tokens);
  for (int token = begin, next = begin; token < end; token = next) {
    // Tokens [token, next) belong to one sequence.
    const int sequence = inputs[sequences + token];
    while (next < end && inputs[sequences + next] == sequence) ++next;
    const Work work = {cache,
                       inputs + table + inputs[table_begin + sequence],
                       n_layers * n_kv_heads,
                       layer * n_kv_heads + kv_head,
                       head_dim,
                       inputs[positions + next - 1] + 1,
                       inputs[positions + token] + 1,
                       scale,
                       (next - token) * heads,
                       heads,
                       (wide)token * n_heads + kv_head * group + tile,
                       n_heads};
    if (token == begin) {
      // With few tokens, its part of the context and the token's angles come into the cache while
      // the launch before ends.
      for (int span = part; n_rot >= 0 && span * SPAN_POSITIONS < work.most; span += n_parts)
        fetch_positions(&work, span * SPAN_POSITIONS, SPAN_POSITIONS, ITEMS);
      const int angle = ITEM_OF_GROUP() * FETCHED_LINE / 4;
      if (angle < n_rot) FETCH_LINE(angles + (wide)(work.most - 1) * n_rot + angle);
      AWAIT();
    }
    if (n_rot >= 0 && (work.most - 1) / SPAN_POSITIONS % n_parts == part)
      append_head(&work, &append, ((wide)token * n_kv_heads + kv_head) * head_dim);
    begin_rows(&work, &shared, q, inputs + positions + token, &append);
    for (int span = part * SPAN_POSITIONS; span < work.most; span += n_parts * SPAN_POSITIONS) {
      weigh_span(&work, &shared, span);
      add_span(&work, &shared, span);
    }
    store_rows(&work, &shared, out, parts, part, n_parts);
  }
}

// The parts of attend taken together: an item for each element of out [n_tokens, n_heads *
// head_dim].
KERNEL(128)
combine(GLOBAL const float* parts, GLOBAL const int* inputs, int positions, GLOBAL float* out,
        int n_heads, int head_dim, int n_parts) {
  AWAIT();
  const int cols = n_heads * head_dim;
  const int token = row_of_group(cols, 128);
  const int element = element_of_item(cols, 128);
  if (element >= cols) return;
  const int d = element % head_dim;
  const wide head = (wide)token * n_heads + element / head_dim;
  const int n = inputs[positions + token] / SPAN_POSITIONS + 1;
  GLOBAL const float* part = parts + head * n_parts * (head_dim + 2);
  float m = NEGATIVE_INFINITY;
  float l = 0;
  float a = 0;
  for (int i = 0; i < n; ++i, part += head_dim + 2) {
    const float m_s = part[head_dim];
    const float larger = MAX(m, m_s);
    const float keep = EXP(m - larger);
    const float take = EXP(m_s - larger);
    m = larger;
    l = FMA(l, keep, part[head_dim + 1] * take);
    a = FMA(a, keep, part[d] * take);
  }
  out[head * head_dim + d] = a / l;
}
