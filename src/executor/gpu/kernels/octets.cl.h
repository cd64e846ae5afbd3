// Weights as they lie on the device, and how 8 neighbouring columns of a row become floats. The
// program of a type is compiled with one of the WEIGHT_… below defined.
//
// A matrix is a list of octets: o = row * octets_of_row + column / 8. A type's parts lie in planes,
// one after the other, each with an entry for every octet or for every few, in order. So items
// that read neighbouring octets read neighbouring words, and every word lies at a multiple of its
// size. There are up to four planes, in this order:
//
//   q       plain types: the columns; rows are filled up with zeros to whole octets. q8_0: q + 128.
//           q2_K and q3_K: the low two bits. Others: the low four
//   high    the bits above: one each, of q6_K two
//   scale   q4_K and q5_K: scale and minimum. q2_K: both in one byte, of 4 bits each.
//           q3_K and iq4_xs: scale - 32. q6_K: scale
//   d       d; of q4_1 and q5_1 also m, of q2_K, q4_K and q5_K also dmin
//
// The host says how many bytes an entry has (Q_BYTES, HIGH_BYTES, SCALE_BYTES, D_BYTES; 0: the type
// lacks the plane) and how many octets share it (SCALE_OCTETS, D_OCTETS; q and high: one):
// packed_matrix.cpp says so. LOW_BITS, HIGH_BITS, ZERO and HAS_MINIMUM are those of
// tensor/code_form.h.
//
// A word of q has column j in bits 4 j (2 j, 8 j), a byte of bits in bit j. Structs of
// tensor/blocks.h describe the formats of files, and pack.cl.h brings them here. The floats have
// the bits of tensor/codec.h.

// Byte i of a word, minus `middle`, as a float.
#define BYTE_FLOAT(word, i, middle) (FLOAT_OVER_BYTE(word, i) - (8388608.0f + (middle)))
// Columns of 4 bits, as bytes: columns 0, 2, 4 and 6 of an octet, and columns 1, 3, 5 and 7. All
// types below 8 bits are brought to such a pair of words, a few instructions for 4 columns at once.
#define EVEN(q) ((q)&0x0f0f0f0fu)
#define ODD(q) ((q) >> 4 & 0x0f0f0f0fu)

// 8 fields of 2 bits, two to a byte: those of columns 2 j and 2 j + 1 in bits 0 and 2 of byte j.
FUNCTION uint spread_pairs(uint x) {
  x = (x | x << 8) & 0x00ff00ffu;
  return (x | x << 4) & 0x0f0f0f0fu;
}
// 8 bits, two to a byte.
FUNCTION uint spread_bits(uint x) {
  x = (x | x << 12) & 0x000f000fu;
  return (x | x << 6) & 0x03030303u;
}

FUNCTION float signed_of(uint byte) { return (float)(signed char)byte; }
FUNCTION float half_of(uint bits) {
  float pair[2];
  floats_of_pair(bits, pair);
  return pair[0];
}

// An octet becomes floats in three steps: row_of gives the places of a row in the planes of a
// matrix of n octets, load_octet gives what they hold of octet o + 32 step of the row, and decode
// gives the 8 columns. So the loads of many octets can be on their way before the first is decoded,
// and addresses are computed once for all octets of a lane.
typedef struct {
  GLOBAL const uchar* q;
  GLOBAL const uchar* d;
  GLOBAL const uchar* scale;
  GLOBAL const uchar* high;
} Row;
// The entry of octet o + 32 step in a plane that has one for every `n` octets.
#define ENTRY(o, step, n) ((int)((uint)(o) / (n)) + 32 / (n) * (step))

// Where the planes begin in a matrix of n octets.
#define HIGH_AT(n) (Q_BYTES * (n))
#define SCALE_AT(n) (HIGH_AT(n) + HIGH_BYTES * (n))
#define D_AT(n) (SCALE_AT(n) + (n) / SCALE_OCTETS * SCALE_BYTES)

FUNCTION Row row_of(GLOBAL const uchar* weight, wide n, int row, int n_octets) {
  const Row places = {weight + (wide)row * (n_octets * Q_BYTES),
                      weight + D_AT(n) + (wide)row * (n_octets / D_OCTETS * D_BYTES),
                      weight + SCALE_AT(n) + (wide)row * (n_octets / SCALE_OCTETS * SCALE_BYTES),
                      weight + HIGH_AT(n) + (wide)row * (n_octets * HIGH_BYTES)};
  return places;
}

#if defined(WEIGHT_f32)

typedef struct {
  float4 low, high;
} Loaded;
FUNCTION Loaded load_octet(const Row* row, int o, const int step) {
  GLOBAL const float4* values = (GLOBAL const float4*)row->q + 2 * ENTRY(o, step, 1);
  const Loaded octet = {values[0], values[1]};
  return octet;
}
FUNCTION void decode(const Loaded* octet, float* w) {
  w[0] = octet->low.x;
  w[1] = octet->low.y;
  w[2] = octet->low.z;
  w[3] = octet->low.w;
  w[4] = octet->high.x;
  w[5] = octet->high.y;
  w[6] = octet->high.z;
  w[7] = octet->high.w;
}

#elif defined(WEIGHT_f16) || defined(WEIGHT_bf16)

#if defined(WEIGHT_f16)
#define FLOATS_OF_PAIR(pair, w) floats_of_pair(pair, w)
#else
#define FLOATS_OF_PAIR(pair, w) floats_of_bf16(pair, w)
// The upper half of a float.
FUNCTION void floats_of_bf16(uint pair, float* w) {
  w[0] = FLOAT_OF_BITS(pair << 16);
  w[1] = FLOAT_OF_BITS(pair & 0xffff0000u);
}
#endif
typedef struct {
  uint4 pairs;
} Loaded;
FUNCTION Loaded load_octet(const Row* row, int o, const int step) {
  const Loaded octet = {((GLOBAL const uint4*)row->q)[ENTRY(o, step, 1)]};
  return octet;
}
FUNCTION void decode(const Loaded* octet, float* w) {
  FLOATS_OF_PAIR(octet->pairs.x, w);
  FLOATS_OF_PAIR(octet->pairs.y, w + 2);
  FLOATS_OF_PAIR(octet->pairs.z, w + 4);
  FLOATS_OF_PAIR(octet->pairs.w, w + 6);
}

#elif defined(WEIGHT_q8_0)

typedef struct {
  uint2 q;
  uint d;
} Loaded;
FUNCTION Loaded load_octet(const Row* row, int o, const int step) {
  const Loaded octet = {((GLOBAL const uint2*)row->q)[ENTRY(o, step, 1)],
                        ((GLOBAL const half_bits*)row->d)[ENTRY(o, step, 4)]};
  return octet;
}
FUNCTION void decode(const Loaded* octet, float* w) {
  const float d = half_of(octet->d);
  UNROLL for (int i = 0; i < 4; ++i) {
    w[i] = d * BYTE_FLOAT(octet->q.x, i, 128.0f);
    w[4 + i] = d * BYTE_FLOAT(octet->q.y, i, 128.0f);
  }
}

#else

typedef struct {
  uint q, d, scale, high;
} Loaded;

FUNCTION uint entry_of(GLOBAL const uchar* plane, const int bytes, int i) {
  if (bytes == 4) return ((GLOBAL const uint*)plane)[i];
  if (bytes == 2) return ((GLOBAL const half_bits*)plane)[i];
  return bytes == 1 ? plane[i] : 0;
}
FUNCTION Loaded load_octet(const Row* row, int o, const int step) {
  const Loaded octet = {entry_of(row->q, Q_BYTES, ENTRY(o, step, 1)),
                        entry_of(row->d, D_BYTES, ENTRY(o, step, D_OCTETS)),
                        entry_of(row->scale, SCALE_BYTES, ENTRY(o, step, SCALE_OCTETS)),
                        entry_of(row->high, HIGH_BYTES, ENTRY(o, step, 1))};
  return octet;
}

#if defined(WEIGHT_iq4_nl) || defined(WEIGHT_iq4_xs)

// Sixteen uneven levels.
TABLE signed char kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

FUNCTION void decode(const Loaded* octet, float* w) {
  float d = half_of(octet->d);
  if (SCALE_BYTES > 0) d *= signed_of(octet->scale);
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = d * (float)kLevels[octet->q >> (4 * i) & 15u];
}

#else

FUNCTION void decode(const Loaded* octet, float* w) {
#if LOW_BITS == 2
  const uint low = spread_pairs(octet->q);
  uint even = low & 0x03030303u;
  uint odd = low >> 2 & 0x03030303u;
#else
  uint even = EVEN(octet->q);
  uint odd = ODD(octet->q);
#endif
#if HIGH_BITS > 0
  const uint high = HIGH_BITS == 1 ? spread_bits(octet->high) : spread_pairs(octet->high);
  const uint mask = (HIGH_BITS == 1 ? 0x01010101u : 0x03030303u) << LOW_BITS;
  even |= high << LOW_BITS & mask;
  odd |= high << (LOW_BITS - HIGH_BITS) & mask;
#endif

#if HAS_MINIMUM
  // d q is exact, so FMA rounds as d q + m does: d has at most 11 bits, or 17 with its scale, and q
  // at most 5.
  float d_m[2];
  floats_of_pair(octet->d, d_m);
#if SCALE_BYTES == 2
  d_m[0] *= BYTE_FLOAT(octet->scale, 0, 0.0f);
  d_m[1] *= -BYTE_FLOAT(octet->scale, 1, 0.0f);
#elif SCALE_BYTES == 1
  d_m[0] *= BYTE_FLOAT(octet->scale & 15u, 0, 0.0f);
  d_m[1] *= -BYTE_FLOAT(octet->scale >> 4, 0, 0.0f);
#endif
  UNROLL for (int j = 0; j < OCTET / 2; ++j) {
    w[2 * j] = FMA(d_m[0], BYTE_FLOAT(even, j, 0.0f), d_m[1]);
    w[2 * j + 1] = FMA(d_m[0], BYTE_FLOAT(odd, j, 0.0f), d_m[1]);
  }
#else
  float d = half_of(octet->d);
  if (SCALE_BYTES > 0) d *= signed_of(octet->scale);
  UNROLL for (int j = 0; j < OCTET / 2; ++j) {
    w[2 * j] = d * BYTE_FLOAT(even, j, (float)ZERO);
    w[2 * j + 1] = d * BYTE_FLOAT(odd, j, (float)ZERO);
  }
#endif
}

#endif
#endif

FUNCTION void decode_octet(GLOBAL const uchar* weight, int rows, int n_octets, int row, int o,
                           float* w) {
  const Row places = row_of(weight, (wide)rows * n_octets, row, n_octets);
  const Loaded octet = load_octet(&places, o, 0);
  decode(&octet, w);
}

// ---- matrices of a launch -----------------------------------------------------------------------

// A launch multiplies x with up to three matrices of one type: those of Q, K and V, say. Each is
// worked on by groups of its own, one after the other.
typedef struct {
  GLOBAL const uchar* weight;
  GLOBAL const float* bias;
  GLOBAL float* y;  // [n_tokens, rows]
  int rows;         // 0 if the matrix is absent
  int has_bias;
  int group;  // which of the groups that work on the matrix
} Matrix;

// Parameters of a kernel: the matrices, and bit i of `biases` when matrix i has one.
#define MATRICES                                                                               \
  GLOBAL const uchar *weight_0, GLOBAL const float *bias_0, GLOBAL float *y_0, int rows_0,     \
      GLOBAL const uchar *weight_1, GLOBAL const float *bias_1, GLOBAL float *y_1, int rows_1, \
      GLOBAL const uchar *weight_2, GLOBAL const float *bias_2, GLOBAL float *y_2, int rows_2, \
      int biases
#define MATRIX_NAMES                                                                           \
  weight_0, bias_0, y_0, rows_0, weight_1, bias_1, y_1, rows_1, weight_2, bias_2, y_2, rows_2, \
      biases
// The one that a group works on.
#define MATRIX_OF(group, rows_of_group) matrix_of(group, rows_of_group, MATRIX_NAMES)

FUNCTION Matrix matrix_of(int group, int rows_of_group, MATRICES) {
  Matrix m = {weight_0, bias_0, y_0, rows_0, biases & 1, group};
  const int groups_0 = (rows_0 + rows_of_group - 1) / rows_of_group;
  const int groups_1 = (rows_1 + rows_of_group - 1) / rows_of_group;
  if (group >= groups_0 + groups_1) {
    const Matrix third = {weight_2, bias_2, y_2, rows_2, biases & 4, group - groups_0 - groups_1};
    m = third;
  } else if (group >= groups_0) {
    const Matrix second = {weight_1, bias_1, y_1, rows_1, biases & 2, group - groups_0};
    m = second;
  }
  return m;
}

FUNCTION float with_bias(const Matrix* m, int row, float y) {
  return m->has_bias ? y + m->bias[row] : y;
}
FUNCTION void store_output(const Matrix* m, int token, int row, float y) {
  m->y[(wide)token * m->rows + row] = with_bias(m, row, y);
}
