// Reads the components of a tokenizer.json around its model, as far as Limpid supports them.
//
// The components of Llama 3's file, for example: no normalizer; the pre-tokenizers Split (the
// regular expression) and ByteLevel (without an expression); the decoder ByteLevel; the
// post-processor TemplateProcessing with <|begin_of_text|> before the text.
#pragma once

#include <optional>
#include <string>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// The steps before the model, which the decoder undoes.
struct TokenizerPipeline {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  bool normalize_nfc = false;
  std::optional<PreTokenizer> pre_tokenizer;  // byte-level BPE: the scanner, or none for `splits`
  std::vector<SplitStep> splits;
  SpacePrefix space_prefix = SpacePrefix::kNone;  // SentencePiece
};

// Reads "normalizer", "pre_tokenizer" and "decoder" of the file. Throws FormatError, and
// UnsupportedError naming a component.
TokenizerPipeline read_tokenizer_pipeline(const JsonPlace& root);

// The tokens, by name, that "post_processor" puts before and after a text.
struct TextFrame {
  std::optional<std::string> before, behind;
  TokenId before_id = -1, behind_id = -1;
};
TextFrame read_post_processor(const JsonPlace& root);

}  // namespace limpid
