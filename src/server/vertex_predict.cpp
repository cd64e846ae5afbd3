// /predict of Google's Vertex AI: requests of other endpoints, several in one.
//
//   {"instances": [{"@requestFormat": "chatCompletions", "messages": […]}, …]}
//   {"predictions": [{"id": "chatcmpl-…", "choices": […]}, …]}
#include <algorithm>
#include <atomic>
#include <mutex>

#include "server/api.h"

namespace limpid {
namespace {

constexpr size_t kMostInstances = 64;
constexpr size_t kMostBytes = 64 << 20;  // of all answers, as text

struct Format {
  std::string_view name;
  void (*endpoint)(const ApiCall& call);
};

constexpr Format kFormats[] = {
    {"chatCompletions", chat_completions},
    {"completions", completions},
    {"responses", responses},
    {"embeddings", embeddings},
    {"messages", anthropic_messages},
    {"completion", llama_completion},
    {"tokenize", tokenize},
    {"detokenize", detokenize},
    {"applyTemplate", apply_template},
};

// Collects the answers, and sends them when the last one is there.
//
// The reply's callback holds this object, and the callbacks of the instances hold the model's loan.
// So with the last answer the reply and the callbacks are let go. As a circle they would keep the
// model for ever, and it could not be unloaded.
class Predictions {
 public:
  Predictions(std::shared_ptr<HttpReply> reply, size_t n)
      : reply_(std::move(reply)), answers_(n), n_left_(n) {}

  void take(size_t index, Json answer) {
    std::shared_ptr<HttpReply> reply;
    std::vector<std::function<void()>> forgotten;  // without the lock
    {
      const std::lock_guard lock(mutex_);
      answers_[index] = std::move(answer);
      if (--n_left_ > 0) return;
      reply = std::move(reply_);
      forgotten.swap(on_gone_);
    }
    reply->send({200, "application/json", dump_json({{"predictions", std::move(answers_)}})});
  }

  void log_failure(std::string_view reason) {
    const std::lock_guard lock(mutex_);
    if (reply_) reply_->log_failure(reason);
  }

  // Whether an answer of so many bytes may be kept beside those that came before. All of them are
  // in memory until the last one is there.
  bool has_room_for(size_t n_bytes) { return (n_bytes_ += n_bytes) <= kMostBytes; }

  void add_on_gone(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    if (n_left_ > 0) on_gone_.push_back(std::move(callback));
  }
  void tell_gone() {
    std::vector<std::function<void()>> callbacks;
    {
      const std::lock_guard lock(mutex_);
      callbacks.swap(on_gone_);
    }
    for (const auto& callback : callbacks) callback();
  }

 private:
  std::atomic<size_t> n_bytes_ = 0;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<HttpReply> reply_;
  std::vector<Json> answers_;
  size_t n_left_;
  std::vector<std::function<void()>> on_gone_;
};

// The reply to one instance. An endpoint writes to it as it would to a client, so no endpoint knows
// that its answer becomes a part of another one. Its error is a prediction too: the other instances
// are answered all the same.
class InstanceReply final : public HttpReply {
 public:
  InstanceReply(std::shared_ptr<Predictions> all, size_t index)
      : all_(std::move(all)), index_(index) {}
  ~InstanceReply() override {
    if (!has_answer_) all_->take(index_, error_json(ApiStyle::kOpenAi, {500, "the server failed"}));
  }

  void send(HttpAnswer answer) override {
    if (std::exchange(has_answer_, true)) return;
    all_->take(index_, all_->has_room_for(answer.body.size())
                           ? Json::parse(answer.body, nullptr, false)
                           : error_json(ApiStyle::kOpenAi, too_large()));
  }
  void begin_stream(HttpAnswer /*answer*/) override {}  // "stream" is refused
  bool write(std::string_view /*chunk*/) override { return false; }
  void end() override {}
  void on_gone(std::function<void()> callback) override { all_->add_on_gone(std::move(callback)); }
  void log_failure(std::string_view reason) override { all_->log_failure(reason); }

 private:
  static ApiError too_large() {
    return {400, "the answers are too large together: send fewer instances at a time", "instances"};
  }

  const std::shared_ptr<Predictions> all_;
  const size_t index_;
  bool has_answer_ = false;  // set by one thread at a time
};

void predict(const ApiCall& call, const JsonField& instance,
             const std::shared_ptr<HttpReply>& reply) {
  try {
    const JsonField format = instance.required("@requestFormat");
    const auto* const found = std::ranges::find(kFormats, format.string(), &Format::name);
    if (found == std::end(kFormats)) format.fail("'" + format.string() + "' is not supported");
    if (const auto stream = instance.find("stream"); stream && stream->boolean())
      stream->fail("cannot be true here");
    const auto model = instance.find("model");
    if (model && call.api.shelf().size() > 1 && model->string() != call.served.name)
      model->fail("is not " + call.served.name +
                  ", which answers this request: name the model in the query, ?model=NAME");
    Json body = instance.json();
    body.erase("@requestFormat");
    HttpRequest request = call.request;
    request.body = body.dump();
    found->endpoint({{call.api, request, reply}, call.loan});
  } catch (...) {
    send_error(*reply, ApiStyle::kOpenAi, as_api_error(std::current_exception()));
  }
}

}  // namespace

void vertex_predict(const ApiCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"instances", "parameters"});
  const auto parameters = body.find("parameters");
  if (parameters && !parameters->is_empty()) parameters->fail("is not supported");
  const JsonField field = body.required("instances");
  const std::vector<JsonField> instances = field.elements();
  if (instances.empty() || instances.size() > kMostInstances)
    field.fail("must have 1 to " + std::to_string(kMostInstances) + " instances");
  const auto all = std::make_shared<Predictions>(call.reply, instances.size());
  for (size_t i = 0; i < instances.size(); ++i)
    predict(call, instances[i], std::make_shared<InstanceReply>(all, i));
  call.reply->on_gone([all] { all->tell_gone(); });
}

}  // namespace limpid
