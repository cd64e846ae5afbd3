#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/explain.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal_text.h"
#include "generate/chat_prompt.h"
#include "limpid/chat.hpp"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {

void declare_text(CLI::App& app, TextFlags& values) {
  add_option(app, "-p,--prompt TEXT", values.prompt, "the text");
  add_option(app, "-f,--file FILE", values.file, "a file with the text; - is standard input");
  add_option(app, "--ids LIST", values.ids, "token ids between commas");
  CLI::Option* chat =
      add_switch(app, "--chat", values.chat,
                 "the text is a user's message: put it into the model's chat template, as limpid "
                 "chat does, up to where the answer begins");
  needs(add_option(app, "-sys,--system-prompt TEXT", values.system,
                   "with --chat: the system message (You are a helpful assistant.); '' leaves it "
                   "to the template"),
        chat);
  add_switch(app, "--special", values.special, "parse control tokens in the text");
}

TextEncoder::TextEncoder(TextFlags flags, const Checkpoint& checkpoint)
    : flags_(std::move(flags)), path_(checkpoint.path) {
  if (has_tokenizer(checkpoint)) tokenizer_ = tokenizer_from(checkpoint);
  LIMPID_CHECK(ArgumentError, !flags_.ids || !(flags_.chat || flags_.special),
               "--ids are tokens already: --chat and --special are for -p and -f");
  LIMPID_CHECK(ArgumentError, !(flags_.chat && flags_.special), "give one of --chat and --special");
  if (!flags_.chat) return;
  const auto source = checkpoint.metadata.string("tokenizer.chat_template");
  LIMPID_CHECK(UnsupportedError, source.has_value(),
               "{} has no chat template: leave --chat out, or write the prompt with its control "
               "tokens and --special",
               path_);
  template_.emplace(std::string(*source));
}

std::vector<TokenId> TextEncoder::encode_message(std::string_view text,
                                                 std::string_view system) const {
  TemplateInputs inputs;
  inputs.messages = Json::array();
  if (!system.empty()) inputs.messages.push_back({{"role", "system"}, {"content", system}});
  inputs.messages.push_back({{"role", "user"}, {"content", text}});
  return encode_chat(*tokenizer_, *template_, std::move(inputs));
}

std::vector<TokenId> TextEncoder::encode(std::string_view text, std::string_view option) const {
  if (flags_.ids) {
    return parse_token_ids(
        text, option == "--ids" ? "--ids" : fmt::format("{} (beside --ids, it has ids)", option));
  }
  LIMPID_CHECK(UnsupportedError, tokenizer_ != nullptr,
               "{} has no tokenizer: give token ids, --ids", path_);
  if (template_ && flags_.system) return encode_message(text, *flags_.system);
  if (template_) {
    try {
      return encode_message(text, kDefaultSystemPrompt);
    } catch (const TemplateRefusal&) {  // a chat then has no system message
      return encode_message(text, "");
    }
  }
  EncodeOptions options;
  if (flags_.special) options.special.allow = SpecialTokens::Allow::kAll;
  return tokenizer_->encode(text, options);
}

std::vector<TokenId> TextEncoder::prompt() const {
  const int n_sources =
      int{flags_.prompt.has_value()} + int{flags_.file.has_value()} + int{flags_.ids.has_value()};
  LIMPID_CHECK(ArgumentError, n_sources == 1, "which text? give one of -p, -f and --ids");
  std::vector<TokenId> ids = encode(flags_.ids      ? *flags_.ids
                                    : flags_.prompt ? *flags_.prompt
                                                    : read_text(*flags_.file),
                                    "--ids");
  LIMPID_CHECK(ArgumentError, !ids.empty(), "the text has no tokens: nothing to explain");
  return ids;
}

// A text at the beginning of which a tokenizer puts a blank may be a token and yet become two.
TokenId TextEncoder::token(std::string_view text, std::string_view option) const {
  if (tokenizer_ == nullptr || flags_.ids) {
    const std::vector<TokenId> ids = parse_token_ids(text, option);
    LIMPID_CHECK(ArgumentError, ids.size() == 1, "{} {}: give one token id", option, text);
    return ids.front();
  }
  EncodeOptions options;
  options.add_special = options.at_start = false;
  options.special.allow = SpecialTokens::Allow::kAll;
  const std::vector<TokenId> ids = tokenizer_->encode(text, options);
  if (ids.size() == 1) return ids.front();
  for (TokenId id = 0; id < tokenizer_->vocab_size(); ++id) {
    if (tokenizer_->bytes_of(id, true) == text) return id;
  }
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const TokenId id : ids) pieces.push_back(in_quotes(tokenizer_->bytes_of(id, true)));
  throw ArgumentError(fmt::format("{} {} is {} tokens ({}): give a text of one token", option,
                                  in_quotes(text), ids.size(), fmt::join(pieces, ", ")));
}

}  // namespace limpid::cli
