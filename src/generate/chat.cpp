#include "limpid/chat.hpp"

#include <memory>
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

  void check_idle() const {
    LIMPID_CHECK(ArgumentError, answering == nullptr,
                 "[chat] an answer is still being read: read its stream to the end or drop it "
                 "before the conversation goes on");
  }

  LanguageModel model;
  ChatOptions options;
  Session session;
  std::vector<Message> messages;
  SessionStream* answering = nullptr;  // the open stream, whose answer will join the messages
};

namespace {

// A session's stream whose answer joins the messages when it ends, for whatever reason.
class ReplyStream : public TextStream::Source {
 public:
  explicit ReplyStream(std::shared_ptr<Chat::State> chat)
      : chat_(std::move(chat)),
        stream_(chat_->session.state(), chat_->prompt_ids(), chat_->options.generation) {
    chat_->answering = &stream_;
  }
  ReplyStream(const ReplyStream&) = delete;
  ReplyStream& operator=(const ReplyStream&) = delete;
  ~ReplyStream() override { end(); }

  std::optional<std::string_view> next() override {
    try {
      const auto piece = stream_.next();
      if (stream_.ended()) end();
      return piece;
    } catch (...) {
      end();
      throw;
    }
  }
  const GenerationResult& result() const override { return stream_.result(); }

 private:
  // Adds the answer once. Chat::clear takes `answering` away, and the answer is then not added.
  void end() {
    if (chat_->answering != &stream_) return;
    chat_->answering = nullptr;
    chat_->messages.push_back({"assistant", stream_.result().text});
  }

  std::shared_ptr<Chat::State> chat_;
  SessionStream stream_;
};

}  // namespace

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

TextStream Chat::reply() {
  state_->check_idle();
  return TextStream(std::make_unique<ReplyStream>(state_));
}

void Chat::add(Message message) {
  state_->check_idle();
  state_->messages.push_back(std::move(message));
}

void Chat::clear() {
  if (state_->answering != nullptr) std::exchange(state_->answering, nullptr)->stop();
  state_->reset();
}

const std::vector<Message>& Chat::messages() const { return state_->messages; }
std::vector<TokenId> Chat::prompt_ids() const { return state_->prompt_ids(); }
GenerationOptions& Chat::generation() { return state_->options.generation; }
Session& Chat::session() { return state_->session; }

}  // namespace limpid
