// Text <-> token ids, exactly as the model's reference does it.
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

// Which control tokens the text may contain as such. User-defined tokens (type 4) always match.
struct SpecialTokens {
  enum class Allow : uint8_t { kNone, kAll, kList };
  Allow allow = Allow::kNone;
  std::vector<TokenId> list;  // for kList
  // A name of any other control token in the text is an ArgumentError, as in tiktoken; otherwise it
  // is plain text.
  bool refuse_others = false;
};

struct EncodeOptions {
  bool add_special = true;  // put BOS/EOS where the spec says so
  bool at_start = true;     // false: the text goes on where another ended
  SpecialTokens special{};  // default: control tokens in the text are plain text
};

// Immutable after construction; safe to use from many threads.
class Tokenizer {
 public:
  // Throws ArgumentError for what contradicts itself: lengths that disagree, ids out of range,
  // impossible byte tokens, merges of unknown pieces, duplicate merges.
  static std::shared_ptr<const Tokenizer> create(TokenizerSpec spec);
  virtual ~Tokenizer();

  // Appends the ids of `text` to `out`. Any bytes are accepted: a byte that is not UTF-8 is a
  // character of its own that is neither letter, number nor space, and comes out as its byte. A
  // byte for which a byte-level vocabulary has no token (SmolLM2 lacks 21 of them) is left out, as
  // `tokenizers` and llama.cpp do. Time is n log n at worst for the bytes of the tokenizer's file
  // and the text together, and linear in the text for vocabularies that training made. Once warm,
  // and with room in `out`, nothing is allocated. Throws ArgumentError for texts of 2 GiB and more,
  // and as `options` say for control tokens; ResourceError for a text on which a split expression
  // without a scanner takes too many steps (regex_splitter.h).
  void encode(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& out) const;
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The ids of each text, on up to `n_threads` threads; 0: as many as cores this process may use.
  // A text is encoded by one thread. Throws as encode does, once all threads have stopped.
  std::vector<std::vector<TokenId>> encode_batch(std::span<const std::string_view> texts,
                                                 const EncodeOptions& options = {},
                                                 int n_threads = 0) const;

  // The bytes that the token stands for; a single token may be part of a UTF-8 sequence. Control
  // and unknown tokens give their name only when `show_special`, unused ones nothing. Valid as long
  // as the tokenizer. Throws ArgumentError for an id out of range.
  std::string_view bytes_of(TokenId id, bool show_special = false) const;
  // The bytes of all ids, exactly (not necessarily UTF-8; StreamDecoder gives text). If the
  // tokenizer puts a space before every text, the one at the beginning is taken away again.
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;

  const TokenizerSpec& spec() const { return spec_; }
  int64_t vocab_size() const { return static_cast<int64_t>(spec_.pieces.size()); }
  bool is_stop(TokenId id) const;
  bool is_control(TokenId id) const;  // or the unknown token: never text
  // By the file's spelling; the lowest id if several tokens are spelled alike.
  std::optional<TokenId> find(std::string_view piece) const;

 protected:
  // Which stretch of a text.
  struct Stretch {
    bool at_start = false;    // the text begins with it
    bool normalized = false;  // the normalizer has seen it already
  };

  explicit Tokenizer(TokenizerSpec spec);

  // The constructor of a derived class calls this for every id, in order: what bytes_of(id, true)
  // gives.
  void add_token_bytes(std::string_view bytes);
  // Those bytes for every type but kNormal: a byte token's byte, nothing for unused tokens, else
  // the name.
  std::string special_token_bytes(TokenId id) const;

  TokenizerSpec spec_;

 private:
  // A text, or a slice of it that is encoded by itself.
  void encode_slice(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
                    std::vector<TokenId>& out) const;
  // A stretch without plain special tokens; normalized ones may be in it.
  void encode_stretch(std::string_view text, bool at_start, const SpecialTokens& special,
                      EncodeScratch& scratch, std::vector<TokenId>& out) const;
  // Appends the ids of a stretch of text without special tokens, not empty.
  virtual void encode_text(std::string_view text, const Stretch& stretch, EncodeScratch& scratch,
                           std::vector<TokenId>& out) const = 0;
  // Throws ArgumentError for a control token in the text that is not allowed.
  void refuse_specials(std::string_view text, const SpecialTokens& special) const;
  void check_id(TokenId id) const;

  PieceTable ids_;  // by spelling; views into spec_.pieces
  std::string bytes_;
  std::vector<size_t> byte_ends_;         // of each token in bytes_
  SpecialMatcher specials_;               // in the text as it is
  SpecialMatcher normalized_specials_;    // in the normalized text
  std::unique_ptr<ScratchPool> scratch_;  // its own lock
};

// Joins the bytes of streamed tokens and gives back only whole UTF-8 sequences; bytes that no
// continuation can make valid come out as U+FFFD, one for each maximal ill-formed part, as Python's
// errors="replace" does.
class StreamDecoder {
 public:
  // `at_start`: the first token begins the text, so the space that a SentencePiece tokenizer put
  // before it goes.
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special = false,
                         bool at_start = true);
  // Text that became complete with this token; may be empty.
  std::string push(TokenId id);
  // What is left at the end: an incomplete sequence comes out as U+FFFD. The decoder can then begin
  // anew.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool show_special_;
  bool at_start_;
  bool strip_space_;  // the next byte, if it is a space
  std::string pending_;
};

}  // namespace limpid
