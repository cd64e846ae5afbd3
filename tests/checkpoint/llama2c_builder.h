// Builds tiny llama2.c files for tests and fuzzing.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "checkpoint/gguf_builder.h"

namespace limpid::llama2c_test {

using gguf_test::put;

struct Sizes {
  int32_t dim = 8;
  int32_t hidden_dim = 12;
  int32_t n_layers = 2;
  int32_t n_heads = 4;
  int32_t n_kv_heads = 2;
  int32_t vocab_size = 10;
  int32_t seq_len = 6;

  int64_t head_dim() const { return dim / n_heads; }
  int64_t d_kv() const { return n_kv_heads * head_dim(); }
};

inline std::string header(const Sizes& sizes) {
  std::string out;
  for (const int32_t value : {sizes.dim, sizes.hidden_dim, sizes.n_layers, sizes.n_heads,
                              sizes.n_kv_heads, sizes.vocab_size, sizes.seq_len}) {
    put(out, value);
  }
  return out;
}

// `n` weights that tell which tensor they belong to: tag + i / 65536.
inline void put_weights(std::string& out, int64_t n, int tag) {
  for (int64_t i = 0; i < n; ++i) {
    put(out, static_cast<float>(tag) + static_cast<float>(i) / 65536.0f);
  }
}

// Tags: 0 embedding, 1 attention norm, 2-5 q k v o, 6 feed-forward norm, 7-9 w1 w2 w3, 10 last
// norm, 11 output; layer l of a kind has 100 * l more.
inline void put_kind(std::string& out, const Sizes& sizes, int64_t n, int tag) {
  for (int layer = 0; layer < sizes.n_layers; ++layer) put_weights(out, n, tag + 100 * layer);
}

inline void put_matrices(std::string& out, const Sizes& s, bool with_ffn_norm) {
  const int64_t d = s.dim;
  put_kind(out, s, d * d, 2);
  put_kind(out, s, s.d_kv() * d, 3);
  put_kind(out, s, s.d_kv() * d, 4);
  put_kind(out, s, d * d, 5);
  if (with_ffn_norm) put_kind(out, s, d, 6);
  for (const int tag : {7, 8, 9}) put_kind(out, s, d * s.hidden_dim, tag);
}

inline std::string legacy_file(const Sizes& sizes, bool tied) {
  Sizes written = sizes;
  if (!tied) written.vocab_size = -sizes.vocab_size;
  std::string out = header(written);
  put_weights(out, int64_t{sizes.vocab_size} * sizes.dim, 0);
  put_kind(out, sizes, sizes.dim, 1);
  put_matrices(out, sizes, true);
  put_weights(out, sizes.dim, 10);
  put_weights(out, sizes.seq_len * sizes.head_dim(), -1);  // both tables of angles
  if (!tied) put_weights(out, int64_t{sizes.vocab_size} * sizes.dim, 11);
  return out;
}

inline std::string v1_file(const Sizes& sizes, bool tied) {
  std::string out = "24ka";
  put(out, int32_t{1});
  out += header(sizes);
  out += tied ? '\x01' : '\x00';
  out.resize(256);
  put_kind(out, sizes, sizes.dim, 1);
  put_kind(out, sizes, sizes.dim, 6);
  put_weights(out, sizes.dim, 10);
  put_weights(out, int64_t{sizes.vocab_size} * sizes.dim, 0);
  put_matrices(out, sizes, false);
  if (!tied) put_weights(out, int64_t{sizes.vocab_size} * sizes.dim, 11);
  return out;
}

inline void put_token(std::string& out, float score, const std::string& piece) {
  put(out, score);
  put(out, static_cast<int32_t>(piece.size()));
  out += piece;
}

// 259 tokens that every vocabulary has, and three more.
inline constexpr int kTokens = 262;
inline std::string tokenizer_file() {
  std::string out;
  put(out, int32_t{7});
  put_token(out, 0, "<unk>");
  put_token(out, 0, "\n<s>\n");
  put_token(out, 0, "\n</s>\n");
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 8> piece{};
    std::snprintf(piece.data(), piece.size(), "<0x%02X>", static_cast<unsigned>(byte));
    put_token(out, 0, piece.data());
  }
  put_token(out, -1, " t");
  put_token(out, -2, " a b ");
  put_token(out, -3, "e");
  return out;
}

}  // namespace limpid::llama2c_test
