// A conversation with a model, in the model's own chat format.
//
//   limpid::ChatOptions options;
//   options.system = "You answer in rhymes.";
//   limpid::Chat chat(model, options);
//   for (std::string_view piece : chat.ask("Why is the sky blue?")) std::cout << piece;
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

// Small models need one: SmolLM2-135M answers in French without. llama.cpp's program has the same.
inline constexpr const char* kDefaultSystemPrompt = "You are a helpful assistant.";

// What a Chat does when the conversation does not fit the context.
enum class ContextPolicy : uint8_t {
  kError,  // throws ContextOverflowError; an answer that fills the context ends as n_predict says
  // Leaves the oldest turns out of the prompt, a turn being a user message and what follows it up
  // to the next. What precedes the first user message (the system message) and the last turn stay.
  // messages() keeps all; GenerationResult::n_dropped_messages counts those left out. Turns are
  // left out until there is room for an answer of n_predict tokens or of a quarter of the context,
  // the lesser of the two, and again when an answer fills the context. When only the last turn is
  // left and its answer fills the context, the answer ends with StopReason::kLength (with
  // context_shift it goes on as that option says).
  kDropOldestTurns,
};

struct ChatOptions {
  // Unset: kDefaultSystemPrompt, or none where the model's template refuses system messages, as
  // Gemma's does (messages() then begins without one). Empty: none, though a template may have a
  // default of its own. A prompt that is set is never left out: if the template refuses it, ask()
  // throws the template's error.
  std::optional<std::string> system{};
  GenerationOptions generation{};
  SessionOptions session{};
  ContextPolicy overflow = ContextPolicy::kDropOldestTurns;
};

// Control tokens come from the template alone: a user who types `<|im_end|>` sends these ten
// characters. The KV cache of the part of the conversation that did not change is reused from turn
// to turn. While an answer's stream is open, ask(), reply() and add() throw ArgumentError. A chat
// that was moved from may only be assigned to or destroyed.
class Chat {
 public:
  // Throws UnsupportedError when the model has no tokenizer or no chat template, or one that cannot
  // be parsed. With no system prompt set, the template is tried with the default one: throws what
  // that raises, except the template's own refusal.
  explicit Chat(LanguageModel model, const ChatOptions& options = {});
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  // Adds a user message and answers. The answer, as far as it was read, joins messages() when the
  // stream ends or is dropped. Throws what the template raises; ContextOverflowError when the
  // conversation does not fit, or, with kDropOldestTurns, when its first messages and the last turn
  // alone do not fit (the messages stay as they were before).
  TextStream ask(std::string_view user_text);
  // Answers messages() as they are; throws as ask() does.
  TextStream reply();

  // Adds a message of any role without an answer: an example, an earlier conversation.
  void add(Message message);
  const std::vector<Message>& messages() const;  // the system message first, if there is one
  // Back to the system message, or to nothing. An open stream ends, and its answer is forgotten.
  void clear();
  // Puts `messages`, the system message among them, in place of the conversation: an earlier one,
  // or this one without its last turn. An open stream ends, and its answer is forgotten.
  void assign(std::vector<Message> messages);
  // The tokens that reply() would start from. Throws what the template raises.
  std::vector<TokenId> prompt_ids() const;
  GenerationOptions& generation();  // of the answers to come
  Session& session();               // what has been evaluated

  struct State;  // internal

 private:
  std::shared_ptr<State> state_;  // streams have it too
};

}  // namespace limpid
