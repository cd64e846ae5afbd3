// The parts of `limpid explain`: its texts, the changes inside the model that its options ask for,
// and what it prints at a terminal, where no page is asked for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cli/flags.h"
#include "insight/contrast.h"
#include "insight/explain_page.h"
#include "insight/explanation.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace limpid::cli {

struct TextFlags {
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> ids;
  bool chat = false;
  std::optional<std::string> system;  // with --chat; "" for none
  bool special = false;
};

void declare_text(CLI::App& app, TextFlags& values);

// All texts of a command become ids in the same way: the prompt and those that change the model.
class TextEncoder {
 public:
  // Throws UnsupportedError where an option needs a tokenizer or a template that the checkpoint
  // does not have.
  TextEncoder(TextFlags flags, const Checkpoint& checkpoint);

  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null: there is none

  // With --ids, which needs no tokenizer, the text is a list of ids; `option` is named in errors.
  std::vector<TokenId> encode(std::string_view text, std::string_view option) const;
  // The text of -p, -f or --ids. Throws ArgumentError for none, for several and for no tokens.
  std::vector<TokenId> prompt() const;
  // The one token that `text` is; `option` is named in errors. Throws ArgumentError.
  TokenId token(std::string_view text, std::string_view option) const;

 private:
  // The prompt that `limpid chat` would make of the message.
  std::vector<TokenId> encode_message(std::string_view text, std::string_view system) const;

  TextFlags flags_;
  std::string path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;  // with --chat
};

struct WhatIfFlags {
  std::optional<std::string> ablate;  // parts: "L3.H5,L3.mlp"
  std::optional<std::string> patch;   // a text
  std::optional<std::string> steer;   // a text
  std::optional<std::string> minus;   // a text
  std::optional<std::string> parts;   // of patch and steer
  std::string positions;              // of patch
  float strength = 1;                 // of steer

  bool is_wanted() const { return ablate || patch || steer; }
};

void declare_what_if(CLI::App& app, WhatIfFlags& values);

// Whether the options go together and name parts of such a model. Throws ArgumentError.
void check_what_if(const WhatIfFlags& values, const DecoderSpec& spec);

// The changes that the options, which were checked, ask for; none without options. Patching and
// steering run the model over their own texts. Throws ArgumentError.
std::vector<Edit> edits_of(const WhatIfFlags& values, Model& model, ProbeExecutor& probe,
                           std::span<const TokenId> ids, const TextEncoder& encoder);

// "without L3.H5", "with L6 from another text": what the edits do, in words.
std::string describe_edits(const WhatIfFlags& values);

// The tokens with their surprise and what was expected instead, the heads with clear habits, the
// largest parts of the last logit, and what the second runs changed. `tokenizer` may be null.
std::string explain_report(const Explanation& explanation, std::span<const ShownContrast> contrasts,
                           const Tokenizer* tokenizer);

}  // namespace limpid::cli
