// What must hold for any bytes that are given out as a tokenizer's file: an Error of ours, or a
// tokenizer whose ids are its own and whose text comes back. Shared by the fuzz target and the test
// that replays its corpus.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "limpid/error.hpp"
#include "tokenizer/sentence_piece_model.h"
#include "tokenizer/tiktoken_file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"

namespace limpid {

enum class TokenizerVerdict { kAccepted, kRefused, kBroken };

// The first byte selects the reader; a NUL byte may be followed by a tokenizer_config.json.
inline TokenizerSpec read_untrusted_tokenizer(std::string_view input) {
  const char kind = input.front();
  input.remove_prefix(1);
  std::string_view config;
  // Binary models may hold NUL bytes themselves.
  if (const size_t end = input.find('\0'); kind != 's' && end != std::string_view::npos) {
    config = input.substr(end + 1);
    input = input.substr(0, end);
  }
  TokenizerSpec spec;
  FrameRule frame = FrameRule::kOfConfig;
  switch (kind) {
    case 'r':
      spec = read_tiktoken("input", input, "llama3");
      break;
    case 's':
      spec = read_sentence_piece_model("input", input);
      break;
    case 'm':
      spec = read_merges_alone("input", input);
      break;
    default:
      spec = read_tokenizer_json("input", input);
      frame = FrameRule::kOfFile;
  }
  if (!config.empty()) apply_tokenizer_config(read_tokenizer_config("input", config), frame, spec);
  return spec;
}

inline TokenizerVerdict check_untrusted_tokenizer(std::string_view input) {
  static constexpr std::string_view kText =
      "Hello  world, it's 1234 o'clock!\n\n<s> </s><|im_start|>user\te\xCC\x81 \xE4\xB8\x80 "
      "\xF0\x9F\x98\x80\xFF\xC3 \xE2\x96\x81 "
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  if (input.empty()) return TokenizerVerdict::kRefused;
  try {
    const bool all_bytes = input.front() == 'r';
    const auto tokenizer = Tokenizer::create(read_untrusted_tokenizer(input));
    EncodeOptions plain{.add_special = false};
    EncodeOptions special;
    special.special.allow = SpecialTokens::Allow::kAll;
    for (const EncodeOptions& options : {plain, special}) {
      const auto ids = tokenizer->encode(kText, options);
      const auto again = tokenizer->encode(kText, options);
      if (ids != again) return TokenizerVerdict::kBroken;
      for (const TokenId id : ids) {
        if (id < 0 || id >= tokenizer->vocab_size()) return TokenizerVerdict::kBroken;
      }
      const std::string text = tokenizer->decode(ids, true);
      const bool is_plain = !options.add_special && tokenizer->spec().added_rules.empty();
      if (all_bytes && is_plain && text != kText) return TokenizerVerdict::kBroken;
    }
    return TokenizerVerdict::kAccepted;
  } catch (const Error&) {
    return TokenizerVerdict::kRefused;
  }
}

}  // namespace limpid
