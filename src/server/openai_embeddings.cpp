// /v1/embeddings, and Ollama's /api/embed: vectors of texts, from the hidden states of the model.
//
// A decoder has a vector of d_model numbers for each token of a text, and pooling makes one of
// them: "mean" averages all, "last" takes that of the last token, which has seen the whole text,
// and "cls" takes the first. A vector of length 1 makes the dot product of two texts the cosine of
// the angle between them.
#include <bit>
#include <mutex>
#include <numeric>

#include "base/base64.h"
#include "server/openai_shapes.h"

namespace limpid {
namespace {

struct EmbeddingSettings {
  ApiStyle style;
  Pooling pooling;
  bool normalize = true;
  bool as_base64 = false;
  std::optional<int64_t> n_most{};  // cut longer texts, instead of refusing them
};

Pooling read_pooling(const JsonField& field) {
  const auto pooling = pooling_named(field.string());
  if (!pooling) field.must_be(R"("mean", "last" or "cls")");
  return *pooling;
}

// Ollama's "options" are those of an answer, so they must be right, but none changes a vector.
EmbeddingSettings read_embedding_settings(const JsonField& body, ApiStyle style,
                                          const ApiCall& call) {
  const ServedModel& served = call.served;
  const int64_t d_model = served.engine().model().spec().d_model;
  const auto dimensions = body.find("dimensions");
  if (dimensions && dimensions->integer(1, INT32_MAX) != d_model)
    dimensions->fail(
        fmt::format("is not supported: the model's embeddings have {} numbers", d_model));
  EmbeddingSettings settings{style, served.pooling};
  if (style == ApiStyle::kOllama) {
    body.allow_only({"input", "model", "dimensions", "options", "truncate", "keep_alive"});
    if (const auto time = body.find("keep_alive")) is_zero_duration(*time);
    RequestSettings unused;
    const int64_t n_ctx = read_ollama_options(call, body, unused);
    if (body.boolean("truncate", true)) settings.n_most = n_ctx;
    return settings;
  }
  body.allow_only(
      {"input", "model", "dimensions", "pooling", "normalize", "encoding_format", "user"});
  body.string_or_empty("user");  // throws if it is not a string
  if (const auto pooling = body.find("pooling")) settings.pooling = read_pooling(*pooling);
  settings.normalize = body.boolean("normalize", true);
  if (const auto format = body.find("encoding_format")) {
    settings.as_base64 = format->string() == "base64";
    if (!settings.as_base64 && format->string() != "float")
      format->must_be(R"("float" or "base64")");
  }
  return settings;
}

// Ollama answers such a request with no vectors: it only wants the model to be loaded.
bool has_no_input(const JsonField& body) {
  const auto input = body.find("input");
  return !input || input->json() == "" || input->json() == Json::array();
}

// The first tokens of a text. A model that was trained with an end of the text still gets it:
// where the last token is the embedding, it would be another one without.
void truncate(std::vector<TokenId>& text, size_t n_most, const TokenizerSpec& spec) {
  if (text.size() <= n_most) return;
  const bool has_end = spec.add_eos && text.back() == spec.eos;
  text.resize(n_most);
  if (has_end) text.back() = *spec.eos;
}

// The request of several texts. It belongs to the callbacks that the service holds.
class EmbeddingsInProgress {
 public:
  EmbeddingsInProgress(const ApiCall& call, EmbeddingSettings settings,
                       const std::vector<std::vector<TokenId>>& texts)
      : served_(call.loan),
        reply_(call.reply),
        settings_(settings),
        embeddings_(texts.size()),
        n_left_(texts.size()) {
    for (const auto& text : texts) sizes_.push_back(text.size());
  }

  void end(size_t i, std::span<const float> embedding, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    try {
      take(i, embedding, error);
    } catch (...) {  // the answer may need more memory than there is
      fail(as_api_error(std::current_exception()));
    }
  }
  // Ends all texts.
  const CancelToken& cancel_token() const { return cancel_; }
  // One of the texts could not be submitted.
  void refuse(const ApiError& error) {
    const std::lock_guard lock(mutex_);
    fail(error);
  }

 private:
  void take(size_t i, std::span<const float> embedding, const std::exception_ptr& error) {
    if (error) fail(as_api_error(error));
    const bool was_left = embedding.empty() && !has_failed_;
    if (was_left && !std::exchange(was_left_, true)) served_->metrics->n_cancelled += 1;
    if (!embedding.empty()) served_->metrics->add_embedded(static_cast<double>(sizes_[i]));
    embeddings_[i].assign(embedding.begin(), embedding.end());
    if (--n_left_ == 0 && !has_failed_) reply_->send({200, "application/json", dump_json(whole())});
  }

  void fail(const ApiError& error) {
    if (std::exchange(has_failed_, true)) return;
    cancel_.cancel();
    served_->metrics->n_failed += 1;
    send_error(*reply_, settings_.style, error);
  }

  Json whole() const {
    const size_t n_tokens = std::reduce(sizes_.begin(), sizes_.end());
    if (settings_.style == ApiStyle::kOllama)
      return {
          {"model", served_->name}, {"embeddings", embeddings_}, {"prompt_eval_count", n_tokens}};
    auto data = Json::array();
    for (const auto& embedding : embeddings_) {
      Json vector = embedding;
      // The floats as they lie in memory, little-endian, as OpenAI's clients expect. Four bytes are
      // 5.3 characters in base64, and about 20 as decimal digits.
      static_assert(std::endian::native == std::endian::little);
      if (settings_.as_base64) vector = base64(std::as_bytes(std::span(embedding)));
      data.push_back(
          {{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(vector)}});
    }
    return {{"object", "list"},
            {"data", std::move(data)},
            {"model", served_->name},
            {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}};
  }

  const std::shared_ptr<const ServedModel> served_;
  const std::shared_ptr<HttpReply> reply_;
  const EmbeddingSettings settings_;
  const CancelToken cancel_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::vector<float>> embeddings_;
  size_t n_left_;
  std::vector<size_t> sizes_;  // of the texts, in tokens
  bool has_failed_ = false, was_left_ = false;
};

}  // namespace

void embeddings(const ApiCall& call) {
  const JsonBody body(call.request.body);
  const EmbeddingSettings settings =
      read_embedding_settings(body, style_of(call.request.path), call);
  if (settings.style == ApiStyle::kOllama && has_no_input(body))
    return call.send({{"model", call.served.name}, {"embeddings", Json::array()}});
  const JsonField input = body.required("input");
  auto texts = read_prompts(call.served, input, "text");
  for (std::vector<TokenId>& text : texts) {
    if (settings.n_most)
      truncate(text, static_cast<size_t>(*settings.n_most), call.served.tokenizer().spec());
  }
  call.served.metrics->n_requests += 1;
  const auto progress = std::make_shared<EmbeddingsInProgress>(call, settings, texts);
  try {
    QueuePlace place = call.served.service->take_place();
    for (size_t i = 0; i < texts.size(); ++i) {
      call.served.service->submit(EmbeddingRequest{
          std::move(texts[i]), settings.pooling, settings.normalize, adapter_mix(call.served, {}),
          i + 1 < texts.size() ? place : std::move(place), progress->cancel_token(),
          [progress, i](std::span<const float> embedding, const std::exception_ptr& error) {
            progress->end(i, embedding, error);
          }});
    }
  } catch (...) {
    return progress->refuse(as_api_error(std::current_exception(), input.name()));
  }
  call.reply->on_gone([cancel = progress->cancel_token()] { cancel.cancel(); });
}

}  // namespace limpid
