#include "generate/engine.h"
#include "generate/model_sampler.h"
#include "limpid/model.hpp"

namespace limpid {

LanguageModel LanguageModel::open(const std::string& path, const OpenOptions& options) {
  return LanguageModel(Engine::open(path, options));
}

int64_t LanguageModel::n_ctx() const { return engine_->n_ctx(); }
int64_t LanguageModel::vocab_size() const { return engine_->vocab_size(); }
bool LanguageModel::has_tokenizer() const { return engine_->has_tokenizer(); }
const MemoryPlan& LanguageModel::memory_plan() const { return engine_->memory_plan(); }

namespace {

EncodeOptions encode_options(bool add_special, bool parse_special) {
  EncodeOptions options{.add_special = add_special};
  if (parse_special) options.special.allow = SpecialTokens::Allow::kAll;
  return options;
}

}  // namespace

std::vector<TokenId> LanguageModel::encode(std::string_view text, bool add_special,
                                           bool parse_special) const {
  return engine_->tokenizer()->encode(text, encode_options(add_special, parse_special));
}

std::vector<std::vector<TokenId>> LanguageModel::encode_batch(
    std::span<const std::string_view> texts, bool add_special, bool parse_special,
    int n_threads) const {
  const EncodeOptions options = encode_options(add_special, parse_special);
  return engine_->tokenizer()->encode_batch(texts, options, n_threads);
}

// A padded embedding has more rows than the tokenizer has tokens; those rows have no text.
std::string LanguageModel::decode(std::span<const TokenId> ids, bool show_special) const {
  const Tokenizer& tokenizer = *engine_->tokenizer();
  std::vector<TokenId> known(ids.begin(), ids.end());
  std::erase_if(known,
                [&](TokenId id) { return id >= tokenizer.vocab_size() && id < vocab_size(); });
  return tokenizer.decode(known, show_special);
}

bool LanguageModel::is_stop(TokenId id) const { return engine_->tokenizer()->is_stop(id); }
SamplerOptions LanguageModel::recommended_sampler() const {
  const Checkpoint& checkpoint = engine_->checkpoint();
  return model_sampler_options(checkpoint.metadata, checkpoint.path);
}

std::string LanguageModel::chat_template() const { return engine_->chat_template_source(); }

}  // namespace limpid
