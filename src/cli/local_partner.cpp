// A conversation with a model in this process.
#include <utility>

#include "cli/answer.h"
#include "cli/chat_partner.h"
#include "cli/sampler_settings.h"
#include "generate/engine.h"
#include "generate/sampler_chain.h"

namespace limpid::cli {
namespace {

class LocalAnswer final : public AnswerStream {
 public:
  explicit LocalAnswer(TextStream stream) : stream_(std::move(stream)) {}
  std::optional<std::string_view> next() override { return stream_.next(); }
  const GenerationResult& so_far() const override { return stream_.so_far(); }

 private:
  TextStream stream_;
};

class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(LanguageModel model, const ChatOptions& options)
      : model_(std::move(model)), chat_(model_, options) {}

  std::unique_ptr<AnswerStream> ask(const std::string& question) override {
    return std::make_unique<LocalAnswer>(chat_.ask(question));
  }
  std::unique_ptr<AnswerStream> reply() override {
    return std::make_unique<LocalAnswer>(chat_.reply());
  }
  const std::vector<Message>& messages() const override { return chat_.messages(); }
  void assign(std::vector<Message> messages) override { chat_.assign(std::move(messages)); }
  SamplerOptions& sampler() override { return chat_.generation().sampler; }
  std::string settings() override { return all_settings(sampler()); }

  // The new settings are checked by building a sampler chain from them.
  void set(std::string_view name, std::string_view value) override {
    SamplerOptions changed = sampler();
    set_sampler(name, value, changed);
    const SamplerChain checked(changed, engine_of(model_)->model().spec().vocab_size, {});
    sampler() = std::move(changed);
  }

  Json to_json(const GenerationResult& result) const override { return cli::to_json(result); }
  std::string length_note(const GenerationResult& result) override {
    const int64_t limit = chat_.generation().n_predict;
    const bool context_is_full = limit < 0 || std::ssize(result.ids) < limit;
    return context_is_full ? "(ended: the context is full)" : "";
  }

 private:
  LanguageModel model_;
  Chat chat_;
};

}  // namespace

std::unique_ptr<ChatPartner> make_local_partner(LanguageModel model, const ChatOptions& options) {
  return std::make_unique<LocalPartner>(std::move(model), options);
}

}  // namespace limpid::cli
