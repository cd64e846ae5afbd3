// A conversation with a model, in the model's own chat format.
//
//   limpid::ChatOptions options;
//   options.system = "You answer in rhymes.";
//   limpid::Chat chat(model, options);
//   for (std::string_view piece : chat.ask("Why is the sky blue?")) std::cout << piece;
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "limpid/generation.hpp"
#include "limpid/model.hpp"
#include "limpid/session.hpp"
#include "limpid/text_stream.hpp"

namespace limpid {

struct Message {
  std::string role;  // "system", "user", "assistant", or what else the template knows
  std::string content;
};

struct ChatOptions {
  std::string system{};  // empty: none (a template may have a default of its own)
  GenerationOptions generation{};
  SessionOptions session{};
};

// Control tokens come from the template alone: a user who types `<|im_end|>` sends these ten
// characters. The KV cache of the part of the conversation that did not change is reused from turn
// to turn. While an answer's stream is open, ask(), reply() and add() throw ArgumentError. A chat
// that was moved from may only be assigned to or destroyed.
class Chat {
 public:
  // Throws UnsupportedError when the model has no tokenizer or no chat template, or one that cannot
  // be rendered.
  explicit Chat(LanguageModel model, const ChatOptions& options = {});
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  // Adds a user message and answers. The answer, as far as it was read, joins messages() when the
  // stream ends or is dropped. Throws what the template raises; ContextOverflowError when the
  // conversation does not fit (the messages stay as they were before).
  TextStream ask(std::string_view user_text);
  // Answers messages() as they are; throws as ask() does.
  TextStream reply();

  // Adds a message of any role without an answer: an example, an earlier conversation.
  void add(Message message);
  const std::vector<Message>& messages() const;  // the system message first, if there is one
  // Back to the system message, or to nothing. An open stream ends, and its answer is forgotten.
  void clear();
  // The tokens that reply() would start from. Throws what the template raises.
  std::vector<TokenId> prompt_ids() const;
  GenerationOptions& generation();  // of the answers to come
  Session& session();               // what has been evaluated

  struct State;  // internal

 private:
  std::shared_ptr<State> state_;  // streams have it too
};

}  // namespace limpid
