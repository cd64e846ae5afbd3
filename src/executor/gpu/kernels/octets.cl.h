// Weights as they lie on the device, and decode_octet, which gives 8 neighbouring columns of a row
// as floats. The program of a type is compiled with one of the WEIGHT_… below defined.
//
// A matrix is a list of octets: o = row * octets_of_row + column / 8. A type's parts lie in planes,
// one after the other, each with an entry for every octet or for every few, in order. So items
// that read neighbouring octets read neighbouring words, and every word lies at a multiple of its
// size. For n octets, in bytes:
//
//   plain        the columns; rows are filled up with zeros to whole octets
//   q8_0         q + 128 [8 n] · d [2 n / 4]
//   q4_0 iq4_nl  q [4 n] · d [2 n / 4]
//   q4_1         q [4 n] · d, m [4 n / 4]
//   q5_0         q [4 n] · d [2 n / 4] · fifth bits [n]
//   q5_1         q [4 n] · d, m [4 n / 4] · fifth bits [n]
//   q4_K         q [4 n] · d, dmin [4 n / 32] · scale, minimum [2 n / 4]
//   q5_K         q [4 n] · d, dmin [4 n / 32] · scale, minimum [2 n / 4] · fifth bits [n]
//   q2_K         q [2 n] · d, dmin [4 n / 32] · scale, minimum of 4 bits [n / 2]
//   q3_K         low two bits [2 n] · third bits [n] · scale - 32 [n / 2] · d [2 n / 32]
//   q6_K         low four bits [4 n] · high two bits [2 n] · scale [n / 2] · d [2 n / 32]
//   iq4_xs       q [4 n] · scale - 32 [n / 4] · d [2 n / 32]
//
// A word of q has column j in bits 4 j (2 j, 8 j), a byte of bits in bit j. Structs of
// tensor/blocks.h describe the formats of files, pack.cl.h brings them here, and packed_bytes of
// packed_matrix.h counts the bytes. The floats have the bits of tensor/codec.h.

#define OCTET 8

// q - middle as a float, for q and middle below 2^22: without the conversion instruction, of which
// GPUs do a quarter as many as of others. 0x4b000000 is 2^23, whose last bit counts 1.
#define SMALL_FLOAT(q, middle) (FLOAT_OF_BITS(0x4b000000u | (q)) - (8388608.0f + (middle)))

FUNCTION float half_of(GLOBAL const uchar* plane, wide i) {
  return LOAD_HALF((GLOBAL const half_bits*)plane, i);
}
FUNCTION uint byte_of(GLOBAL const uchar* plane, wide i) { return plane[i]; }
FUNCTION uint short_of(GLOBAL const uchar* plane, wide i) {
  return ((GLOBAL const half_bits*)plane)[i];
}
FUNCTION uint word_of(GLOBAL const uchar* plane, wide i) { return ((GLOBAL const uint*)plane)[i]; }
FUNCTION float signed_of(GLOBAL const uchar* plane, wide i) {
  return (float)((GLOBAL const signed char*)plane)[i];
}

#if defined(WEIGHT_f32)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  GLOBAL const float* values = (GLOBAL const float*)weight + OCTET * o;
  load_4_floats(values, w);
  load_4_floats(values + 4, w + 4);
}

#elif defined(WEIGHT_f16)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  load_8_halves((GLOBAL const half_bits*)weight + OCTET * o, w);
}

#elif defined(WEIGHT_bf16)

// The upper half of a float.
FUNCTION void floats_of_bf16(uint pair, float* w) {
  w[0] = FLOAT_OF_BITS(pair << 16);
  w[1] = FLOAT_OF_BITS(pair & 0xffff0000u);
}
FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint4 pairs = ((GLOBAL const uint4*)weight)[o];
  floats_of_bf16(pairs.x, w);
  floats_of_bf16(pairs.y, w + 2);
  floats_of_bf16(pairs.z, w + 4);
  floats_of_bf16(pairs.w, w + 6);
}

#elif defined(WEIGHT_q8_0)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint2 q = ((GLOBAL const uint2*)weight)[o];
  const float d = half_of(weight + 8 * n, o / 4);
  UNROLL for (int i = 0; i < 4; ++i) {
    w[i] = d * SMALL_FLOAT((q.x >> (8 * i)) & 255u, 128.0f);
    w[4 + i] = d * SMALL_FLOAT((q.y >> (8 * i)) & 255u, 128.0f);
  }
}

#elif defined(WEIGHT_q4_0) || defined(WEIGHT_q5_0)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint q = word_of(weight, o);
  const float d = half_of(weight + 4 * n, o / 4);
#if defined(WEIGHT_q5_0)
  const uint fifth = byte_of(weight + 4 * n + n / 2, o);
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      d * SMALL_FLOAT(((q >> (4 * i)) & 15u) | ((fifth >> i) & 1u) << 4, 16.0f);
#else
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = d * SMALL_FLOAT((q >> (4 * i)) & 15u, 8.0f);
#endif
}

#elif defined(WEIGHT_q4_1) || defined(WEIGHT_q5_1)

// d q is exact, so FMA rounds as d q + m does.
FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint q = word_of(weight, o);
  float d_m[2];
  load_2_halves((GLOBAL const half_bits*)(weight + 4 * n) + o / 4 * 2, d_m);
#if defined(WEIGHT_q5_1)
  const uint fifth = byte_of(weight + 5 * n, o);
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      FMA(d_m[0], SMALL_FLOAT(((q >> (4 * i)) & 15u) | ((fifth >> i) & 1u) << 4, 0.0f), d_m[1]);
#else
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      FMA(d_m[0], SMALL_FLOAT((q >> (4 * i)) & 15u, 0.0f), d_m[1]);
#endif
}

#elif defined(WEIGHT_q4_K) || defined(WEIGHT_q5_K)

// d scale has 17 bits and q 5, so their product is exact.
FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint q = word_of(weight, o);
  float d_min[2];
  load_2_halves((GLOBAL const half_bits*)(weight + 4 * n) + o / 32 * 2, d_min);
  const uint packed = short_of(weight + 4 * n + n / 8, o / 4);
  const float d = d_min[0] * SMALL_FLOAT(packed & 255u, 0.0f);
  const float m = d_min[1] * SMALL_FLOAT(packed >> 8, 0.0f);
#if defined(WEIGHT_q5_K)
  const uint fifth = byte_of(weight + 4 * n + n / 8 + n / 2, o);
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      FMA(d, SMALL_FLOAT(((q >> (4 * i)) & 15u) | ((fifth >> i) & 1u) << 4, 0.0f), -m);
#else
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = FMA(d, SMALL_FLOAT((q >> (4 * i)) & 15u, 0.0f), -m);
#endif
}

#elif defined(WEIGHT_q2_K)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint q = short_of(weight, o);
  float d_min[2];
  load_2_halves((GLOBAL const half_bits*)(weight + 2 * n) + o / 32 * 2, d_min);
  const uint packed = byte_of(weight + 2 * n + n / 8, o / 2);
  const float d = d_min[0] * SMALL_FLOAT(packed & 15u, 0.0f);
  const float m = d_min[1] * SMALL_FLOAT(packed >> 4, 0.0f);
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = FMA(d, SMALL_FLOAT((q >> (2 * i)) & 3u, 0.0f), -m);
}

#elif defined(WEIGHT_q3_K)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint low = short_of(weight, o);
  const uint third = byte_of(weight + 2 * n, o);
  const float scale = signed_of(weight + 3 * n, o / 2);
  const float d = half_of(weight + 3 * n + n / 2, o / 32) * scale;
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      d * SMALL_FLOAT(((low >> (2 * i)) & 3u) | ((third >> i) & 1u) << 2, 4.0f);
}

#elif defined(WEIGHT_q6_K)

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint low = word_of(weight, o);
  const uint high = short_of(weight + 4 * n, o);
  const float scale = signed_of(weight + 6 * n, o / 2);
  const float d = half_of(weight + 6 * n + n / 2, o / 32) * scale;
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] =
      d * SMALL_FLOAT(((low >> (4 * i)) & 15u) | ((high >> (2 * i)) & 3u) << 4, 32.0f);
}

#elif defined(WEIGHT_iq4_nl) || defined(WEIGHT_iq4_xs)

// Sixteen uneven levels.
TABLE signed char kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

FUNCTION void decode_octet(GLOBAL const uchar* weight, wide n, wide o, float* w) {
  const uint q = word_of(weight, o);
#if defined(WEIGHT_iq4_nl)
  const float d = half_of(weight + 4 * n, o / 4);
#else
  const float scale = signed_of(weight + 4 * n, o / 4);
  const float d = half_of(weight + 4 * n + n / 4, o / 32) * scale;
#endif
  UNROLL for (int i = 0; i < OCTET; ++i) w[i] = d * (float)kLevels[(q >> (4 * i)) & 15u];
}

#endif

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
// The one that a group works on.
#define MATRIX_OF(group, rows_of_group)                                                         \
  matrix_of(group, rows_of_group, weight_0, bias_0, y_0, rows_0, weight_1, bias_1, y_1, rows_1, \
            weight_2, bias_2, y_2, rows_2, biases)

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

FUNCTION void store_output(const Matrix* m, int token, int row, float y) {
  m->y[(wide)token * m->rows + row] = m->has_bias ? y + m->bias[row] : y;
}
