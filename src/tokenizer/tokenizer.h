// Text <-> token ids, exactly as the model's reference does it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Which control tokens the text may contain as such. User-defined tokens (type 4) always match.
struct SpecialTokens {
  enum class Allow : uint8_t { kNone, kAll, kList };
  Allow allow = Allow::kNone;
  std::vector<TokenId> list;  // for kList
};

struct EncodeOptions {
  bool add_special = true;  // put BOS/EOS where the spec says so
  SpecialTokens special;    // default: control tokens in the text are plain text
};

// Immutable after construction; safe to use from many threads.
class Tokenizer {
 public:
  // Throws FormatError-like UnsupportedError/ArgumentError: an unknown `pre`, lengths that
  // disagree, ids out of range, impossible byte tokens, merges of unknown pieces.
  static std::shared_ptr<const Tokenizer> create(TokenizerSpec spec);
  virtual ~Tokenizer() = default;

  // Any bytes are accepted; what is not UTF-8 is encoded as the reference would, never dropped
  // silently.
  virtual void encode(std::string_view text, const EncodeOptions& options,
                      std::vector<TokenId>& out) const = 0;
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The bytes that the token stands for; a single token may be part of a UTF-8 sequence. Control
  // tokens give their name only when `show_special`. Throws ArgumentError for an id out of range.
  virtual std::string_view bytes_of(TokenId id, bool show_special = false) const = 0;
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;

  const TokenizerSpec& spec() const { return spec_; }
  int64_t vocab_size() const { return static_cast<int64_t>(spec_.pieces.size()); }
  bool is_stop(TokenId id) const;
  bool is_control(TokenId id) const;
  std::optional<TokenId> find(std::string_view piece) const;  // by the file's spelling

 protected:
  explicit Tokenizer(TokenizerSpec spec);
  TokenizerSpec spec_;
};

// Joins the bytes of streamed tokens and gives back only whole UTF-8 sequences.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special = false);
  // Text that became complete with this token; may be empty.
  std::string push(TokenId id);
  // What is left at the end; incomplete sequences come out as U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool show_special_;
  bool first_ = true;
  std::string pending_;
};

}  // namespace limpid
