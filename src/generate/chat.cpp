#include "limpid/chat.hpp"

#include <functional>
#include <utility>

#include "base/check.h"
#include "generate/chat_prompt.h"
#include "generate/session_stream.h"

namespace limpid {

struct Chat::State {
  State(LanguageModel language_model, const ChatOptions& chat_options)
      : model(language_model),
        options(chat_options),
        session(std::move(language_model), chat_options.session) {
    model.engine()->tokenizer();  // both throw when there is none
    model.engine()->chat_template();
    reset();
  }

  void reset() {
    messages.clear();
    if (!options.system.empty()) messages.push_back({"system", options.system});
  }

  std::vector<TokenId> prompt_ids() const {
    TemplateInputs inputs;
    inputs.messages = nlohmann::ordered_json::array();
    for (const Message& message : messages) {
      inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    Engine& engine = *model.engine();
    return encode_chat(*engine.tokenizer(), engine.chat_template(), std::move(inputs));
  }

  LanguageModel model;
  ChatOptions options;
  Session session;
  std::vector<Message> messages;
};

namespace {

// A session's stream that hands the answer over when it ends, for whatever reason.
class ReplyStream : public TextStream::Source {
 public:
  ReplyStream(Session::State& session, std::vector<TokenId> prompt,
              const GenerationOptions& options,
              std::function<void(const std::string& answer)> on_end)
      : stream_(session, std::move(prompt), options), on_end_(std::move(on_end)) {}
  ReplyStream(const ReplyStream&) = delete;
  ReplyStream& operator=(const ReplyStream&) = delete;
  ~ReplyStream() override { end(); }

  std::optional<std::string_view> next() override {
    const auto piece = stream_.next();
    if (!piece) end();
    return piece;
  }
  const GenerationResult& result() const override { return stream_.result(); }

 private:
  void end() {
    if (auto on_end = std::exchange(on_end_, nullptr)) on_end(stream_.result().text);
  }

  SessionStream stream_;
  std::function<void(const std::string& answer)> on_end_;
};

}  // namespace

Chat::Chat(LanguageModel model, const ChatOptions& options)
    : state_(std::make_unique<State>(std::move(model), options)) {}
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

TextStream Chat::reply() {
  State* state = state_.get();
  return TextStream(
      std::make_unique<ReplyStream>(state->session.state(), state->prompt_ids(),
                                    state->options.generation, [state](const std::string& answer) {
                                      state->messages.push_back({"assistant", answer});
                                    }));
}

void Chat::add(Message message) { state_->messages.push_back(std::move(message)); }
const std::vector<Message>& Chat::messages() const { return state_->messages; }
void Chat::clear() { state_->reset(); }
std::vector<TokenId> Chat::prompt_ids() const { return state_->prompt_ids(); }
GenerationOptions& Chat::generation() { return state_->options.generation; }
Session& Chat::session() { return state_->session; }

}  // namespace limpid
