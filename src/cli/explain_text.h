// The texts of `limpid explain`, and how they become token ids.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace limpid::cli {

struct TextFlags {
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> ids;
  bool chat = false;
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

  // With --ids, which needs no tokenizer, the text is a list of ids.
  std::vector<TokenId> encode(std::string_view text) const;
  // The text of -p, -f or --ids. Throws ArgumentError for none, for several and for no tokens.
  std::vector<TokenId> prompt() const;
  // The one token that `text` is; `option` is named in errors. Throws ArgumentError.
  TokenId token(std::string_view text, std::string_view option) const;

 private:
  TextFlags flags_;
  std::string path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;  // with --chat
};

}  // namespace limpid::cli
