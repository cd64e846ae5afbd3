// Converts text to token ids and back, with exactly the results of the model's reference tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/piece_table.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

struct EncodeScratch;
class ScratchPool;

// Which control tokens are recognised in a text. User-defined tokens (type 4) always match.
struct SpecialTokens {
  enum class Allow : uint8_t { kNone, kAll, kList };
  Allow allow = Allow::kNone;
  std::vector<TokenId> list;  // for kList
  // If true, the name of any other control token in the text is an ArgumentError, as in tiktoken.
  // Otherwise it is plain text.
  bool refuse_others = false;
};

struct EncodeOptions {
  bool add_special = true;  // add BOS/EOS if the spec says so
  bool at_start = true;     // false: the text continues an earlier one
  SpecialTokens special{};  // default: control tokens in the text are plain text
};

// Base class of the tokenizers. Immutable after construction; can be used by many threads at once.
class Tokenizer {
 public:
  // Creates the tokenizer of a spec. Throws ArgumentError for a contradictory spec: lengths that
  // differ, ids out of range, impossible byte tokens, merges of unknown pieces, duplicate merges.
  static std::shared_ptr<const Tokenizer> create(TokenizerSpec spec);
  virtual ~Tokenizer();

  // Appends the ids of `text` to `out`.
  //
  // Any bytes are accepted. A byte that is not UTF-8 is a character of its own, neither letter,
  // number nor space, and is encoded as that byte. A byte for which a byte-level vocabulary has no
  // token (SmolLM2 lacks 21) is left out, as in `tokenizers` and llama.cpp. The time is linear in
  // the text for vocabularies that come from training, and at worst O(n log n) for the bytes of the
  // tokenizer's file and the text together. Once warm, and with capacity in `out`, nothing is
  // allocated, except by split expressions without a scanner.
  //
  // Throws ArgumentError for texts of 2 GiB or more and for control tokens that `options` refuse;
  // ResourceError for a text on which a split expression without a scanner takes too many steps
  // (regex_splitter.h).
  void encode(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& out) const;
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Returns the ids of each text, using up to `n_threads` threads (0: the number of cores available
  // to the process). A text is encoded by one thread. Throws the errors of encode, after all
  // threads have stopped.
  std::vector<std::vector<TokenId>> encode_batch(std::span<const std::string_view> texts,
                                                 const EncodeOptions& options = {},
                                                 int n_threads = 0) const;

  // Returns the bytes of the token. A single token may be part of a UTF-8 sequence. Control and
  // unknown tokens return their name if `show_special`, otherwise nothing; unused tokens return
  // nothing. The view is valid as long as the tokenizer. Throws ArgumentError for an id out of
  // range.
  std::string_view bytes_of(TokenId id, bool show_special = false) const;
  // Returns the exact bytes of all ids, which are not necessarily UTF-8 (StreamDecoder gives text).
  // If the tokenizer puts a space before every text, the first space is removed.
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;

  const TokenizerSpec& spec() const { return spec_; }
  // Finds all control and user-defined tokens by name, also those that encode() only finds in
  // normalized text.
  const SpecialMatcher& special_tokens() const { return all_specials_; }
  int64_t vocab_size() const { return static_cast<int64_t>(spec_.pieces.size()); }
  bool is_stop(TokenId id) const;
  bool is_control(TokenId id) const;  // or the unknown token; never text
  // Finds a token by its spelling in the file. Returns the lowest id if several tokens have this
  // spelling.
  std::optional<TokenId> find(std::string_view piece) const;

 protected:
  // Describes a stretch of a text.
  struct Stretch {
    bool at_start = false;    // it is the start of the text
    bool normalized = false;  // it is already normalized
  };

  explicit Tokenizer(TokenizerSpec spec);

  // The constructor of a derived class calls this to set what bytes_of(id, true) returns: for a
  // kNormal token what `bytes_of_piece` returns for its piece, the byte of a byte token, nothing
  // for an unused token, otherwise the name: the normalized one for a user-defined token that
  // SentencePiece searches in the normalized text.
  void set_token_bytes(std::string (*bytes_of_piece)(const std::string& piece));

  TokenizerSpec spec_;

 private:
  // Encodes a text, or a slice of it that is encoded separately.
  void encode_slice(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
                    std::vector<TokenId>& out) const;
  // Encodes a stretch without plain special tokens. It may contain normalized ones.
  void encode_stretch(std::string_view text, bool at_start, const SpecialTokens& special,
                      EncodeScratch& scratch, std::vector<TokenId>& out) const;
  // Appends the ids of a non-empty stretch of text without special tokens.
  virtual void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                           std::vector<TokenId>& out) const = 0;
  // Throws ArgumentError for a control token in the text that is not allowed.
  void refuse_specials(std::string_view text, const SpecialTokens& special) const;
  void check_id(TokenId id) const;

  PieceTable ids_;  // by spelling; views into spec_.pieces
  std::string bytes_;
  std::vector<size_t> byte_ends_;       // of each token in bytes_
  SpecialMatcher specials_;             // in the text as it is
  SpecialMatcher normalized_specials_;  // in the normalized text
  SpecialMatcher all_specials_;
  std::unique_ptr<ScratchPool> scratch_;  // its own lock
};

// Joins the bytes of streamed tokens and returns only complete UTF-8 sequences. Bytes that cannot
// become valid are returned as U+FFFD, one for each maximal ill-formed part, like Python's
// errors="replace".
class StreamDecoder {
 public:
  // `at_start`: the first token begins the text, so the space that a SentencePiece tokenizer added
  // is removed.
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special = false,
                         bool at_start = true);
  // Returns the text that this token completes; may be empty.
  std::string push(TokenId id);
  // Ends the text: an incomplete sequence is returned as U+FFFD. Afterwards the decoder can be used
  // for a new text.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool show_special_;
  bool at_start_;
  bool strip_space_;  // the next byte, if it is a space
  std::string pending_;
};

}  // namespace limpid
