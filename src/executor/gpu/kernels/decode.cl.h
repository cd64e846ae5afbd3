// decode_span: 32 columns of a weight's row as floats, from the bytes of the file. The program of a
// type is compiled with one of the WEIGHT_… below defined. Structs of tensor/blocks.h describe the
// formats; here their members are offsets in bytes. The results have the bits of tensor/codec.h.
//
//   row   the row's first byte
//   span  which 32 columns: [32 span, 32 span + 32)
//   cols  columns of the row; of plain types those beyond are given as 0
//   w     result [32]

#define SPAN 32

// The half at an even number of bytes from p.
FUNCTION float half_at(GLOBAL const uchar* p) { return LOAD_HALF((GLOBAL const half_bits*)p, 0); }

#if defined(WEIGHT_f32)

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  GLOBAL const float* values = (GLOBAL const float*)row;
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const int k = span * SPAN + i;
    w[i] = k < cols ? values[k] : 0.0f;
  }
}

#elif defined(WEIGHT_f16)

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  GLOBAL const half_bits* values = (GLOBAL const half_bits*)row;
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const int k = span * SPAN + i;
    w[i] = k < cols ? LOAD_HALF(values, k) : 0.0f;
  }
}

#elif defined(WEIGHT_bf16)

// The upper half of a float.
FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  GLOBAL const half_bits* values = (GLOBAL const half_bits*)row;
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const int k = span * SPAN + i;
    w[i] = k < cols ? FLOAT_OF_BITS((uint)values[k] << 16) : 0.0f;
  }
}

#elif defined(WEIGHT_q8_0)

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  GLOBAL const uchar* block = row + span * 34;
  GLOBAL const signed char* q = (GLOBAL const signed char*)(block + 2);
  const float d = half_at(block);
  UNROLL for (int i = 0; i < SPAN; ++i) w[i] = d * (float)q[i];
}

#elif defined(WEIGHT_q4_0) || defined(WEIGHT_q4_1) || defined(WEIGHT_q5_0) || defined(WEIGHT_q5_1)

// Nibbles: element j < 16 is the low half of byte j, element 16 + j its high half. The Q5 formats
// have a fifth bit in a word of 32; those with a minimum m have no middle to take away.
#if defined(WEIGHT_q4_0)
#define BLOCK_BYTES 18
#elif defined(WEIGHT_q4_1)
#define BLOCK_BYTES 20
#elif defined(WEIGHT_q5_0)
#define BLOCK_BYTES 22
#else
#define BLOCK_BYTES 24
#endif

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  GLOBAL const uchar* block = row + (wide)span * BLOCK_BYTES;
  const float d = half_at(block);
  GLOBAL const uchar* qs = block + BLOCK_BYTES - 16;
#if defined(WEIGHT_q4_1) || defined(WEIGHT_q5_1)
  const float m = half_at(block + 2);
#endif
#if defined(WEIGHT_q5_0) || defined(WEIGHT_q5_1)
  GLOBAL const uchar* qh = qs - 4;
  const uint fifth = (uint)qh[0] | ((uint)qh[1] << 8) | ((uint)qh[2] << 16) | ((uint)qh[3] << 24);
#else
  const uint fifth = 0;
#endif
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const int nibble = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
    const int q = nibble | (int)((fifth >> i) & 1u) << 4;
#if defined(WEIGHT_q4_0)
    w[i] = d * (float)(q - 8);
#elif defined(WEIGHT_q5_0)
    w[i] = d * (float)(q - 16);
#else
    w[i] = d * (float)q + m;
#endif
  }
}

#elif defined(WEIGHT_q4_K) || defined(WEIGHT_q5_K)

// 256 columns share d and dmin; each span of 32 has a scale and a minimum of six bits, packed into
// twelve bytes. Nibble `span % 2` of 32 bytes; bit `span` of qh is the fifth.
FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  const int g = span % 8;
#if defined(WEIGHT_q4_K)
  GLOBAL const uchar* block = row + (wide)(span / 8) * 144;
  GLOBAL const uchar* qs = block + 16 + g / 2 * 32;
#else
  GLOBAL const uchar* block = row + (wide)(span / 8) * 176;
  GLOBAL const uchar* qh = block + 16;
  GLOBAL const uchar* qs = block + 48 + g / 2 * 32;
#endif
  GLOBAL const uchar* packed = block + 4;
  const int scale = g < 4 ? packed[g] & 63 : (packed[4 + g] & 15) | (packed[g - 4] >> 6) << 4;
  const int minimum = g < 4 ? packed[4 + g] & 63 : packed[4 + g] >> 4 | (packed[g] >> 6) << 4;
  const float d = half_at(block) * (float)scale;
  const float m = half_at(block + 2) * (float)minimum;
  UNROLL for (int i = 0; i < SPAN; ++i) {
    int q = (qs[i] >> (4 * (g % 2))) & 15;
#if defined(WEIGHT_q5_K)
    q |= ((qh[i] >> g) & 1) << 4;
#endif
    w[i] = d * (float)q - m;
  }
}

#elif defined(WEIGHT_q2_K)

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  const int g = span % 8;
  GLOBAL const uchar* block = row + (wide)(span / 8) * 84;  // scales 16, qs 64, d, dmin
  GLOBAL const uchar* qs = block + 16 + g / 4 * 32;
  const float d = half_at(block + 80);
  const float dmin = half_at(block + 82);
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const int packed = block[2 * g + i / 16];
    const int q = (qs[i] >> (2 * (g % 4))) & 3;
    w[i] = d * (float)(packed & 15) * (float)q - dmin * (float)(packed >> 4);
  }
}

#elif defined(WEIGHT_q3_K)

// Scale i of 16: four bits of bytes 0 to 7, two of bytes 8 to 11, less 32.
FUNCTION int q3_scale(GLOBAL const uchar* packed, int i) {
  const int low = (i < 8 ? packed[i] : packed[i - 8] >> 4) & 15;
  return (low | ((packed[8 + i % 4] >> (2 * (i / 4))) & 3) << 4) - 32;
}

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  const int g = span % 8;
  GLOBAL const uchar* block = row + (wide)(span / 8) * 110;  // hmask 32, qs 64, scales 12, d
  GLOBAL const uchar* qs = block + 32 + g / 4 * 32;
  const float d = half_at(block + 108);
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const float scale = d * (float)q3_scale(block + 96, 2 * g + i / 16);
    const int q = ((qs[i] >> (2 * (g % 4))) & 3) | ((block[i] >> g) & 1) << 2;
    w[i] = scale * (float)(q - 4);
  }
}

#elif defined(WEIGHT_q6_K)

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
  const int g = span % 8;
  const int t = g % 4;
  GLOBAL const uchar* block = row + (wide)(span / 8) * 210;  // ql 128, qh 64, scales 16, d
  GLOBAL const uchar* ql = block + g / 4 * 64 + t % 2 * 32;
  GLOBAL const uchar* qh = block + 128 + g / 4 * 32;
  GLOBAL const signed char* scales = (GLOBAL const signed char*)(block + 192);
  const float d = half_at(block + 208);
  UNROLL for (int i = 0; i < SPAN; ++i) {
    const float scale = d * (float)scales[2 * g + i / 16];
    const int q = ((ql[i] >> (4 * (t / 2))) & 15) | ((qh[i] >> (2 * t)) & 3) << 4;
    w[i] = scale * (float)(q - 32);
  }
}

#elif defined(WEIGHT_iq4_nl) || defined(WEIGHT_iq4_xs)

// Sixteen uneven levels; nibbles as in Q4_0.
TABLE signed char kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

FUNCTION void decode_span(GLOBAL const uchar* row, int span, int cols, float* w) {
#if defined(WEIGHT_iq4_nl)
  GLOBAL const uchar* block = row + (wide)span * 18;
  GLOBAL const uchar* qs = block + 2;
  const float d = half_at(block);
#else
  const int g = span % 8;
  GLOBAL const uchar* block = row + (wide)(span / 8) * 136;  // d, scales_h 2, scales_l 4, qs 128
  GLOBAL const uchar* qs = block + 8 + g * 16;
  const int low = (block[4 + g / 2] >> (4 * (g % 2))) & 15;
  const int high = ((block[2] | block[3] << 8) >> (2 * g)) & 3;
  const float d = half_at(block) * (float)((low | high << 4) - 32);
#endif
  UNROLL for (int i = 0; i < SPAN; ++i) {
    w[i] = d * (float)kLevels[i < 16 ? qs[i] & 15 : qs[i - 16] >> 4];
  }
}

#endif
