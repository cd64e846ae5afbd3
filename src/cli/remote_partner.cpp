// A conversation with a server that speaks OpenAI's API: limpid serve, llama-server, vLLM, OpenAI.
//
// The stream of an answer (OpenAI's API, "Streaming"; WHATWG HTML, section 9.2):
//
//   data: {"choices": [{"delta": {"content": "The"}, "finish_reason": null}]}
//
//   data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}
//
//   data: {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}
//
//   data: [DONE]
//
// Servers differ in what they add to this form, so everything in an answer is optional here: what
// is absent or of another kind counts as no text, no reason and zero tokens. What ends an answer is
// a stream that breaks off, an event that is not JSON, or an error that the server names.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/chat_partner.h"
#include "cli/http_exchange.h"
#include "cli/output.h"
#include "cli/sampler_settings.h"

namespace limpid::cli {
namespace {

constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kModelsPath = "/v1/models";
constexpr size_t kMostBytes = 16 << 20;  // of an answer that is not a stream, or of one event
constexpr double kEndSeconds = 2;        // from the last event to the end of the stream

// The value at a path (RFC 6901) of an answer; null when it is absent.
Json value_at(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  return json.contains(pointer) ? json.at(pointer) : Json();
}

std::string text_at(const Json& json, const char* path) {
  const Json value = value_at(json, path);
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t count_at(const Json& json, const char* path) {
  const Json value = value_at(json, path);
  return value.is_number_integer() ? std::max<int64_t>(0, value.get<int64_t>()) : 0;
}

// The message in a server's error: {"error": {"message": …}}, {"error": "…"}, {"message": …} or
// {"detail": …}. "" for any other body.
std::string message_in(const Json& body) {
  for (const char* path : {"/error/message", "/error", "/message", "/detail"}) {
    if (std::string text = text_at(body, path); !text.empty()) return text;
  }
  return "";
}

Json json_or_null(std::string_view text) {
  try {
    return parse_json(text, "answer");
  } catch (const ArgumentError&) {
    return nullptr;
  }
}

// `path` is where the request went.
[[noreturn]] void fail(const RemoteServer& server, std::string_view path, int64_t status,
                       const std::string& message) {
  std::string problem = message;
  if (status == 401 || status == 403) {
    problem = server.key.empty()
                  ? "it needs a key: --api-key KEY, or set LIMPID_API_KEY or OPENAI_API_KEY"
                  : "it refuses the key of --api-key, LIMPID_API_KEY or OPENAI_API_KEY";
    if (!message.empty()) problem += fmt::format(" ({})", message);
  } else if (status / 100 == 3) {
    problem = "it points to another address; give that one";
  } else if (message.empty()) {
    problem = fmt::format("{} is not there in OpenAI's form; is this a server with its API?", path);
  }
  throw ResourceError(fmt::format("{}: HTTP status {}: {}", server.url, status, problem));
}

// An answer that arrives, read line by line.
class RemoteAnswer {
 public:
  RemoteAnswer(const RemoteServer& server, CancelToken cancel)
      : server_(server), cancel_(std::move(cancel)) {}

  // Sends the request and reads to the end of the stream, or until the cancel token is set. If a
  // client closes before the stream has ended, the server takes it for one that has left.
  void receive(const Json& request, const ShowPiece& show) {
    try {
      check(http_exchange(
          {server_.url + kChatPath, server_.key, dump_json(request)},
          [&](const HttpHead& head, std::string_view part) { return take(head, part, show); },
          [&] {
            const bool is_late = since_done_ && since_done_->seconds() > kEndSeconds;
            return !cancel_.cancelled() && !is_late;
          }));
    } catch (const HttpFault&) {
      if (!since_done_) throw;  // otherwise the answer is complete all the same
    }
    LIMPID_CHECK(ResourceError,
                 since_done_ || cancel_.cancelled() || result_.stop_reason != StopReason::kNone,
                 "{}: the answer breaks off", server_.url);
    if (cancel_.cancelled()) result_.stop_reason = StopReason::kCancelled;
  }
  const GenerationResult& so_far() const { return result_; }

 private:
  static bool is_stream(const HttpHead& head) {
    return head.status == 200 && head.content_type == "text/event-stream";
  }

  // Throws for another answer than a stream of events. `input_` has its body.
  void check(const HttpHead& head) const {
    if (is_stream(head) || head.status == 0) return;  // 0: cancelled
    if (head.status != 200) {
      std::string message = message_in(json_or_null(input_));
      if (head.status == 404 && !message.empty()) message += " (leave -m out to see what it has)";
      fail(server_, kChatPath, head.status, message);
    }
    throw ResourceError(fmt::format(
        "{}: the answer is '{}', not a stream of events; is this a server with OpenAI's API?",
        server_.url, head.content_type));
  }

  // Takes the lines that have ended out of the input. Returns whether more is wanted.
  bool take(const HttpHead& head, std::string_view part, const ShowPiece& show) {
    if (since_done_) return true;
    input_ += part;
    if (!is_stream(head)) return head.status != 200 && input_.size() <= kMostBytes;
    for (size_t end = 0; !since_done_ && (end = input_.find('\n')) != std::string::npos;) {
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      take_line(line, show);
    }
    LIMPID_CHECK(ResourceError, input_.size() <= kMostBytes, "{}: an event has more than {} bytes",
                 server_.url, kMostBytes);
    return true;
  }

  // A line without "data:" is a comment, another field, or the end of an event.
  void take_line(std::string_view line, const ShowPiece& show) {
    constexpr std::string_view kData = "data:";
    if (!line.starts_with(kData)) return;
    const std::string_view data = trimmed(line.substr(kData.size()));
    if (data == "[DONE]") {
      since_done_.emplace();
      return;
    }
    const Json event = json_or_null(data);
    LIMPID_CHECK(ResourceError, event.is_object(), "{}: an event of the answer is not JSON",
                 server_.url);
    const std::string piece = take_event(event);
    if (piece.empty()) return;
    if (result_.text.empty()) result_.timings.prompt_seconds = watch_.seconds();
    result_.timings.generation_seconds = watch_.seconds() - result_.timings.prompt_seconds;
    result_.text += piece;
    show(piece);
  }

  // Returns the text of the event: none for the role at the beginning, the reason at the end, and
  // the usage after it.
  std::string take_event(const Json& event) {
    if (!value_at(event, "/error").is_null()) {
      const std::string message = message_in(event);
      throw ResourceError(fmt::format("{}: {}", server_.url,
                                      message.empty() ? "an error without a message" : message));
    }
    if (value_at(event, "/usage").is_object()) {
      GenerationTimings& timings = result_.timings;
      timings.n_generated = count_at(event, "/usage/completion_tokens");
      timings.n_reused = count_at(event, "/usage/prompt_tokens_details/cached_tokens");
      timings.n_prompt =
          std::max<int64_t>(0, count_at(event, "/usage/prompt_tokens") - timings.n_reused);
    }
    const std::string reason = text_at(event, "/choices/0/finish_reason");
    if (reason == "stop") result_.stop_reason = StopReason::kEndOfText;
    if (reason == "length") result_.stop_reason = StopReason::kLength;
    return text_at(event, "/choices/0/delta/content");
  }

  const RemoteServer& server_;
  CancelToken cancel_;
  Stopwatch watch_;
  std::optional<Stopwatch> since_done_;  // since the last event
  GenerationResult result_;
  std::string input_;  // what lines that have not ended have so far, or what is not a stream
};

class RemotePartner final : public ChatPartner {
 public:
  explicit RemotePartner(RemoteOptions options) : options_(std::move(options)) {
    if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  }

  GenerationResult ask(const std::string& question, const ShowPiece& show) override {
    const size_t n_before = messages_.size();
    messages_.push_back({"user", question});
    try {
      return reply(show);
    } catch (...) {
      if (messages_.size() == n_before + 1) messages_.pop_back();  // no answer has begun
      throw;
    }
  }
  GenerationResult reply(const ShowPiece& show) override {
    RemoteAnswer answer(options_.server, options_.generation.cancel);
    const auto keep = [&] { messages_.push_back({"assistant", answer.so_far().text}); };
    try {
      answer.receive(body(), show);
    } catch (...) {
      if (!answer.so_far().text.empty()) keep();
      throw;
    }
    keep();
    return answer.so_far();
  }
  const std::vector<Message>& messages() const override { return messages_; }
  void assign(std::vector<Message> messages) override { messages_ = std::move(messages); }

  SamplerOptions& sampler() override { return options_.generation.sampler; }
  std::string settings() override {
    const std::string chosen = list_settings(options_.given_settings, sampler());
    return chosen.empty() ? "(all are the server's own; /set NAME VALUE changes one)"
                          : chosen + "; the others are the server's own";
  }
  void set(std::string_view name, std::string_view value) override {
    options_.given_settings.emplace_back(set_sampler(name, value, sampler()));
  }

  std::string length_note(const GenerationResult& result) override {
    const int64_t limit = options_.generation.n_predict;
    const bool is_ours = limit >= 0 && result.timings.n_generated >= limit;
    return is_ours ? "" : "(ended: the server's limit, or the context, is reached)";
  }

 private:
  // The request. Settings that OpenAI's API lacks have llama-server's names, which other servers of
  // open models accept too.
  Json body() const {
    const GenerationOptions& generation = options_.generation;
    auto messages = Json::array();
    for (const Message& message : messages_)
      messages.push_back({{"role", message.role}, {"content", message.content}});
    Json body = {{"model", options_.model},
                 {"messages", std::move(messages)},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    if (generation.n_predict >= 0) body["max_tokens"] = generation.n_predict;
    if (!generation.stop.empty()) body["stop"] = generation.stop;
    if (generation.sampler.ignore_eos) body["ignore_eos"] = true;
    for (const LogitBias& bias : generation.sampler.logit_bias) {
      body["logit_bias"][std::to_string(bias.id)] =
          std::isinf(bias.bias) ? std::copysign(100.0F, bias.bias) : bias.bias;
    }
    add_settings(options_.given_settings, generation.sampler, body);
    return body;
  }

  RemoteOptions options_;
  std::vector<Message> messages_;
};

}  // namespace

std::string server_root(std::string_view address) {
  std::string url(address);
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  LIMPID_CHECK(ArgumentError, url.starts_with("http://") || url.starts_with("https://"),
               "{}: give an address that begins with http:// or https://", address);
  const auto drop_slashes = [&] {
    while (url.ends_with('/')) url.pop_back();
  };
  drop_slashes();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  drop_slashes();
  LIMPID_CHECK(ArgumentError, !url.ends_with(':'), "{}: the name of the server is missing",
               address);
  return url;
}

std::vector<std::string> models_of(const RemoteServer& server) {
  std::string text;
  const auto take = [&](const HttpHead& /*head*/, std::string_view part) {
    text += part;
    return text.size() <= kMostBytes;
  };
  const int64_t status = http_exchange({server.url + kModelsPath, server.key}, take).status;
  const Json body = json_or_null(text);
  const Json data = value_at(body, "/data");
  if (status != 200 || !data.is_array()) fail(server, kModelsPath, status, message_in(body));
  std::vector<std::string> names;
  for (const Json& model : data) names.push_back(text_at(model, "/id"));
  return names;
}

std::unique_ptr<ChatPartner> make_remote_partner(RemoteOptions options) {
  return std::make_unique<RemotePartner>(std::move(options));
}

}  // namespace limpid::cli
