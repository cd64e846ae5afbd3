#include "generate/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "executor/delegating_executor.h"
#include "generate/generation_task.h"
#include "generate/tiny_model.h"
#include "model/tokenizer_from_metadata.h"
#include "train/new_adapter.h"

namespace limpid {
namespace {

using testing::open_tiny;

// A request and what became of it.
struct Request {
  std::string prompt;
  GenerationOptions options{};
  std::shared_ptr<GenerationTask> task{};
  std::string text{};
  std::exception_ptr error{};
  bool ended = false;
};

void submit(Engine& engine, Request& request, int64_t n_ctx = 256) {
  GenerationTask::Listener listener;
  listener.on_token = [&](std::string_view piece, const GenerationResult&) {
    request.text += piece;
  };
  listener.on_end = [&](const GenerationResult&, std::exception_ptr error) {
    request.ended = true;
    request.error = std::move(error);
  };
  request.task = std::make_shared<GenerationTask>(
      engine, engine.tokenizer()->encode(request.prompt), request.options, n_ctx, listener);
  engine.scheduler().submit(request.task);
}

void finish(Engine& engine) {
  while (engine.scheduler().tick()) {
  }
}

// Prompts that share beginnings of several blocks, with seeds of their own.
std::vector<Request> many_requests(size_t n) {
  std::mt19937 random(7);
  std::vector<Request> requests(n);
  for (size_t i = 0; i < n; ++i) {
    requests[i].prompt =
        std::string(70 * (i % 2), 'a') + std::string(random() % 20, 'b') + std::to_string(i);
    requests[i].options.n_predict = 100 + static_cast<int64_t>(random() % 60);
    requests[i].options.sampler.seed = static_cast<int64_t>(i);
    requests[i].options.sampler.ignore_eos = true;
  }
  return requests;
}

std::vector<std::vector<TokenId>> ids_alone(std::vector<Request> requests) {
  std::vector<std::vector<TokenId>> ids;
  for (Request& request : requests) {
    const auto model = open_tiny();
    Engine& engine = *engine_of(model);
    engine.scheduler().reserve(1000);
    submit(engine, request);
    finish(engine);
    ids.push_back(request.task->result().ids);
  }
  return ids;
}

// Each token takes long, so that prompts beside answers pass through one layer in a tick. Counts
// the steps that begin after the first layer. Fails in steps of the token `fails_on`.
class SlowExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;
  void begin_step() override {
    if (std::ranges::count(inputs().token_ids, fails_on) > 0) throw ResourceError("a token");
    DelegatingExecutor::begin_step();
  }
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override {
    std::this_thread::sleep_for(std::chrono::microseconds(20) * q.rows());
    return DelegatingExecutor::attention(q, k, v, kv, layer, shape);
  }
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override {
    ++n_continued;
    return DelegatingExecutor::write(values, rows, cols);
  }
  int64_t n_continued = 0;
  TokenId fails_on = -1;
};

struct SlowEngine {
  SlowExecutor* executor = nullptr;
  std::shared_ptr<Engine> engine =
      Engine::open(testing::write_tiny_model(TempFolder()), {}, [this](auto inner) {
        auto slow = std::make_unique<SlowExecutor>(std::move(inner));
        executor = slow.get();
        return slow;
      });
};

class SchedulerTest : public ::testing::TestWithParam<int64_t> {};
// Room for all, for some (the others wait and are preempted), and for hardly more than one.
INSTANTIATE_TEST_SUITE_P(Positions, SchedulerTest, ::testing::Values(20000, 1000, 400));

TEST_P(SchedulerTest, ARequestIsAnsweredAsIfItWereAlone) {
  auto requests = many_requests(32);
  const auto expected = ids_alone(requests);
  const SlowEngine slow;
  Engine& engine = *slow.engine;
  engine.scheduler().reserve(GetParam());
  for (int round = 0; round < 2; ++round) {  // the second time, prefixes are in the cache
    for (size_t i = 0; i < requests.size(); ++i) {
      submit(engine, requests[i]);
      // After the first prompt, a tick without prompts tells how long an answer takes.
      for (int tick = 0; tick < (i == 0 ? 3 : i % 3 == 0 ? 1 : 0); ++tick)
        engine.scheduler().tick();
    }
    finish(engine);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_TRUE(requests[i].ended);
      EXPECT_EQ(requests[i].error, nullptr);
      EXPECT_EQ(requests[i].task->result().ids, expected[i]);
    }
  }
  const auto usage = engine.scheduler().usage();
  EXPECT_EQ(usage.n_free_blocks, usage.n_blocks);
  EXPECT_EQ(usage.n_running + usage.n_waiting, 0);
  EXPECT_EQ(usage.n_preempted > 0, GetParam() <= 1000);
  EXPECT_GT(slow.executor->n_continued, 0);
}

// Its cache is copied when it grows, as that of a GPU is. A block takes 100 bytes.
class CopyingExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;
  uint64_t available_memory() const override { return 1000; }
  uint64_t kv_bytes(const KvLayout& layout) const override { return bytes_of(layout.n_blocks); }
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return std::make_unique<Copied>(layout);
  }

 private:
  class Copied final : public KvStorage {
   public:
    using KvStorage::KvStorage;
    uint64_t bytes_to_grow(int64_t n_blocks) const override { return bytes_of(n_blocks); }
  };
  static uint64_t bytes_of(int64_t n_blocks) { return 100 * static_cast<uint64_t>(n_blocks); }
};

TEST(Scheduler, RefusesACacheOfWhichNoCopyFits) {
  const TempFolder folder;
  const auto engine =
      Engine::open(testing::write_tiny_model(folder), {}, [](std::unique_ptr<Executor> inner) {
        return std::make_unique<CopyingExecutor>(std::move(inner));
      });
  engine->scheduler().reserve(6 * kKvBlock);
  engine->scheduler().reserve(4 * kKvBlock);  // a copy of ten blocks beside the six
  EXPECT_THROW(engine->scheduler().reserve(kKvBlock), ResourceError);
}

// A prompt of one token over and over.
class UnansweredPrompt final : public Task {
 public:
  explicit UnansweredPrompt(TokenId token) { assign_tokens(std::vector<TokenId>(50, token)); }
  int64_t n_done() const { return n_stored_; }

 private:
  void on_row(int64_t, const StepRow&) override {}
  void on_stop(std::exception_ptr) override {}
};

// While others generate, a tick evaluates at least two prompt tokens. They belong to another prompt
// each time, so none waits until the ones before it are complete.
TEST(Scheduler, PromptsTakeTurnsWhereATickHasNoRoomForAll) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(2000);
  engine.scheduler().set_limits(100, 1);  // prompts may not make a tick longer
  Request answer{"a prompt that tells how long its tokens take"};
  answer.options.n_predict = 100;
  answer.options.sampler.ignore_eos = true;
  submit(engine, answer);
  engine.scheduler().tick();
  engine.scheduler().tick();  // without a prompt
  std::vector<std::shared_ptr<UnansweredPrompt>> prompts;
  for (TokenId id = 10; id < 15; ++id) {
    prompts.push_back(std::make_shared<UnansweredPrompt>(id));
    engine.scheduler().submit(prompts.back());
  }
  for (int i = 0; i < 20; ++i) engine.scheduler().tick();
  const auto [least, most] = std::ranges::minmax(prompts, {}, &UnansweredPrompt::n_done);
  EXPECT_GE(least->n_done(), 8);
  EXPECT_LE(most->n_done(), least->n_done() + 4);
  for (const auto& prompt : prompts) engine.scheduler().remove(*prompt);
  finish(engine);
}

// Some layers of a chunk are evaluated when a prompt of it fails or is cancelled.
TEST(Scheduler, TheEndOfAPromptDoesNotHarmTheOthersOfItsChunk) {
  const SlowEngine slow;
  Scheduler& scheduler = slow.engine->scheduler();
  scheduler.reserve(4000);
  auto requests = many_requests(5);
  requests[3].options.cancel = CancelToken();
  for (size_t i = 1; i < requests.size(); ++i)
    requests[i].prompt = std::string(60, static_cast<char>('a' + i));
  const auto expected = ids_alone(requests);
  requests[2].prompt[40] = '#';
  slow.executor->fails_on = '#';
  submit(*slow.engine, requests[0]);
  for (int i = 0; i < 5; ++i) scheduler.tick();
  for (size_t i = 1; i < requests.size(); ++i) submit(*slow.engine, requests[i]);
  while (slow.executor->n_continued < 3) scheduler.tick();
  scheduler.tick();
  requests[3].options.cancel.cancel();
  finish(*slow.engine);
  for (const size_t i : {0U, 1U, 4U}) EXPECT_EQ(requests[i].task->result().ids, expected[i]) << i;
  EXPECT_THROW(std::rethrow_exception(requests[2].error), ResourceError);
  EXPECT_EQ(requests[3].task->result().stop_reason, StopReason::kCancelled);
  EXPECT_EQ(scheduler.usage().n_free_blocks, scheduler.usage().n_blocks);
}

// The session takes the room of the second request, whose prompt was in a chunk with the others.
TEST(Scheduler, TheOthersGoOnWhenAPromptLosesItsBlocks) {
  const auto model = open_tiny();
  Session session(model, {.n_ctx = 250});
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(3 * kKvBlock);
  std::vector<Request> requests(2);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = std::string(2 * kKvBlock, static_cast<char>('p' + i));
    requests[i].options.n_predict = kKvBlock - 1;
    submit(engine, requests[i]);
  }
  GenerationOptions options;
  options.n_predict = 2;
  options.sampler.ignore_eos = true;
  EXPECT_EQ(session.generate(std::string(240, 'z'), options).result().ids.size(), 2U);
  finish(engine);
  for (const Request& request : requests) EXPECT_EQ(request.error, nullptr);
}

// A server's thread sleeps when a tick returns false.
TEST(Scheduler, ATickThatOnlyEndsTasksSeesWhatTheirEndSubmits) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(2000);
  Request next{"another", {}};
  next.options.n_predict = 2;
  GenerationTask::Listener listener;
  listener.on_token = [](std::string_view, const GenerationResult&) {};
  listener.on_end = [&](const GenerationResult&, const std::exception_ptr&) {
    submit(engine, next);
  };
  const GenerationOptions options;
  options.cancel.cancel();
  engine.scheduler().submit(std::make_shared<GenerationTask>(
      engine, engine.tokenizer()->encode("cancelled"), options, 256, listener));
  finish(engine);
  EXPECT_TRUE(next.ended);
}

TEST(Scheduler, FindsThePrefixOfAnEarlierRequest) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(2000);
  std::vector<Request> requests(2);
  for (Request& request : requests) {
    request.prompt = std::string(200, 'x');
    request.options.n_predict = 3;
    submit(engine, request);
    finish(engine);
  }
  const auto n_prompt = std::ssize(engine.tokenizer()->encode(requests[0].prompt));
  EXPECT_EQ(requests[0].task->result().timings.n_prompt, n_prompt);
  EXPECT_EQ(requests[1].task->result().timings.n_reused, n_prompt - 1);
  EXPECT_EQ(requests[1].task->result().timings.n_prompt, 1);
}

class Fails : public Sampler {
 public:
  std::string_view name() const override { return "fails"; }
  void apply(Candidates&, const SamplerContext& context) override {
    if (context.history.size() > 20) throw ArgumentError("the sampler failed");
  }
};

TEST(Scheduler, AnErrorEndsOneRequestAndNoOther) {
  auto requests = many_requests(6);
  const auto expected = ids_alone(requests);
  requests[2].options.sampler.custom = {std::make_shared<Fails>()};
  requests[2].options.n_predict = 50;
  requests[4].options.n_predict = GenerationOptions::kUnlimited;
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(4000);
  for (Request& request : requests) submit(engine, request);
  finish(engine);
  EXPECT_THROW(std::rethrow_exception(requests[2].error), ArgumentError);
  EXPECT_THROW(std::rethrow_exception(requests[4].error), ContextOverflowError);
  for (const size_t i : {0U, 1U, 3U, 5U}) EXPECT_EQ(requests[i].task->result().ids, expected[i]);
}

TEST(Scheduler, ARequestThatDoesNotFitAloneSaysSo) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(100);
  auto requests = many_requests(2);
  requests[0].prompt = std::string(200, 'x');
  requests[1].prompt = "short";
  requests[1].options.n_predict = 4;
  for (Request& request : requests) submit(engine, request);
  finish(engine);
  EXPECT_THROW(std::rethrow_exception(requests[0].error), ContextOverflowError);
  EXPECT_EQ(requests[1].error, nullptr);
  EXPECT_EQ(requests[1].task->result().ids.size(), 4U);
}

TEST(Scheduler, ACancelledRequestGivesItsBlocksBackWithinATick) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  engine.scheduler().reserve(2000);
  auto requests = many_requests(2);
  const auto expected = ids_alone(requests);
  requests[0].options.n_predict = 1000;
  requests[0].options.cancel = CancelToken();
  for (Request& request : requests) submit(engine, request);
  engine.scheduler().tick();
  engine.scheduler().tick();
  requests[0].options.cancel.cancel();
  engine.scheduler().tick();
  EXPECT_TRUE(requests[0].ended);
  EXPECT_EQ(requests[0].task->result().stop_reason, StopReason::kCancelled);
  EXPECT_EQ(engine.scheduler().usage().n_running, 1);
  finish(engine);
  EXPECT_EQ(requests[1].task->result().ids, expected[1]);
}

// Bans the token that it was last told of: it has the state of one sequence.
class NeverTwice : public Sampler {
 public:
  std::string_view name() const override { return "never_twice"; }
  std::shared_ptr<Sampler> clone() const override { return std::make_shared<NeverTwice>(); }
  void accept(TokenId token) override { last_ = token; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    candidates.remove_if([this](const Candidate& c) { return c.id == last_; });
  }

 private:
  TokenId last_ = -1;
};

TEST(Scheduler, EachSequenceHasItsOwnCloneOfASampler) {
  const auto model = open_tiny();
  GenerationOptions options;
  options.n_predict = 40;
  options.sampler.temperature = 0;
  options.sampler.ignore_eos = true;
  options.sampler.custom = {std::make_shared<NeverTwice>()};
  const std::vector<std::string> prompts = {"a", "b", "the"};
  const auto together = generate_batch(model, prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& ids = together[i].ids;
    EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
    EXPECT_EQ(Session(model).generate(prompts[i], options).result().ids, ids);
  }
}

// A session has reserved its room: requests never take it away.
TEST(Scheduler, SessionsKeepTheirBlocksBesideRequests) {
  const auto model = open_tiny();
  Engine& engine = *engine_of(model);
  Session session(model, {.n_ctx = 250});
  auto requests = many_requests(12);
  const auto expected = ids_alone(requests);
  engine.scheduler().reserve(600);
  for (Request& request : requests) submit(engine, request);
  GenerationOptions options;
  options.n_predict = 200;
  options.sampler.temperature = 0;
  options.sampler.ignore_eos = true;
  const auto beside = session.generate("abc", options).result();
  finish(engine);
  Session alone(open_tiny(), {.n_ctx = 250});
  EXPECT_EQ(alone.generate("abc", options).result().ids, beside.ids);
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(requests[i].task->result().ids, expected[i]);
}

TEST(Scheduler, SessionsOfSeveralThreadsShareTicks) {
  const auto model = open_tiny();
  std::vector<std::vector<TokenId>> ids(4);
  const auto answer = [](Session session, size_t i) {
    GenerationOptions options;
    options.n_predict = 40;
    options.sampler.seed = static_cast<int64_t>(i);
    options.sampler.ignore_eos = true;
    return session.generate(std::string(10 * i + 1, 'x'), options).result().ids;
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < ids.size(); ++i)
      threads.emplace_back([&, i] { ids[i] = answer(Session(model, {.n_ctx = 128}), i); });
  }
  for (size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(ids[i], answer(Session(open_tiny(), {.n_ctx = 128}), i));
}

// ---- adapters -----------------------------------------------------------------------------------

// With two adapters, whose B is random: one that has learned nothing would change nothing.
LanguageModel open_with_adapters(int64_t n_adapters) {
  const auto checkpoint = testing::tiny_model_checkpoint();
  std::mt19937 random(5);
  for (int64_t i = 0; i < n_adapters; ++i) {
    const auto n_before = static_cast<std::ptrdiff_t>(checkpoint->owned.size());
    add_new_adapter(*checkpoint, 4, 4, "q_proj,down_proj", static_cast<uint64_t>(i));
    for (auto tensor = checkpoint->owned.begin() + n_before; tensor != checkpoint->owned.end();
         ++tensor) {
      for (float& x : (*tensor)->f32()) x = std::uniform_real_distribution(-0.2F, 0.2F)(random);
    }
  }
  auto model = Model::load(checkpoint, make_executor("cpu", {.n_threads = 2}), {});
  return LanguageModel(std::make_shared<Engine>(std::move(model),
                                                tokenizer_from(*testing::tiny_model_checkpoint()),
                                                OpenOptions(), MemoryPlan()));
}

struct MixedRequest {
  Request request;
  std::vector<double> factors;
};

// The same prompt with different mixes, and some that begin with the same tokens.
std::vector<MixedRequest> mixed_requests() {
  std::vector<MixedRequest> requests;
  const std::vector<double> mixes[] = {{}, {0, 0}, {1, 1}, {1, 0}, {0, 1}, {0.5, 0}, {-1, 2}};
  for (int64_t seed = 0; seed < 3; ++seed) {
    for (const std::vector<double>& factors : mixes) {
      MixedRequest& mixed = requests.emplace_back();
      mixed.factors = factors;
      mixed.request.prompt = std::string(100, 'a') + std::to_string(seed % 2);
      mixed.request.options.n_predict = 30;
      mixed.request.options.sampler.seed = seed;
      mixed.request.options.sampler.ignore_eos = true;
    }
  }
  return requests;
}

void submit(Engine& engine, MixedRequest& mixed) {
  mixed.request.task = std::make_shared<GenerationTask>(
      engine, engine.tokenizer()->encode(mixed.request.prompt), mixed.request.options, 256,
      GenerationTask::Listener(), engine.adapter_mixes().find(mixed.factors));
  engine.scheduler().submit(mixed.request.task);
}

TEST(SchedulerAdapters, ARequestIsAnsweredAsIfItWereAlone) {
  std::vector<std::vector<TokenId>> alone;
  for (MixedRequest& mixed : mixed_requests()) {
    const auto model = open_with_adapters(2);
    engine_of(model)->scheduler().reserve(1000);
    submit(*engine_of(model), mixed);
    finish(*engine_of(model));
    alone.push_back(mixed.request.task->result().ids);
  }
  for (const int64_t n_positions : {20'000, 400}) {
    const auto model = open_with_adapters(2);
    engine_of(model)->scheduler().reserve(n_positions);
    auto requests = mixed_requests();
    for (MixedRequest& mixed : requests) submit(*engine_of(model), mixed);
    finish(*engine_of(model));
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(requests[i].request.task->result().ids, alone[i]) << i;
  }
}

// Factors of 0 give the bits of the model without adapters, and of 1 those of the model as it was
// opened; others give something else.
TEST(SchedulerAdapters, TheFactorsSayWhatCounts) {
  const auto answer = [](int64_t n_adapters, std::vector<double> factors) {
    const auto model = open_with_adapters(n_adapters);
    engine_of(model)->scheduler().reserve(1000);
    MixedRequest mixed = mixed_requests().front();
    mixed.factors = std::move(factors);
    submit(*engine_of(model), mixed);
    finish(*engine_of(model));
    return mixed.request.task->result().ids;
  };
  const auto plain = answer(0, {});
  EXPECT_EQ(answer(2, {0, 0}), plain);
  EXPECT_EQ(answer(2, {1, 1}), answer(2, {}));
  EXPECT_EQ(answer(2, {1, 0}), answer(1, {}));
  EXPECT_NE(answer(2, {}), plain);
  EXPECT_NE(answer(2, {0, 1}), answer(2, {1, 0}));
}

TEST(AdapterMixes, EqualFactorsAreOneMixThatIsKeptForSomeTime) {
  AdapterMixes mixes;
  EXPECT_EQ(mixes.find({}), nullptr);
  const std::vector<double> ones{1, 1}, halves{0.5, 0.5};
  EXPECT_EQ(mixes.find(ones), nullptr);
  const uint64_t variant = mixes.find(halves)->variant;
  EXPECT_EQ(mixes.find(halves)->variant, variant);
  for (int i = 2; i < 200; ++i) {
    const std::vector<double> factors(2, i);
    EXPECT_NE(mixes.find(factors)->variant, variant);
  }
  EXPECT_NE(mixes.find(halves)->variant, variant);  // forgotten: nobody used it
}

}  // namespace
}  // namespace limpid
