#include "tokenizer/tiktoken_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/base64.h"
#include "base/check.h"
#include "base/parse_number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "tokenizer/byte_alphabet.h"

namespace limpid {
namespace {

// An encoding of OpenAI: what a rank file does not contain.
struct Encoding {
  std::string_view name;
  std::string_view sha256;  // of OpenAI's file
  PreTokenizer pre_tokenizer;
  std::initializer_list<std::pair<std::string_view, TokenId>> specials;
};

constexpr std::string_view kEndOfText = "<|endoftext|>";

const Encoding kEncodings[] = {
    {"r50k_base",
     "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
     PreTokenizer::kGpt2,
     {{kEndOfText, 50'256}}},
    {"p50k_base",
     "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
     PreTokenizer::kGpt2,
     {{kEndOfText, 50'256}}},
    {"cl100k_base",
     "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
     PreTokenizer::kCl100k,
     {{kEndOfText, 100'257},
      {"<|fim_prefix|>", 100'258},
      {"<|fim_middle|>", 100'259},
      {"<|fim_suffix|>", 100'260},
      {"<|endofprompt|>", 100'276}}},
    {"o200k_base",
     "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
     PreTokenizer::kGpt4o,
     {{kEndOfText, 199'999}, {"<|endofprompt|>", 200'018}}},
};

constexpr size_t kLlama3Ranks = 128'000;
constexpr size_t kLlama3Specials = 256;

struct RankFile {
  std::string_view path;
  std::vector<std::string> tokens;  // by rank; empty for an unused rank
};

// Decodes RFC 4648 with padding. Returns false for anything else.
bool decode_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t value = i + padding >= text.size() ? 0 : kBase64Digits.find(text[i]);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(bits >> shift & 0xFF));
    bits = 0;
  }
  for (size_t i = 0; i < padding; ++i) {
    if (out.back() != '\0') return false;  // leftover bits must be 0
    out.pop_back();
  }
  return true;
}

// Parses one line. Returns nothing if it is not "base64 rank".
std::optional<size_t> parse_line(std::string_view line, std::string& token) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || !decode_base64(line.substr(0, space), token))
    return std::nullopt;
  return parse_number<size_t>(line.substr(space + 1));
}

// Reads all lines and checks that ranks and tokens are unique and that every byte is a token, so
// that every text can be encoded.
RankFile parse_ranks(const std::string& path, std::string_view bytes) {
  RankFile file{path, {}};
  std::string token;
  // A line has at least six bytes, which bounds the number of ranks. A few ranks may be missing.
  const size_t most = bytes.size() / 6 + 1024;
  const std::string_view whole = bytes;
  while (!bytes.empty()) {
    const auto offset = static_cast<uint64_t>(bytes.data() - whole.data());
    const std::string_view line = take_line(bytes);
    if (line.empty()) continue;
    const auto rank = parse_line(line, token);
    if (!rank) throw FormatError(path, offset, "line", "is not \"base64 rank\"");
    if (*rank >= most) {
      throw FormatError(
          path, offset, "rank",
          fmt::format("is {}, too large for a file of {} bytes", *rank, whole.size()));
    }
    if (*rank >= file.tokens.size()) file.tokens.resize(*rank + 1);
    if (!file.tokens[*rank].empty())
      throw FormatError(path, offset, "rank", fmt::format("{} is a duplicate", *rank));
    file.tokens[*rank] = token;
  }
  std::unordered_set<std::string_view> seen;
  std::array<bool, 256> has_byte{};
  for (const std::string& t : file.tokens) {
    if (t.empty()) continue;
    if (!seen.insert(t).second) throw_format_error(path, "token", "is a duplicate");
    if (t.size() == 1) has_byte[static_cast<uint8_t>(t[0])] = true;
  }
  const auto missing = std::ranges::find(has_byte, false);
  if (missing != has_byte.end()) {
    throw_format_error(path, "tokens", "byte 0x{:02X} has no rank", missing - has_byte.begin());
  }
  return file;
}

// Meta's names for the 256 tokens after the ranks.
std::vector<std::string> llama3_specials(bool first_version) {
  std::vector<std::string> names = {"<|begin_of_text|>", "<|end_of_text|>"};
  size_t next = 0;
  const auto reserve_until = [&](size_t count) {
    while (names.size() < count)
      names.push_back(fmt::format("<|reserved_special_token_{}|>", next++));
  };
  if (first_version) {
    reserve_until(6);
    names.insert(names.end(), {"<|start_header_id|>", "<|end_header_id|>"});
    reserve_until(9);
    names.emplace_back("<|eot_id|>");
  } else {
    reserve_until(4);
    names.insert(names.end(),
                 {"<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>",
                  "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"});
  }
  reserve_until(kLlama3Specials);
  return names;
}

// Adds a control token with the given id; unused ids before it are filled with unused tokens.
void add_special(const RankFile& file, TokenizerSpec& spec, std::string_view name, TokenId id) {
  const auto index = static_cast<size_t>(id);
  if (index >= spec.pieces.size()) {
    spec.pieces.resize(index + 1);
    spec.types.resize(index + 1, TokenType::kUnused);
  }
  if (spec.types[index] != TokenType::kUnused) {
    throw_format_error(file.path, "rank", "{} is the id of {}", id, name);
  }
  spec.pieces[index] = name;
  spec.types[index] = TokenType::kControl;
}

// Llama 3: the special tokens follow the ranks, and long texts are encoded in slices
// (meta_slices.h).
void set_llama3(const RankFile& file, bool first_version, TokenizerSpec& spec) {
  spec.pre_tokenizer = PreTokenizer::kLlama3;
  spec.meta_slices = true;
  auto id = static_cast<TokenId>(spec.pieces.size());
  for (const std::string& name : llama3_specials(first_version)) {
    if (name == "<|begin_of_text|>") spec.bos = id;
    if (name == "<|end_of_text|>") spec.eos = id;
    if (name == "<|eot_id|>") spec.eot = id;
    if (name == "<|eom_id|>") spec.eom = id;
    if (name == "<|finetune_right_pad_id|>") spec.pad = id;
    add_special(file, spec, name, id++);
  }
  spec.add_bos = true;
}

void set_openai(const RankFile& file, const Encoding& encoding, TokenizerSpec& spec) {
  spec.pre_tokenizer = encoding.pre_tokenizer;
  for (const auto& [name, id] : encoding.specials) {
    add_special(file, spec, name, id);
    if (name == kEndOfText) spec.eos = id;
  }
}

// The encodings that read_tiktoken knows, for messages.
std::string encoding_names() {
  std::vector<std::string_view> names;
  for (const Encoding& encoding : kEncodings) names.push_back(encoding.name);
  names.insert(names.end(), {"gpt2", "llama3", "llama3.1"});
  return fmt::format("{}", fmt::join(names, ", "));
}

// Determines the encoding of a file for which none was given.
std::string_view recognise(const RankFile& file, std::string_view bytes) {
  const auto n_unused = static_cast<size_t>(std::ranges::count(file.tokens, std::string()));
  if (n_unused == 0 && file.tokens.size() == kLlama3Ranks) return "llama3.1";
  const std::string hex = sha256_of(bytes);
  for (const Encoding& encoding : kEncodings) {
    if (encoding.sha256 == hex) return encoding.name;
  }
  throw UnsupportedError(
      fmt::format("{}: the encoding of these {} ranks is unknown; name it: one of {}", file.path,
                  file.tokens.size() - n_unused, encoding_names()));
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  std::string token;
  std::string_view rest = bytes.substr(0, 4096);
  return parse_line(take_line(rest), token).has_value();
}

TokenizerSpec read_tiktoken(const std::string& path, std::string_view bytes,
                            std::string_view encoding) {
  const RankFile file = parse_ranks(path, bytes);
  if (encoding.empty()) encoding = recognise(file, bytes);
  if (encoding == "gpt2") encoding = "r50k_base";
  TokenizerSpec spec;
  spec.merge_order = MergeOrder::kRanks;
  spec.ignore_merges = true;
  for (const std::string& token : file.tokens) {
    spec.pieces.push_back(byte_alphabet::spelling_of(token));
    spec.types.push_back(token.empty() ? TokenType::kUnused : TokenType::kNormal);
  }
  const auto* known = std::ranges::find(kEncodings, encoding, &Encoding::name);
  if (known != std::end(kEncodings)) {
    set_openai(file, *known, spec);
  } else if (encoding == "llama3" || encoding == "llama3.1") {
    set_llama3(file, encoding == "llama3", spec);
  } else {
    throw UnsupportedError(
        fmt::format("unknown encoding '{}'; known are {}", encoding, encoding_names()));
  }
  return spec;
}

}  // namespace limpid
