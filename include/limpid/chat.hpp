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

// One message of a conversation.
struct Message {
  std::string role;  // "system", "user", "assistant", or another role of the template
  std::string content;
};

// Small models answer better with a system prompt. llama.cpp's program uses the same text.
inline constexpr const char* kDefaultSystemPrompt = "You are a helpful assistant.";

// What a Chat does when the conversation does not fit the context.
enum class ContextPolicy : uint8_t {
  kError,  // throws ContextOverflowError; an answer that fills the context ends as n_predict says
  // Omits the oldest turns from the prompt. A turn is a user message and what follows it up to the
  // next one. The messages before the first user message (the system message) and the last turn
  // always stay. messages() keeps all of them; GenerationResult::n_dropped_messages counts the
  // omitted ones. Turns are omitted until there is room for an answer of n_predict tokens or a
  // quarter of the context, whichever is less, and again when an answer fills the context. When
  // only the last turn is left and its answer fills the context, the answer ends with
  // StopReason::kLength (with context_shift it goes on as that option says).
  kDropOldestTurns,
};

struct ChatOptions {
  // Unset: kDefaultSystemPrompt, or none when the model's template refuses system messages, as
  // Gemma's does (messages() then begins without one). Empty: none, though a template may have a
  // default of its own. A prompt that you set is always used: if the template refuses it, ask()
  // throws the template's error.
  std::optional<std::string> system{};
  GenerationOptions generation{};
  SessionOptions session{};
  ContextPolicy overflow = ContextPolicy::kDropOldestTurns;
};

// Only the template writes control tokens: a user who types `<|im_end|>` sends these ten
// characters. The KV cache of the unchanged part of the conversation is reused from turn to turn.
// While an answer's stream is open, ask(), reply() and add() throw ArgumentError. A moved-from chat
// may only be assigned to or destroyed.
class Chat {
 public:
  // Throws UnsupportedError when the model has no tokenizer, or no chat template that can be
  // parsed. When no system prompt is set, the constructor tries the template with the default one,
  // and throws what that raises, except the template's own refusal.
  explicit Chat(LanguageModel model, const ChatOptions& options = {});
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  // Adds a user message and answers it. The part of the answer that was read is added to messages()
  // when the stream ends, throws or is dropped; if nothing was read, nothing is added, and the user
  // message stays alone. (An answer that ends by itself is added even when it is empty.) Throws
  // what the template raises, ArgumentError when it writes nothing, and ContextOverflowError when
  // the conversation does not fit or, with kDropOldestTurns, when its first messages and the last
  // turn alone do not fit. After such an exception the messages are as they were before.
  TextStream ask(std::string_view user_text);
  // Answers messages() as they are. Throws as ask() does.
  TextStream reply();

  // Adds a message of any role without an answer: an example, or a part of an earlier conversation.
  void add(Message message);
  const std::vector<Message>& messages() const;  // the system message first, if there is one
  // Removes all messages but the system message. An open stream ends, and its answer is forgotten.
  void clear();
  // Replaces the conversation by `messages`, which include the system message: an earlier
  // conversation, or this one without its last turn. An open stream ends, and its answer is
  // forgotten.
  void assign(std::vector<Message> messages);
  // The tokens that reply() would start from. Throws what the template raises.
  std::vector<TokenId> prompt_ids() const;
  GenerationOptions& generation();  // the options of the next answers
  Session& session();               // holds the tokens evaluated so far

  struct State;  // internal

 private:
  std::shared_ptr<State> state_;  // shared with open streams
};

}  // namespace limpid
