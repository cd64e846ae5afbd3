// The APIs that the server speaks: who may call what, and where each path leads.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "server/api_keys.h"
#include "server/model_shelf.h"

namespace limpid {

struct ApiOptions {
  ApiKeys keys{};
  bool offers_slots = true;
  bool offers_metrics = false;
  bool offers_page = true;
  bool loads_models = true;   // a request loads the model that it asks for
  bool verbose = false;       // tell the prompt's text with an answer
  std::string slot_folder{};  // where /slots/… saves; empty: nowhere
  int64_t n_parallel = 1;     // requests at a time
  std::string version{};      // of the program
  // Called with the text of each prompt, on any thread; control tokens are spelled.
  std::function<void(const std::string& model, const std::string& prompt)> log_prompt{};
};

class Api {
 public:
  explicit Api(ApiOptions options, const ShelfLimits& limits = {})
      : options_(std::move(options)), shelf_(limits) {}

  // What HttpServer calls.
  void handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  // Until then, everything but the page is answered with 503.
  void set_ready() { is_ready_ = true; }
  // From now on new requests are answered with 503.
  void drain() { is_draining_ = true; }

  const ApiOptions& options() const { return options_; }
  ModelShelf& shelf() const { return shelf_; }
  int64_t start_time() const { return start_time_; }  // Unix seconds
  // Which program computed an answer. llama-server's begin with b too.
  std::string fingerprint() const { return "build-limpid-" + options_.version; }

 private:
  const ApiOptions options_;
  const int64_t start_time_ = std::time(nullptr);
  mutable ModelShelf shelf_;
  std::atomic<bool> is_ready_ = false;
  std::atomic<bool> is_draining_ = false;
};

// One call of an endpoint that is about the server.
struct ServerCall {
  const Api& api;
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;

  void send(const Json& json) const { reply->send({200, "application/json", dump_json(json)}); }
};

// One call of an endpoint that needs a model. A copy of the loan keeps the model loaded.
struct ApiCall : ServerCall {
  const ModelShelf::Loan& loan;
  const ServedModel& served;

  ApiCall(const ServerCall& call, const ModelShelf::Loan& loan)
      : ServerCall(call), loan(loan), served(*loan) {}

  // What a request in the names of `api` asks for; the rest is the server's default.
  RequestSettings read_settings(const JsonField& body, ApiName api) const {
    RequestSettings settings = served.settings();
    limpid::read_settings(body, api, served.tokenizer_or_null(), settings);
    if (settings.slot >= 0) check_slot(settings.slot);
    return settings;
  }
  // Throws ApiError for a slot that does not exist.
  void check_slot(int64_t slot) const {
    const int64_t last = served.service->n_slots() - 1;
    if (slot > last)
      throw ApiError(400, fmt::format("id_slot is {}, the slots are 0 to {}", slot, last),
                     "id_slot");
  }
};

// With several models, a GET names one in its query and a POST in its body, as in llama-server. The
// query serves a POST whose body names none, as that of /predict. "" with a single model.
std::string asked_model(const Api& api, const HttpRequest& request);
// Calls `endpoint` when the model is loaded. The request waits until then, in a copy, and the
// thread of the connection goes on.
void call_with_model(const Api& api, void (*endpoint)(const ApiCall& call), HttpRequest request,
                     const std::shared_ptr<HttpReply>& reply);

// The endpoints. Each throws for a request that it refuses.
void list_models(const ServerCall& call);
void tell_model(const ServerCall& call);
void load_model(const ServerCall& call);
void unload_model(const ServerCall& call);
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
void props(const ServerCall& call);  // loads the model if it was never loaded
void lora_adapters(const ApiCall& call);
void set_lora_adapters(const ApiCall& call);
void slots(const ApiCall& call);
void slot_action(const ApiCall& call);
void print_metrics(const ServerCall& call);
void anthropic_messages(const ApiCall& call);
void anthropic_count_tokens(const ApiCall& call);
void ollama_chat(const ApiCall& call);
void ollama_generate(const ApiCall& call);
void ollama_tags(const ServerCall& call);
void ollama_ps(const ServerCall& call);
void ollama_show(const ServerCall& call);
void ollama_version(const ServerCall& call);
void vertex_predict(const ApiCall& call);
void explain_answer(const ApiCall& call);
void explain_frame_page(const ServerCall& call);

}  // namespace limpid
