// Why the model said what it said: POST /explain gives the numbers of the page of `limpid explain`
// for a conversation and an answer to it, and GET /explain.html that page, without numbers, for the
// frame in which the web page shows them.
//
// A text is explained a few tokens at a time, between the steps of the other requests: a step has
// the model to itself, so the others wait for one of them at most, and their bits stay the same.
// The keys and values of the explanation are its own, in f32.
#include <optional>

#include "insight/explain_page.h"
#include "insight/explanation.h"
#include "server/api.h"

namespace limpid {
namespace {

constexpr int64_t kMostTokens = 1024;  // 10 seconds of SmolLM2-135M on two cores, and 4 MB
constexpr int64_t kTokensAtATime = 8;

// One request, from its first step to its answer.
class Explaining {
 public:
  Explaining(const ApiCall& call, std::vector<TokenId> tokens, const ExplainOptions& options)
      : served_(call.loan), reply_(call.reply), tokens_(std::move(tokens)), options_(options) {}

  // On the engine's thread; false when it is over.
  bool advance() {
    const bool goes_on = !gone_.cancelled() && explain_more();
    if (!goes_on) explainer_.reset();
    return goes_on;
  }
  void cancel() const { gone_.cancel(); }

 private:
  bool explain_more() {
    try {
      Model& model = served_->engine().model();
      if (!explainer_) explainer_.emplace(model, *served_->probe, std::move(tokens_), options_);
      if (explainer_->advance()) return true;
      const PageFacts facts{served_->name, describe_model(model.spec())};
      reply_->send({200, "application/json",
                    explain_data(explainer_->take(), facts, served_->tokenizer_or_null())});
    } catch (...) {
      send_error(*reply_, ApiStyle::kOpenAi, as_api_error(std::current_exception()));
    }
    return false;
  }

  const std::shared_ptr<const ServedModel> served_;
  const std::shared_ptr<HttpReply> reply_;
  std::vector<TokenId> tokens_;
  const ExplainOptions options_;
  const CancelToken gone_;
  // Made and destroyed on the engine's thread: it uses the threads of the executor, which serve one
  // caller at a time.
  std::optional<Explainer> explainer_;
};

}  // namespace

// {"messages": [those before the answer], "answer": "text"}. The answer's tokens are those of its
// text, which may differ from the ones that were sampled where a text has several spellings in
// tokens.
void explain_answer(const ApiCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"messages", "answer", "model"});
  const std::string answer = body.required("answer").string();
  if (answer.empty()) body.required("answer").fail("is empty: there is nothing to explain");
  if (call.served.probe == nullptr) throw ApiError(501, "this server does not explain answers");
  const RequestSettings settings = call.served.settings();
  if (adapter_mix(call.served, settings) != nullptr)
    throw ApiError(400, "an answer cannot be explained while an adapter has a scale other than 1");
  std::vector<TokenId> tokens = encode_messages(call.served, body.required("messages"), settings);
  const ExplainOptions options{.n_prompt = std::ssize(tokens), .n_batch = kTokensAtATime};
  const std::vector<TokenId> said = call.served.tokenizer().encode(
      answer, EncodeOptions{.add_special = false, .at_start = false});
  tokens.insert(tokens.end(), said.begin(), said.end());
  const int64_t most = std::min(kMostTokens, call.served.n_ctx());
  if (std::ssize(tokens) > most) {
    throw ApiError(400,
                   "the conversation and its answer have " + std::to_string(tokens.size()) +
                       " tokens, and at most " + std::to_string(most) +
                       " are explained: begin a new conversation, or explain an earlier answer",
                   "messages");
  }
  const auto explaining = std::make_shared<Explaining>(call, std::move(tokens), options);
  call.served.service->submit([explaining] { return explaining->advance(); });
  call.reply->on_gone([explaining] { explaining->cancel(); });
}

void explain_frame_page(const ServerCall& call) {
  if (!call.api.options().offers_page) throw ApiError(404, "this server has no page");
  // The page itself says which script may run, and that nothing else may.
  call.reply->send({200,
                    "text/html; charset=utf-8",
                    explain_frame(),
                    {{"Content-Security-Policy", "frame-ancestors 'self'"},
                     {"Cache-Control", "no-cache"},
                     {"Referrer-Policy", "no-referrer"},
                     {"X-Content-Type-Options", "nosniff"}}});
}

}  // namespace limpid
