#include "limpid/chat.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "generate/chat_prompt.h"
#include "generate/session_stream.h"

namespace limpid {
namespace {

TemplateInputs inputs_of(std::span<const Message> messages) {
  TemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return inputs;
}

// Encodes a conversation with the model's own template.
std::vector<TokenId> encode(Engine& engine, std::span<const Message> messages) {
  return encode_chat(*engine.tokenizer(), engine.chat_template(), inputs_of(messages));
}

// Whether the template itself raises an error for these messages.
bool refuses(Engine& engine, std::span<const Message> messages) {
  try {
    encode(engine, messages);
    return false;
  } catch (const TemplateRefusal&) {
    return true;
  }
}

// Whether the template accepts a user message but refuses the same after a system message.
bool refuses_system_messages(Engine& engine) {
  const Message messages[] = {{"system", kDefaultSystemPrompt}, {"user", "Hello"}};
  return refuses(engine, messages) && !refuses(engine, std::span(messages).last(1));
}

}  // namespace

// The conversation and its session. The prompt is rendered again for each answer; the session keeps
// the common prefix with the tokens that it has evaluated, so a turn costs only its own tokens.
//
// When the context is full, the oldest turns are omitted. A turn is a user message and all that
// follows up to the next one; what precedes the first user message always stays:
//
//   [system] [user answer] [user answer] [user]
//   turn_starts   1             3          5     indices into `messages`
struct Chat::State {
  State(LanguageModel language_model, const ChatOptions& chat_options)
      : model(language_model),
        options(chat_options),
        session(std::move(language_model), chat_options.session) {
    engine_of(model)->tokenizer();  // throws when there is none; so does the next line
    engine_of(model)->chat_template();
    if (!options.system) {
      options.system = refuses_system_messages(*engine_of(model)) ? "" : kDefaultSystemPrompt;
    }
    clear();
  }

  // Replaces the conversation. An open answer ends, and does not become a message.
  void assign(std::vector<Message> new_messages) {
    if (answering != nullptr) std::exchange(answering, nullptr)->stop();
    messages = std::move(new_messages);
    n_dropped_messages = 0;
  }
  void clear() {
    assign({});
    if (!options.system->empty()) messages.push_back({"system", *options.system});
  }

  // The prompt of the next answer.
  Prompt prompt() const {
    const auto turns = turn_starts();
    if (options.overflow == ContextPolicy::kError) return prompt_without(turns, 0);
    return prompt_with_room(turns, n_turns_dropped(turns), 0);
  }

  // A prompt that drops at least one more turn, for a context that is full after `n_sampled` tokens
  // of an answer; nothing when only the last turn is left or it does not fit.
  std::optional<Prompt> shorter_prompt(int64_t n_sampled) {
    const auto turns = turn_starts();
    const std::ptrdiff_t n_dropped = n_turns_dropped(turns) + 1;
    if (n_dropped >= std::ssize(turns)) return std::nullopt;
    Prompt prompt = prompt_with_room(turns, n_dropped, n_sampled);
    if (std::ssize(prompt.ids) + n_sampled > session.n_ctx()) return std::nullopt;
    n_dropped_messages = prompt.n_dropped_messages;
    return prompt;
  }

  // The options of an answer, with a chat's own defaults.
  GenerationOptions reply_options() const {
    GenerationOptions reply = options.generation;
    reply.stop_at_repetition = reply.stop_at_repetition.value_or(true);
    return reply;
  }

  void check_idle() const {
    LIMPID_CHECK(ArgumentError, answering == nullptr,
                 "[chat] an answer is still being read: read its stream to the end or drop it "
                 "before the conversation goes on");
  }

  LanguageModel model;
  ChatOptions options;
  Session session;
  std::vector<Message> messages;
  int64_t n_dropped_messages = 0;      // missing from the last prompt; they stay out
  SessionStream* answering = nullptr;  // the open stream; its answer will become a message

 private:
  // The index in `messages` at which each turn begins.
  std::vector<std::ptrdiff_t> turn_starts() const {
    std::vector<std::ptrdiff_t> starts;
    for (std::ptrdiff_t i = 0; i < std::ssize(messages); ++i) {
      if (messages[static_cast<size_t>(i)].role == "user") starts.push_back(i);
    }
    return starts;
  }

  // How many turns were missing from the last prompt.
  std::ptrdiff_t n_turns_dropped(std::span<const std::ptrdiff_t> turns) const {
    return std::ranges::count_if(
        turns, [&](std::ptrdiff_t start) { return start - turns.front() < n_dropped_messages; });
  }

  // The prompt without the first `n_dropped` turns.
  Prompt prompt_without(std::span<const std::ptrdiff_t> turns, std::ptrdiff_t n_dropped) const {
    std::vector<Message> left = messages;
    Prompt prompt;
    if (n_dropped > 0) {
      const auto first = turns.front();
      const auto end = turns[static_cast<size_t>(n_dropped)];
      left.erase(left.begin() + first, left.begin() + end);
      prompt.n_dropped_messages = end - first;
    }
    prompt.ids = encode(*engine_of(model), left);
    return prompt;
  }

  // Drops at least the first `n_dropped` turns, and as few more as it takes to make room for the
  // rest of an answer; never the last turn. The prompt gets shorter with each turn dropped, so the
  // number is found by binary search: each try renders and encodes the conversation.
  Prompt prompt_with_room(std::span<const std::ptrdiff_t> turns, std::ptrdiff_t n_dropped,
                          int64_t n_sampled) const {
    const int64_t n_ctx = session.n_ctx();
    const int64_t n_predict = options.generation.n_predict;
    const int64_t room = std::min(n_predict < 0 ? n_ctx : n_predict - n_sampled, n_ctx / 4);
    const auto has_room = [&](const Prompt& prompt) {
      return std::ssize(prompt.ids) + n_sampled + room <= n_ctx;
    };
    Prompt prompt = prompt_without(turns, n_dropped);
    std::ptrdiff_t most = std::ssize(turns) - 1;
    if (n_dropped >= most || has_room(prompt)) return prompt;
    for (std::ptrdiff_t fewest = n_dropped + 1; fewest < most;) {
      const std::ptrdiff_t middle = fewest + (most - fewest) / 2;
      if (has_room(prompt_without(turns, middle)))
        most = middle;
      else
        fewest = middle + 1;
    }
    return prompt_without(turns, most);
  }
};

Chat::Chat(LanguageModel model, const ChatOptions& options)
    : state_(std::make_shared<State>(std::move(model), options)) {}
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

TextStream Chat::ask(std::string_view user_text) {
  add({"user", std::string(user_text)});
  try {
    return reply();
  } catch (...) {
    state_->messages.pop_back();
    throw;
  }
}

// The answer becomes a message when its stream ends. Chat::clear and Chat::assign stop the stream
// instead; the answer is then forgotten.
TextStream Chat::reply() {
  state_->check_idle();
  const Prompt prompt = state_->prompt();
  // A stream without a prompt would continue the session's tokens: an earlier conversation.
  LIMPID_CHECK(ArgumentError, !prompt.ids.empty(),
               "[chat] the chat template makes an empty prompt of these messages: add a message");
  ShortenPrompt shorten;
  if (state_->options.overflow == ContextPolicy::kDropOldestTurns)
    shorten = [chat = state_](int64_t n_sampled) { return chat->shorter_prompt(n_sampled); };
  const auto keep_answer = [chat = state_](const GenerationResult& result) {
    chat->answering = nullptr;
    const bool has_ended =
        result.stop_reason != StopReason::kNone && result.stop_reason != StopReason::kCancelled;
    if (has_ended || !result.text.empty()) chat->messages.push_back({"assistant", result.text});
  };
  auto stream = std::make_unique<SessionStream>(state_of(state_->session), prompt,
                                                state_->reply_options(), shorten, keep_answer);
  state_->answering = stream.get();
  state_->n_dropped_messages = prompt.n_dropped_messages;
  return TextStream(std::move(stream));
}

void Chat::add(Message message) {
  state_->check_idle();
  state_->messages.push_back(std::move(message));
}

void Chat::clear() { state_->clear(); }
void Chat::assign(std::vector<Message> messages) { state_->assign(std::move(messages)); }
const std::vector<Message>& Chat::messages() const { return state_->messages; }
std::vector<TokenId> Chat::prompt_ids() const { return state_->prompt().ids; }
GenerationOptions& Chat::generation() { return state_->options.generation; }
Session& Chat::session() { return state_->session; }

}  // namespace limpid
