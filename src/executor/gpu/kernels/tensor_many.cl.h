// Linear layers of prompts on tensor cores, in the order of addition of tensor.cl.h.
//
// Many tokens need each weight many times, so W is decoded first, a few tiles of 128 rows at a
// time. A tile of x has 128 tokens. Tiles of both have this layout, with zeros in columns that are
// not there. Rows of W that are not there repeat the last one, and tokens that are not there are
// whatever was in memory: only sums that are not stored depend on them.
//
//   uint4 [n_tiles, n_spans, SPAN_CHUNKS, CHUNK_OCTETS, TENSOR_TILE]
//
// Within a chunk, word j of octet t has become word t of octet j. So octets 0 and 1 are the chunk's
// first fragment, octets 2 and 3 are its second one, and each item's columns are at the places of
// fragments.cl.h. Tensor cores load octets of 8 neighbouring rows, which are 128 bytes in a row. A
// span of a tile is in one piece, so that one instruction can copy it.

// Decodes a span of a row for each item. The tiles of several matrices follow each other; these
// begin with tile `first`. Grid: [n_tiles, n_spans].
KERNEL(128)
halve_tiles(MATRICES, GLOBAL uint4* halves, int cols, int first) {
  AWAIT();
  const int n_octets = (cols + OCTET - 1) / OCTET;
  const int n_spans = octets_of_spans(cols) / (SPAN_CHUNKS * CHUNK_OCTETS);
  const Matrix m = MATRIX_OF(first + GROUP_X() / n_spans, TENSOR_TILE);
  const int row = m.group * TENSOR_TILE + ITEM_OF_GROUP();
  const int o = GROUP_X() % n_spans * SPAN_CHUNKS * CHUNK_OCTETS;
  uint4 v[SPAN_CHUNKS * CHUNK_OCTETS];
  UNROLL for (int i = 0; i < SPAN_CHUNKS * CHUNK_OCTETS; ++i) v[i] =
      halves_of_octet(m.weight, m.rows, n_octets, row, o + i);
  GLOBAL uint4* to =
      halves + (wide)GROUP_X() * SPAN_CHUNKS * CHUNK_OCTETS * TENSOR_TILE + ITEM_OF_GROUP();
  UNROLL for (int i = 0; i < SPAN_CHUNKS * CHUNK_OCTETS; i += CHUNK_OCTETS) {
    const uint4 transposed[CHUNK_OCTETS] = {{v[i].x, v[i + 1].x, v[i + 2].x, v[i + 3].x},
                                            {v[i].y, v[i + 1].y, v[i + 2].y, v[i + 3].y},
                                            {v[i].z, v[i + 1].z, v[i + 2].z, v[i + 3].z},
                                            {v[i].w, v[i + 1].w, v[i + 2].w, v[i + 3].w}};
    UNROLL for (int j = 0; j < CHUNK_OCTETS; ++j) to[(i + j) * TENSOR_TILE] = transposed[j];
  }
}

// ---- what a group does --------------------------------------------------------------------------

// A group computes one tile of 128 rows by 128 tokens after another, a span at a time. Up to STAGES
// spans of both operands are in local memory or on their way to it. While the results of a tile are
// stored, the first spans of the next tile arrive.
#define CHUNK_OF_TILE (TENSOR_TILE * CHUNK_OCTETS)
#define SPAN_OCTETS (SPAN_CHUNKS * CHUNK_OF_TILE)
#define STAGE_OCTETS (2 * SPAN_OCTETS)                      // those of W, then those of x
#define TILE_ITEMS (WARPS * LANES)                          // that compute a tile
#define TILE_SUMS (TENSOR_TILE * TENSOR_TILE / TILE_ITEMS)  // of an item

// The tiles of a step. A tile of rows with all tiles of tokens comes first, then the next tile of
// rows, so that groups that run at the same time read the same rows of W.
typedef struct {
  GLOBAL const uint4* w;
  GLOBAL const uint4* x;
  int n_spans;
  int n_of_tokens;  // tiles
  int n_tiles;      // of rows and tokens
} Tiles;

// A span of a tile, and where the tile lies.
typedef struct {
  int tile;
  int span;
  GLOBAL const uint4* w;
  GLOBAL const uint4* x;
} Turn;

FUNCTION void begin_tile(const Tiles* tiles, Turn* turn) {
  const wide octets_of_tile = (wide)tiles->n_spans * SPAN_OCTETS;
  turn->span = 0;
  turn->w = tiles->w + turn->tile / tiles->n_of_tokens * octets_of_tile;
  turn->x = tiles->x + turn->tile % tiles->n_of_tokens * octets_of_tile;
}
// The next span is that after this one in its lane, or the first one of the next lane, or of the
// next tile.
FUNCTION void advance(const Tiles* tiles, Turn* turn) {
  const int lane = turn->span % K_LANES + 1;
  turn->span += K_LANES;
  if (turn->span < tiles->n_spans) return;
  turn->span = lane;
  if (lane < MIN(K_LANES, tiles->n_spans)) return;
  turn->tile += GROUPS_X();
  begin_tile(tiles, turn);
}

// The stage of the next span, and how many rounds through the stages were made before.
FUNCTION void next_stage(const int n_stages, int* stage, int* round) {
  if (++*stage < n_stages) return;
  *stage = 0;
  ++*round;
}

#if defined(HAS_LOADER)

// ---- four warps together ------------------------------------------------------------------------

// Hopper's instructions for four warps (wgmma) can take both operands from local memory, and
// multiply while the warps go on. The first four warps compute 64 rows by all tokens, the next four
// the other 64 rows. One more warp, the loader, copies spans into the stages.
#define STAGES 6

// A counter for each stage counts rounds: how often a span has arrived in it, or how often all
// warps were done with it.
#define COUNTERS(name) LOCAL_ARRAY unsigned long long name[STAGES]
FUNCTION uint local_place(const void* in_local_memory) {
  return (uint)__cvta_generic_to_shared(in_local_memory);
}
FUNCTION void begin_counters(unsigned long long* arrived, unsigned long long* done) {
  if (ITEM_OF_GROUP() == 0) {
    for (int i = 0; i < STAGES; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(local_place(arrived + i)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(local_place(done + i)),
                   "n"(WARPS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  BARRIER();
}
// Waits until a round is complete. Round -1 is.
FUNCTION void await_round(const unsigned long long* counter, int round) {
  asm volatile(
      "{\n"
      ".reg .pred is_complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 is_complete, [%0], %1;\n"
      "@!is_complete bra again;\n"
      "}" ::"r"(local_place(counter)),
      "r"(round & 1)
      : "memory");
}
FUNCTION void count(unsigned long long* counter) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(local_place(counter)) : "memory");
}

FUNCTION void copy_span(uint4* to, const uint4* from, uint counter) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(local_place(to)),
      "l"(from), "n"(SPAN_OCTETS * sizeof(uint4)), "r"(counter)
      : "memory");
}
// Begins to copy a span of both operands into a stage.
FUNCTION void fetch_span(const Turn* turn, uint4* stage, unsigned long long* arrived) {
  const uint counter = local_place(arrived);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(counter),
               "n"(STAGE_OCTETS * sizeof(uint4))
               : "memory");
  copy_span(stage, turn->w + turn->span * SPAN_OCTETS, counter);
  copy_span(stage + SPAN_OCTETS, turn->x + turn->span * SPAN_OCTETS, counter);
}

// An operand in local memory, as the instruction wants it described: the octets of 8 rows lie
// together, those of the next 8 rows 128 bytes further, and the second octet of a fragment
// TENSOR_TILE octets further. Distances are in units of 16 bytes.
FUNCTION unsigned long long operand(const uint4* octets) {
  const unsigned long long second = TENSOR_TILE;
  const unsigned long long next_rows = 8;
  return (unsigned long long)(local_place(octets) / 16) | second << 16 | next_rows << 32;
}

#define SUMS_16(c, i)                                                                         \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7]), "+f"(c[i + 8]), "+f"(c[i + 9]), "+f"(c[i + 10]),        \
      "+f"(c[i + 11]), "+f"(c[i + 12]), "+f"(c[i + 13]), "+f"(c[i + 14]), "+f"(c[i + 15])

// Begins to add the products of a span.
FUNCTION void multiply_span(const uint4* stage, float* c) {
  const uint4* w = stage + ITEM_OF_GROUP() / 128 * (TENSOR_TILE / 2);
  const uint4* x = stage + SPAN_OCTETS;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  UNROLL for (int i = 0; i < 2 * SPAN_CHUNKS; ++i) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1, 1, 1, 0, 0;"
        : SUMS_16(c, 0), SUMS_16(c, 16), SUMS_16(c, 32), SUMS_16(c, 48)
        : "l"(operand(w + i * 2 * TENSOR_TILE)), "l"(operand(x + i * 2 * TENSOR_TILE)));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most n of the spans that were begun are not yet added.
#define AWAIT_PRODUCTS(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
// Waits for the sums, which no item may touch before.
FUNCTION void await_sums(float* c) {
  AWAIT_PRODUCTS(0);
  UNROLL for (int i = 0; i < TILE_SUMS; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// The place of sum i within the tile.
FUNCTION int row_of_sum(int i) {
  const int item = ITEM_OF_GROUP();
  return item / LANES * FRAGMENT_ROWS + item / 4 % 8 + i % 4 / 2 * 8;
}
FUNCTION int token_of_sum(int i) {
  return i / 4 * FRAGMENT_TOKENS + 2 * (ITEM_OF_GROUP() % 4) + i % 2;
}

#else

// ---- a warp for itself --------------------------------------------------------------------------

// A warp computes 64 rows by 32 tokens, and items copy 16 bytes after the other.
#define STAGES 3
#define WARP_ROW_FRAGMENTS 4
#define WARP_TOKEN_FRAGMENTS 4

FUNCTION void fetch_span(const Tiles* tiles, const Turn* turn, LOCAL uint4* stage) {
  if (turn->tile < tiles->n_tiles) {
    GLOBAL const uint4* w = turn->w + turn->span * SPAN_OCTETS;
    GLOBAL const uint4* x = turn->x + turn->span * SPAN_OCTETS;
    UNROLL for (int i = 0; i < SPAN_OCTETS; i += TILE_ITEMS) {
      const int at = i + ITEM_OF_GROUP();
      copy_ahead(stage + at, w + at, true);
      copy_ahead(stage + SPAN_OCTETS + at, x + at, true);
    }
  }
  END_OF_COPIES();
}

FUNCTION int first_row_of_warp() {
  return ITEM_OF_GROUP() / LANES % 2 * WARP_ROW_FRAGMENTS * FRAGMENT_ROWS;
}
FUNCTION int first_token_of_warp() {
  return ITEM_OF_GROUP() / LANES / 2 * WARP_TOKEN_FRAGMENTS * FRAGMENT_TOKENS;
}

// Adds the products of a span.
FUNCTION void multiply_span(LOCAL const uint4* stage, float* c, LOCAL float* meeting) {
  UNROLL_FRAGMENTS for (int chunk = 0; chunk < SPAN_CHUNKS; ++chunk) {
    LOCAL const uint4* w = stage + chunk * CHUNK_OF_TILE + first_row_of_warp();
    LOCAL const uint4* x = stage + SPAN_OCTETS + chunk * CHUNK_OF_TILE + first_token_of_warp();
    uint of_x[WARP_TOKEN_FRAGMENTS][4];  // two words of each of the chunk's fragments
    UNROLL_FRAGMENTS for (int j = 0; j < WARP_TOKEN_FRAGMENTS; ++j)
        load_octets(x + j * FRAGMENT_TOKENS, TENSOR_TILE, 2 * TENSOR_TILE, of_x[j]);
    UNROLL_FRAGMENTS for (int k = 0; k < 2; ++k) {
      UNROLL_FRAGMENTS for (int i = 0; i < WARP_ROW_FRAGMENTS; ++i) {
        uint of_w[4];
        load_octets(w + k * 2 * TENSOR_TILE + i * FRAGMENT_ROWS, 8, TENSOR_TILE, of_w);
        UNROLL_FRAGMENTS for (int j = 0; j < WARP_TOKEN_FRAGMENTS; ++j) multiply_fragments(
            of_w, of_x[j] + 2 * k, c + 4 * (i * WARP_TOKEN_FRAGMENTS + j), meeting);
      }
    }
  }
}

FUNCTION int row_of_sum(int i) {
  const int of_warp = i / 4 / WARP_TOKEN_FRAGMENTS * FRAGMENT_ROWS;
  return first_row_of_warp() + of_warp + ITEM_OF_GROUP() / 4 % 8 + i % 4 / 2 * 8;
}
FUNCTION int token_of_sum(int i) {
  const int of_warp = i / 4 % WARP_TOKEN_FRAGMENTS * FRAGMENT_TOKENS;
  return first_token_of_warp() + of_warp + 2 * (ITEM_OF_GROUP() % 4) + i % 2;
}

#endif

// ---- the kernel ---------------------------------------------------------------------------------

// Scales the sums of a tile back, and stores those of rows and tokens that are there. All is loaded
// before the first result is stored: a compiler may not move a load before a store.
FUNCTION void store_sums(const Matrix* m, float* total, GLOBAL const float* undo, int n_tokens,
                         int first_token) {
  const int first_row = m->group * TENSOR_TILE;
  UNROLL for (int i = 0; i < TILE_SUMS; ++i) total[i] *=
      undo[MIN(first_token + token_of_sum(i), n_tokens - 1)];
  UNROLL for (int i = 0; i < TILE_SUMS; ++i) total[i] =
      with_bias(m, MIN(first_row + row_of_sum(i), m->rows - 1), total[i]);
  UNROLL for (int i = 0; i < TILE_SUMS; ++i) {
    const int row = first_row + row_of_sum(i);
    const int token = first_token + token_of_sum(i);
    if (row < m->rows && token < n_tokens) m->y[(wide)token * m->rows + row] = total[i];
  }
}

// More than 64 tokens; `halves` has n_tiles tiles of rows, which begin with `first`. Grid: as many
// groups as the device runs at the same time, or one for each tile.
KERNEL_WITH_LOADER(256, 1)
tensor_many(MATRICES, GLOBAL const uint4* halves, GLOBAL const uint4* x, int cols, int n_tokens,
            int first, int n_tiles) {
  LARGE_LOCAL_ARRAY(uint4, stages, STAGES * STAGE_OCTETS);
  const int n_octets = octets_of_spans(cols);
  const int n_of_tokens = (n_tokens + TENSOR_TILE - 1) / TENSOR_TILE;
  const Tiles tiles = {halves, x, n_octets / (SPAN_CHUNKS * CHUNK_OCTETS), n_of_tokens,
                       n_of_tokens * n_tiles};
  GLOBAL const float* undo = (GLOBAL const float*)(x + tokens_with_room(n_tokens, 1) * n_octets);
  Turn turn = {GROUP_X(), 0, halves, x};
  begin_tile(&tiles, &turn);
  int stage = 0;
  int round = 0;
  float total[TILE_SUMS];
  UNROLL for (int i = 0; i < TILE_SUMS; ++i) total[i] = 0;
#if defined(HAS_LOADER)
  COUNTERS(arrived);
  COUNTERS(done);
  begin_counters(arrived, done);
  AWAIT();
  if (ITEM_OF_GROUP() >= TILE_ITEMS) {  // the loader
    while (ITEM_OF_GROUP() == TILE_ITEMS && turn.tile < tiles.n_tiles) {
      await_round(done + stage, round - 1);
      fetch_span(&turn, stages + stage * STAGE_OCTETS, arrived + stage);
      advance(&tiles, &turn);
      next_stage(STAGES, &stage, &round);
    }
    return;
  }
  int before = -1;  // the stage whose products may still be on their way
#else
  MEETING(meeting);
  AWAIT();
  Turn fetched = turn;
  for (int i = 0; i + 1 < STAGES; ++i) {
    fetch_span(&tiles, &fetched, stages + i * STAGE_OCTETS);
    advance(&tiles, &fetched);
  }
#endif
  while (turn.tile < tiles.n_tiles) {
    // A lane. No branch within this loop touches c: the compiler would wait for the sums there.
    Turn here;
    float c[TILE_SUMS];
    UNROLL for (int i = 0; i < TILE_SUMS; ++i) c[i] = 0;
    do {
      LOCAL const uint4* span = stages + stage * STAGE_OCTETS;
#if defined(HAS_LOADER)
      await_round(arrived + stage, round);
      multiply_span(span, c);
      AWAIT_PRODUCTS(1);
      if (before >= 0 && ITEM_OF_GROUP() % LANES == 0) count(done + before);
      before = stage;
#else
      AWAIT_COPIES(STAGES - 2);
      BARRIER();  // and all items are done with the span before, whose stage is filled again
      fetch_span(&tiles, &fetched, stages + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE_OCTETS);
      advance(&tiles, &fetched);
      multiply_span(span, c, MEETING_OF(meeting));
#endif
      here = turn;
      advance(&tiles, &turn);
      next_stage(STAGES, &stage, &round);
    } while (turn.span == here.span + K_LANES);
#if defined(HAS_LOADER)
    await_sums(c);
#endif
    UNROLL for (int i = 0; i < TILE_SUMS; ++i) total[i] += c[i];
    if (turn.tile != here.tile) {
      const Matrix m = MATRIX_OF(first + here.tile / n_of_tokens, TENSOR_TILE);
      store_sums(&m, total, undo, n_tokens, here.tile % n_of_tokens * TENSOR_TILE);
      UNROLL for (int i = 0; i < TILE_SUMS; ++i) total[i] = 0;
    }
  }
}
