// pack: blocks of a file, as tensor/blocks.h describes them, into the planes of octets.cl.h. An
// item makes one octet; the first of those that share a scale writes it. Programs of plain types do
// not have this kernel. The host defines BLOCK_BYTES, the bytes of a block, and OCTETS_OF_BLOCK.
//
//   blocks   of n octets, of which the first is octet `first` of the matrix
//   weight   the planes, of n_all octets

#define SPAN 4  // octets of 32 columns

FUNCTION void put_byte(GLOBAL uchar* plane, wide i, uint x) { plane[i] = (uchar)x; }
FUNCTION void put_short(GLOBAL uchar* plane, wide i, uint x) {
  ((GLOBAL half_bits*)plane)[i] = (half_bits)x;
}
FUNCTION void put_word(GLOBAL uchar* plane, wide i, uint x) { ((GLOBAL uint*)plane)[i] = x; }
FUNCTION uint short_at(GLOBAL const uchar* p) { return (uint)p[0] | (uint)p[1] << 8; }
FUNCTION uint pair_at(GLOBAL const uchar* p) { return short_at(p) | short_at(p + 2) << 16; }

// Takes `width` bits, from bit `shift` on, of each of 8 bytes, and joins them.
FUNCTION uint gather(GLOBAL const uchar* bytes, int shift, int width) {
  uint word = 0;
  for (int i = 0; i < OCTET; ++i)
    word |= (((uint)bytes[i] >> shift) & ((1u << width) - 1u)) << (width * i);
  return word;
}

#if defined(WEIGHT_q4_K) || defined(WEIGHT_q5_K)
// The 6-bit scale, and the minimum above it, of span g of 8.
FUNCTION uint group_scale(GLOBAL const uchar* packed, int g) {
  const uint scale = g < 4 ? packed[g] & 63 : (packed[4 + g] & 15) | (packed[g - 4] >> 6) << 4;
  const uint minimum = g < 4 ? packed[4 + g] & 63 : packed[4 + g] >> 4 | (packed[g] >> 6) << 4;
  return scale | minimum << 8;
}
#elif defined(WEIGHT_q3_K)
// Scale i of 16: four bits of bytes 0 to 7, two of bytes 8 to 11, less 32.
FUNCTION uint q3_scale(GLOBAL const uchar* packed, int i) {
  const int low = (i < 8 ? packed[i] : packed[i - 8] >> 4) & 15;
  return (uint)((low | ((packed[8 + i % 4] >> (2 * (i / 4))) & 3) << 4) - 32);
}
#elif defined(WEIGHT_iq4_xs)
FUNCTION uint iq4_scale(GLOBAL const uchar* block, int g) {
  const int low = (block[4 + g / 2] >> (4 * (g % 2))) & 15;
  const int high = ((int)short_at(block + 2) >> (2 * g)) & 3;
  return (uint)((low | high << 4) - 32);
}
#endif

#if defined(WEIGHT_q8_0)
FUNCTION void pack_octet(GLOBAL const uchar* block, int k, GLOBAL uchar* to, wide n, wide o) {
  for (int i = 0; i < OCTET; ++i)
    put_byte(to, OCTET * o + i, (uint)block[2 + OCTET * k + i] ^ 128u);
  if (k == 0) put_short(to + D_AT(n), o / D_OCTETS, short_at(block));
}
#elif OCTETS_OF_BLOCK == SPAN
// Blocks of 32 columns, the first 16 in low nibbles: d, of some types m, fifth bits, then nibbles.
FUNCTION void pack_octet(GLOBAL const uchar* block, int k, GLOBAL uchar* to, wide n, wide o) {
  put_word(to, o, gather(block + BLOCK_BYTES - 16 + k % 2 * OCTET, k / 2 * 4, 4));
  if (HIGH_BYTES > 0) put_byte(to + HIGH_AT(n), o, block[D_BYTES + k]);
  if (k == 0 && D_BYTES == 4) put_word(to + D_AT(n), o / D_OCTETS, pair_at(block));
  if (k == 0 && D_BYTES == 2) put_short(to + D_AT(n), o / D_OCTETS, short_at(block));
}
#else
// Blocks of 256 columns: octet k is octet c of span g.
FUNCTION void pack_octet(GLOBAL const uchar* block, int k, GLOBAL uchar* to, wide n, wide o) {
  const int g = k / SPAN;
  const int c = k % SPAN * OCTET;
#if defined(WEIGHT_q4_K) || defined(WEIGHT_q5_K)
  put_word(to, o, gather(block + BLOCK_BYTES - 128 + g / 2 * 32 + c, g % 2 * 4, 4));
  if (HIGH_BYTES > 0) put_byte(to + HIGH_AT(n), o, gather(block + 16 + c, g, 1));
  if (c == 0) put_short(to + SCALE_AT(n), o / SCALE_OCTETS, group_scale(block + 4, g));
  if (k == 0) put_word(to + D_AT(n), o / D_OCTETS, pair_at(block));
#elif defined(WEIGHT_q2_K)
  put_short(to, o, gather(block + 16 + g / 4 * 32 + c, g % 4 * 2, 2));
  if (k % 2 == 0) put_byte(to + SCALE_AT(n), o / SCALE_OCTETS, block[k / 2]);
  if (k == 0) put_word(to + D_AT(n), o / D_OCTETS, pair_at(block + 80));
#elif defined(WEIGHT_q3_K)
  put_short(to, o, gather(block + 32 + g / 4 * 32 + c, g % 4 * 2, 2));
  put_byte(to + HIGH_AT(n), o, gather(block + c, g, 1));
  if (k % 2 == 0) put_byte(to + SCALE_AT(n), o / SCALE_OCTETS, q3_scale(block + 96, k / 2));
  if (k == 0) put_short(to + D_AT(n), o / D_OCTETS, short_at(block + 108));
#elif defined(WEIGHT_q6_K)
  put_word(to, o, gather(block + g / 4 * 64 + g % 2 * 32 + c, g % 4 / 2 * 4, 4));
  put_short(to + HIGH_AT(n), o, gather(block + 128 + g / 4 * 32 + c, g % 4 * 2, 2));
  if (k % 2 == 0) put_byte(to + SCALE_AT(n), o / SCALE_OCTETS, block[192 + k / 2]);
  if (k == 0) put_short(to + D_AT(n), o / D_OCTETS, short_at(block + 208));
#else  // iq4_xs
  put_word(to, o, gather(block + 8 + g * 16 + c % 16, c / 16 * 4, 4));
  if (c == 0) put_byte(to + SCALE_AT(n), o / SCALE_OCTETS, iq4_scale(block, g));
  if (k == 0) put_short(to + D_AT(n), o / D_OCTETS, short_at(block));
#endif
}
#endif

KERNEL(128)
pack(GLOBAL const uchar* blocks, GLOBAL uchar* weight, wide first, wide n, wide n_all) {
  AWAIT();
  const wide item = ITEM();
  if (item >= n) return;
  pack_octet(blocks + item / OCTETS_OF_BLOCK * BLOCK_BYTES, (int)(item % OCTETS_OF_BLOCK), weight,
             n_all, first + item);
}
