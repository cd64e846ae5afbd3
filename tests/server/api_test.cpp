// The APIs with a tiny model, over real connections.
#include "server/api.h"

#include <fmt/format.h>

#include <atomic>
#include <new>
#include <thread>

#include "executor/delegating_executor.h"
#include "generate/tiny_model.h"
#include "insight/probe_executor.h"
#include "model/tokenizer_from_metadata.h"
#include "server/answer.h"
#include "server/raw_client.h"

namespace limpid::testing {
namespace {

class ApiTest : public ::testing::Test {
 protected:
  explicit ApiTest(ApiOptions options = {})
      : api_(std::move(options)),
        server_({.port = 0}, [this](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
          api_.handle(std::move(request), reply);
        }) {}

  void load(GenerationOptions defaults = {}, int64_t n_queued = 8) {
    api_.shelf().add({{.name = "tiny"}, [defaults, n_queued] {
                        return make_served_model(open_tiny({.n_ctx = 2048}), "tiny", defaults,
                                                 {.n_parallel = 1, .n_queued = n_queued});
                      }});
    api_.set_ready();
  }
  // Of the first model.
  Scheduler::Usage usage() { return api_.shelf().look_at("").usage; }
  bool is_idle_soon() {
    return soon([&] { return usage().n_running + usage().n_waiting == 0; });
  }

  // Answers that end when they are cancelled.
  static GenerationOptions endless() {
    GenerationOptions options;
    options.sampler.ignore_eos = true;
    options.context_shift = true;
    return options;
  }

  static std::string body_of(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  std::string request_text(const std::string& method, const std::string& path,
                           const std::string& body) {
    return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}",
                       method, path, body.size(), headers_, body);
  }
  std::string post(const std::string& path, const std::string& body) {
    return ask("POST", path, body);
  }
  std::string get(const std::string& path) { return ask("GET", path, ""); }
  std::string ask(const std::string& method, const std::string& path, const std::string& body) {
    RawClient client(server_.port());
    headers_ += "Connection: close\r\n";
    client.send(request_text(method, path, body));
    headers_.clear();
    return client.read_to_end();
  }
  static int status_of(const std::string& answer) { return std::stoi(answer.substr(9, 3)); }

  std::string headers_;  // of the next request
  Api api_;
  HttpServer server_;
};

constexpr const char* kHello = R"({"messages": [{"role": "user", "content": "hello"}]})";

TEST_F(ApiTest, IsNotReadyWithoutAModelNorWhenItDrains) {
  EXPECT_EQ(status_of(get("/health")), 503);
  EXPECT_EQ(status_of(post("/v1/chat/completions", kHello)), 503);
  EXPECT_EQ(status_of(get("/nothing")), 404);
  load(saying("hi"));
  EXPECT_EQ(status_of(get("/health")), 200);
  for (const auto& [path, allowed] :
       {std::pair("/health", "GET, HEAD"), std::pair("/lora-adapters", "GET, HEAD, POST"),
        std::pair("/completion", "POST"), std::pair("/", "GET, HEAD")}) {
    const std::string refused = ask("DELETE", path, "");
    EXPECT_EQ(status_of(refused), 405);
    EXPECT_NE(refused.find(fmt::format("\r\nAllow: {}\r\n", allowed)), std::string::npos)
        << refused;
  }
  EXPECT_EQ(status_of(ask("HEAD", "/health", "")), 200);
  api_.drain();
  const std::string answer = get("/health");
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_NE(answer.find("\r\nRetry-After: "), std::string::npos);
}

TEST_F(ApiTest, AnswersWithWhatTheModelSays) {
  load(saying("h\xC3\xA9llo there"));
  const Json answer = Json::parse(body_of(post("/v1/chat/completions", kHello)));
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "h\xC3\xA9llo there");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 13);  // twelve bytes and the end of the turn
}

// The tokens of a choice of /v1/completions, a part of a character as "?".
std::string tokens_of(const Json& choice) {
  std::string tokens;
  for (const Json& token : choice["logprobs"]["tokens"])
    tokens += token == "\xEF\xBF\xBD" ? "?" : token.get<std::string>();
  return tokens;
}

// With the texts of a stream come the tokens of the texts, each once: "S S" begins as the stop
// string does, and those tokens come later. The tokens of the stop string itself only count.
TEST_F(ApiTest, AStreamTellsEveryTokenOfTheTextOnce) {
  load(saying("h\xC3\xA9llo S STOP there"));
  const std::string asked = R"("prompt": "x", "stop": ["STOP"], "logprobs": 1, "max_tokens": 50)";
  const std::string stream = post("/v1/completions", "{\"stream\": true, " + asked + "}");
  std::string text, tokens;
  int64_t n_generated = 0;
  for (size_t at = 0; (at = stream.find("data: {", at)) != std::string::npos; ++at) {
    const Json event = Json::parse(stream.substr(at + 6, stream.find("\n\n", at) - at - 6));
    text += event["choices"][0]["text"];
    tokens += tokens_of(event["choices"][0]);
    if (event.contains("timings")) n_generated = event["timings"]["predicted_n"];
  }
  EXPECT_EQ(text, "h\xC3\xA9llo S ");
  EXPECT_EQ(tokens, "h??llo S ");
  EXPECT_EQ(n_generated, 13);
  const Json whole = Json::parse(body_of(post("/v1/completions", "{" + asked + "}")));
  EXPECT_EQ(tokens_of(whole["choices"][0]), tokens);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 13);
}

TEST_F(ApiTest, CancelsForClientsThatGo) {
  load(endless());
  for (const char* stream : {"true", "false"}) {
    RawClient first(server_.port()), second(server_.port());
    const std::string body = fmt::format(R"({{"prompt": "x", "stream": {}}})", stream);
    first.send(request_text("POST", "/v1/completions", body));
    EXPECT_TRUE(soon([&] { return usage().n_running == 1; }));
    second.send(request_text("POST", "/v1/completions", body));
    EXPECT_TRUE(soon([&] { return usage().n_waiting == 1; }));
    second.close();  // in the queue
    first.close();
    EXPECT_TRUE(is_idle_soon());
  }
}

// One that streams, one that waits.
TEST_F(ApiTest, TellsThoseWhomItCutsOff) {
  load(endless());
  RawClient streams(server_.port()), waits(server_.port());
  streams.send(request_text("POST", "/v1/completions", R"({"prompt": "x", "stream": true})"));
  EXPECT_TRUE(soon([&] { return usage().n_running == 1; }));
  waits.send(request_text("POST", "/v1/messages",
                          R"({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})"));
  EXPECT_TRUE(soon([&] { return usage().n_waiting == 1; }));
  std::thread stopping([this] { server_.stop(std::chrono::milliseconds(0)); });
  const std::string stream = streams.read_to_end();
  EXPECT_NE(stream.find("\"message\":\"the server is shutting down\""), std::string::npos);
  EXPECT_NE(stream.find("\"code\":503"), std::string::npos);
  EXPECT_EQ(stream.find("finish_reason\":\"stop"), std::string::npos);
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
  const std::string refused = waits.read_to_end();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_EQ(Json::parse(body_of(refused))["error"]["type"], "overloaded_error");
  stopping.join();
  EXPECT_TRUE(is_idle_soon());
}

TEST_F(ApiTest, CountsWhoLeaves) {
  load(endless());
  const auto metrics = api_.shelf().look_at("").metrics;
  RawClient runs(server_.port()), text(server_.port()), embedding(server_.port());
  runs.send(request_text("POST", "/v1/completions", R"({"prompt": "x"})"));
  EXPECT_TRUE(soon([&] { return usage().n_running == 1; }));
  text.send(request_text("POST", "/v1/completions", R"({"prompt": "x"})"));
  embedding.send(request_text("POST", "/v1/embeddings", R"({"input": ["x", "y"]})"));
  EXPECT_TRUE(soon([&] { return usage().n_waiting == 3; }));
  text.close();
  embedding.close();
  EXPECT_TRUE(soon([&] { return metrics->n_cancelled.load() == 2; }));
  runs.close();
  EXPECT_TRUE(is_idle_soon());
  EXPECT_EQ(metrics->n_cancelled.load(), 3);
  EXPECT_EQ(metrics->n_requests.load(), 3);
  std::string sizes;  // of the only prompt that was evaluated
  metrics->prompt_sizes.print("n", "", sizes);
  EXPECT_TRUE(sizes.ends_with("n_count 1\n")) << sizes;
}

// Without a prompt's place in the queue the whole request is refused, and the part that was
// accepted is cancelled.
TEST_F(ApiTest, ARequestTakesOnePlaceWhateverItsNumberOfPrompts) {
  load({}, 0);
  const std::string body = R"({"prompt": ["a", "b", "c", "d", "e"], "max_tokens": 1, "n": 2})";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status_of(post("/v1/completions", body)), 200);
  EXPECT_TRUE(is_idle_soon());
}

// Fails for one seed. A request's choices have different seeds.
class FailsFor : public Sampler {
 public:
  explicit FailsFor(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "fails_for"; }
  void apply(Candidates& /*candidates*/, const SamplerContext& context) override {
    if (context.seed == seed_) throw ArgumentError("this seed fails");
  }

 private:
  uint64_t seed_;
};

TEST_F(ApiTest, AFailureEndsTheOtherChoices) {
  GenerationOptions defaults = endless();
  defaults.sampler.custom = {std::make_shared<FailsFor>(7)};
  load(defaults);
  for (const char* body : {R"({"prompt": "a", "n": 3, "seed": 7})",
                           R"({"prompt": ["a", "b"], "n": 2, "seed": 7, "stream": true})"}) {
    const std::string answer = post("/v1/completions", body);
    EXPECT_NE(answer.find("this seed fails"), std::string::npos) << answer;
    EXPECT_TRUE(is_idle_soon());
  }
}

// There is no memory for the whole answer.
class TooLargeShape final : public AnswerShape {
 public:
  std::string token(const TokenEvent&) override { return ""; }
  std::string choice_end(const TokenEvent&, const GenerationResult&) override { return ""; }
  std::string end(const AnswerResults&) override { return ""; }
  Json whole(const AnswerResults&) override { throw std::bad_alloc(); }
};

class KeptReply final : public HttpReply {
 public:
  void send(HttpAnswer answer) override { status = answer.status; }
  void begin_stream(HttpAnswer) override {}
  bool write(std::string_view) override { return true; }
  void end() override {}
  void on_gone(std::function<void()>) override {}
  void log_failure(std::string_view reason) override { logged = reason; }

  std::string logged;  // before the status
  std::atomic<int> status = 0;
};

TEST_F(ApiTest, AnAnswerThatIsTooLargeForTheMemoryIsAnError) {
  load();
  const auto kept = std::make_shared<KeptReply>();
  const std::shared_ptr<HttpReply> reply = kept;
  const HttpRequest request;
  RequestSettings settings;
  settings.generation = saying("hi");
  ModelShelf& shelf = api_.shelf();
  shelf.lend("", true, shelf.new_ticket(), [&](const ModelShelf::Loan& loan, const auto&) {
    answer({{api_, request, reply}, loan}, settings, {std::vector<TokenId>{'a'}},
           std::make_unique<TooLargeShape>());
  });
  EXPECT_TRUE(soon([&] { return kept->status == 503; }));
  EXPECT_EQ(kept->logged, "std::bad_alloc");
  EXPECT_TRUE(is_idle_soon());
}

TEST_F(ApiTest, TheLargestSeedIsFollowedByTheSmallest) {
  GenerationOptions defaults = saying("hi");
  defaults.sampler.seed = INT64_MAX;
  load(defaults);
  EXPECT_EQ(status_of(post("/v1/completions", R"({"prompt": "x", "n": 3})")), 200);
}

// The choices of a prompt take no places of the queue, so 8 places are enough for 8 prompts.
TEST_F(ApiTest, BoundsTheAnswersOfARequest) {
  load();
  const auto complete = [&](size_t n, size_t n_prompts) {
    const std::vector<std::string> prompts(n_prompts, "x");
    const Json body = {{"n", n}, {"prompt", prompts}, {"max_tokens", 0}};
    return post("/v1/completions", body.dump());
  };
  EXPECT_EQ(status_of(complete(64, 8)), 200);
  const std::string refused = complete(64, 9);
  EXPECT_EQ(status_of(refused), 400);
  EXPECT_EQ(Json::parse(body_of(refused))["error"]["param"], "n");
}

// However a text that spells control tokens comes in, and whatever follows it.
TEST_F(ApiTest, ContinuesWhatTheAssistantBegan) {
  load(saying("hi"));
  const auto n_tokens = [&](const std::string& rest) {
    const std::string body = R"({"messages": [{"role": "user", "content": "a"})" + rest;
    const Json answer = Json::parse(body_of(post("/v1/chat/completions", body)));
    return answer["usage"]["prompt_tokens"].get<int>();
  };
  const int n_plain = n_tokens("]}");
  const std::string begun = R"(, {"role": "assistant", "content": "<|im_end|>"}])";
  EXPECT_EQ(n_tokens(begun + "}"), n_plain + 9);  // "im" is one token of ten characters
  EXPECT_EQ(
      n_tokens(begun + R"(, "continue_final_message": true, "add_generation_prompt": false})"),
      n_plain + 9);
  const int n_turns = n_tokens(begun + R"(, "continue_final_message": false})");
  EXPECT_GT(n_turns, n_plain + 9 + 5);  // the next turn begins
  EXPECT_LT(
      n_tokens(begun + R"(, "continue_final_message": false, "add_generation_prompt": false})"),
      n_turns);
}

// Remembers who asked for the executor's threads last.
class ThreadsExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;
  ThreadPool* threads() override {
    asked_by = std::this_thread::get_id();
    return DelegatingExecutor::threads();
  }
  std::atomic<std::thread::id> asked_by{};
};

// The threads of the executor serve one caller at a time, so an explanation uses them only on the
// thread that runs the steps of the other requests.
TEST_F(ApiTest, ExplainsOnTheThreadThatRunsTheModel) {
  std::atomic<ThreadsExecutor*> executor = nullptr;
  std::atomic<std::thread::id> engine_thread{};
  api_.shelf().add({{.name = "tiny"}, [&] {
                      auto inner = std::make_unique<ThreadsExecutor>(make_cpu_executor());
                      executor = inner.get();
                      auto probe = std::make_unique<ProbeExecutor>(std::move(inner));
                      ProbeExecutor* const probe_seen = probe.get();
                      auto model = Model::load(tiny_model_checkpoint(), std::move(probe));
                      auto tokenizer = tokenizer_from(model->checkpoint());
                      auto served = make_served_model(
                          LanguageModel(std::make_shared<Engine>(
                              std::move(model), std::move(tokenizer), OpenOptions(), MemoryPlan())),
                          "tiny", {}, {.n_parallel = 1});
                      served->probe = probe_seen;
                      served->service->submit([&engine_thread] {
                        engine_thread = std::this_thread::get_id();
                        return false;
                      });
                      return served;
                    }});
  api_.set_ready();
  const std::string body =
      R"({"messages": [{"role": "user", "content": "hello"}], "answer": "the heim"})";
  EXPECT_EQ(status_of(post("/explain", body)), 200);
  EXPECT_NE(engine_thread.load(), std::thread::id());
  EXPECT_EQ(executor.load()->asked_by.load(), engine_thread.load());
}

class ApiWithKeyTest : public ApiTest {
 protected:
  ApiWithKeyTest() : ApiTest(with_key()) {}

 private:
  static ApiOptions with_key() {
    ApiOptions options;
    options.keys.add("secret");
    return options;
  }
};

TEST_F(ApiWithKeyTest, AsksForAKey) {
  load(saying("hi"));
  EXPECT_EQ(status_of(get("/health")), 200);
  EXPECT_EQ(status_of(get("/v1/models")), 200);
  for (const char* path : {"/props", "/slots", "/metrics"}) EXPECT_EQ(status_of(get(path)), 401);
  EXPECT_EQ(status_of(post("/v1/chat/completions", kHello)), 401);
  headers_ = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(status_of(post("/v1/chat/completions", kHello)), 200);
  headers_ = "X-Api-Key: secret\r\n";
  EXPECT_EQ(status_of(post("/v1/messages", R"({"max_tokens": 5, "messages": [)"
                                           R"({"role": "user", "content": "a"}]})")),
            200);
  const Json error = Json::parse(body_of(post("/v1/messages", "{}")))["error"];
  EXPECT_EQ(error["type"], "authentication_error");
}

}  // namespace
}  // namespace limpid::testing
