// The APIs that the server speaks: who may call what, and where each path leads.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/answer.h"
#include "server/api_keys.h"

namespace limpid {

struct ApiOptions {
  ApiKeys keys{};
  bool offers_slots = true;
  bool offers_metrics = false;
  bool offers_page = true;
  bool verbose = false;       // tell the prompt's text with an answer
  std::string slot_folder{};  // where /slots/… saves; empty: nowhere
  int64_t n_parallel = 1;     // requests at a time
  std::string version{};      // of the program
};

class Api {
 public:
  explicit Api(ApiOptions options) : options_(std::move(options)) {}

  // What HttpServer calls.
  void handle(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply);

  // Until then, whatever needs a model is answered with 503. Once.
  void set_model(std::unique_ptr<ServedModel> model);
  // From now on new requests are answered with 503.
  void drain() { is_draining_ = true; }

  const ApiOptions& options() const { return options_; }
  // Which program computed an answer. llama-server's begin with b too.
  std::string fingerprint() const { return "build-limpid-" + options_.version; }
  Metrics& metrics() const { return metrics_; }
  const ServedModel* model() const { return model_.load(); }

 private:
  const ApiOptions options_;
  mutable Metrics metrics_;
  std::unique_ptr<ServedModel> owned_model_;
  std::atomic<const ServedModel*> model_ = nullptr;
  std::atomic<bool> is_draining_ = false;
};

// One call of an endpoint.
struct ApiCall {
  const Api& api;
  const ServedModel& served;
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;

  void send(const Json& json, int status = 200) const {
    reply->send({status, "application/json", json_line(json)});
  }
  void answer_with(const RequestSettings& settings, std::vector<std::vector<TokenId>> prompts,
                   std::unique_ptr<AnswerShape> shape) const {
    answer(served, settings, std::move(prompts), std::move(shape), api.metrics(), reply);
  }
};

// The endpoints. Each throws for a request that it refuses.
void list_models(const ApiCall& call);
void chat_completions(const ApiCall& call);
void chat_input_tokens(const ApiCall& call);
void completions(const ApiCall& call);
void responses(const ApiCall& call);
void responses_input_tokens(const ApiCall& call);
void embeddings(const ApiCall& call);
void llama_completion(const ApiCall& call);
void tokenize(const ApiCall& call);
void detokenize(const ApiCall& call);
void apply_template(const ApiCall& call);
void props(const ApiCall& call);
void slots(const ApiCall& call);
void slot_action(const ApiCall& call);
void print_metrics(const ApiCall& call);
void anthropic_messages(const ApiCall& call);
void anthropic_count_tokens(const ApiCall& call);
void ollama_chat(const ApiCall& call);
void ollama_generate(const ApiCall& call);
void ollama_tags(const ApiCall& call);
void ollama_version(const ApiCall& call);

}  // namespace limpid
