// A conversation with a model in this process.
//
// limpid::Chat does the work. This file adds what only the program needs: settings by name, and a
// note that says why an answer ended.
#include <utility>

#include "cli/chat_partner.h"
#include "cli/sampler_settings.h"
#include "generate/engine.h"
#include "generate/sampler_chain.h"

namespace limpid::cli {
namespace {

// The stream ends here, and with it the answer becomes a message: a Chat waits for that.
GenerationResult read(TextStream stream, const ShowPiece& show) {
  while (const auto piece = stream.next()) show(*piece);
  return stream.so_far();
}

class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(LanguageModel model, const ChatOptions& options)
      : model_(std::move(model)), chat_(model_, options) {}

  GenerationResult ask(const std::string& question, const ShowPiece& show) override {
    return read(chat_.ask(question), show);
  }
  GenerationResult reply(const ShowPiece& show) override { return read(chat_.reply(), show); }
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
