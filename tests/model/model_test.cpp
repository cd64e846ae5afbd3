// Whole models: the same logits however the work is cut, and refusals of what would change them.
#include "model/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "executor/delegating_executor.h"
#include "executor/executors.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::metadata_value;
using testing::run_in_chunks;
using testing::some_tokens;
using testing::tiny_checkpoint;
using testing::TinyShape;

std::unique_ptr<Model> load(const TinyShape& shape, int n_threads = 1) {
  return Model::load(tiny_checkpoint(shape), make_reference_executor({.n_threads = n_threads}));
}

TEST(Model, GivesTheSameLogitsForAnyChunkingAndThreads) {
  const auto tokens = some_tokens(150, 50);
  const auto expected = run_in_chunks(*load({}), tokens, 1);
  EXPECT_TRUE(std::isfinite(expected.back()));
  for (const size_t chunk : {7u, 64u, 150u})
    EXPECT_EQ(run_in_chunks(*load({}, 3), tokens, chunk), expected);
}

TEST(Model, GivesTheSameLogitsAloneAndAmongOthers) {
  const auto tokens = some_tokens(20, 50);
  const auto alone = run_in_chunks(*load({}), tokens, 20);
  const auto model = load({});
  const auto cache = model->make_cache(1000, DType::kF32, DType::kF32);
  const std::vector<int32_t> other = {5, 4, 3};
  const std::vector<StepItem> items = {{cache->add_sequence(), other, StepItem::Outputs::kLast},
                                       {cache->add_sequence(), tokens, StepItem::Outputs::kAll},
                                       {cache->add_sequence(), other, StepItem::Outputs::kNone}};
  const auto logits = model->step(*cache, items);
  ASSERT_EQ(logits.size(), 21u * 50u);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), logits.begin() + 50));
}

TEST(Model, ForgetsWhatIsTruncated) {
  const auto model = load({});
  const auto cache = model->make_cache(100, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  const auto tokens = some_tokens(10, 50);
  const StepItem whole{sequence, tokens, StepItem::Outputs::kLast};
  const auto first = model->step(*cache, {&whole, 1});
  const std::vector<float> expected(first.begin(), first.end());
  cache->truncate(sequence, 4);
  const StepItem rest{sequence, std::span(tokens).subspan(4), StepItem::Outputs::kLast};
  const auto again = model->step(*cache, {&rest, 1});
  EXPECT_TRUE(std::ranges::equal(again, expected));
}

TEST(Model, RefusesTokensOutsideTheVocabularyAndSequencesPastTheContext) {
  const auto model =
      Model::load(tiny_checkpoint(), make_reference_executor({.n_threads = 1}), {.n_ctx = 8});
  const auto cache = model->make_cache(100, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  for (const int32_t bad : {-1, 50}) {
    const StepItem item{sequence, {&bad, 1}, StepItem::Outputs::kLast};
    EXPECT_THROW(model->step(*cache, {&item, 1}), ArgumentError);
  }
  const auto tokens = some_tokens(9, 50);
  const StepItem item{sequence, tokens, StepItem::Outputs::kLast};
  EXPECT_THROW(model->step(*cache, {&item, 1}), ContextOverflowError);
  EXPECT_EQ(cache->length(sequence), 0);
}

// ---- a step that fails leaves the cache as it was, and the next one runs ------------------------

struct CacheState {
  std::vector<std::vector<int32_t>> blocks;
  std::vector<int64_t> lengths;
  int64_t n_free_blocks = 0;
  bool operator==(const CacheState&) const = default;
};

CacheState state_of(const KvCache& cache, std::span<const SequenceId> sequences) {
  CacheState state;
  for (const SequenceId id : sequences) {
    state.blocks.emplace_back(cache.blocks(id).begin(), cache.blocks(id).end());
    state.lengths.push_back(cache.length(id));
  }
  state.n_free_blocks = cache.n_free_blocks();
  return state;
}

// The cache has room for the first item and not for the second.
TEST(Model, GivesBackTheBlocksOfAStepThatDoesNotFit) {
  const auto model = load({});
  const auto cache = model->make_cache(3 * kKvBlock, DType::kF32, DType::kF32);
  const std::vector<SequenceId> ids = {cache->add_sequence(), cache->add_sequence()};
  const auto tokens = some_tokens(2 * kKvBlock, 50);
  const std::vector<StepItem> before = {{ids[0], std::span(tokens).first(10)},
                                        {ids[1], std::span(tokens).first(3)}};
  model->step(*cache, before);
  const CacheState state = state_of(*cache, ids);
  const std::vector<StepItem> items = {{ids[0], std::span(tokens).first(kKvBlock)},
                                       {ids[1], std::span(tokens).first(kKvBlock)}};
  EXPECT_THROW(model->step(*cache, items), ContextOverflowError);
  EXPECT_EQ(state_of(*cache, ids), state);
  const StepItem alone = items[1];
  EXPECT_EQ(model->step(*cache, {&alone, 1}).size(), 50U);
}

// Throws where and when it is told to.
class FailingExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;
  std::string fails_at;
  int n_ended = 0;
  int n_reserved = 0;

  void begin_step() override {
    if (fails_at == "begin_step") throw ResourceError("begin_step");
    DelegatingExecutor::begin_step();
  }
  void end_step() override {
    ++n_ended;
    DelegatingExecutor::end_step();
  }
  void reserve(int64_t max_tokens, int64_t max_outputs) override {
    ++n_reserved;
    if (fails_at == "reserve") throw ResourceError("reserve");
    DelegatingExecutor::reserve(max_tokens, max_outputs);
  }

 protected:
  void enter(std::string_view op) override {
    if (op == fails_at) throw ResourceError(std::string(op));
  }
};

class FailedStep : public ::testing::TestWithParam<const char*> {};

TEST_P(FailedStep, LeavesTheCacheAsItWasAndTheNextOneRuns) {
  const auto tokens = some_tokens(100, 50);
  const auto expected = run_in_chunks(
      *Model::load(tiny_checkpoint(), make_cpu_executor({.n_threads = 2})), tokens, 50);
  auto owned = std::make_unique<FailingExecutor>(make_cpu_executor({.n_threads = 2}));
  FailingExecutor& executor = *owned;
  const auto model = Model::load(tiny_checkpoint(), std::move(owned));
  const auto cache = model->make_cache(1000, DType::kF32, DType::kF32);
  const std::vector<SequenceId> ids = {cache->add_sequence(), cache->add_sequence()};
  const auto step = [&](size_t begin, size_t end) {
    const std::vector<StepItem> items = {
        {ids[0], std::span(tokens).subspan(begin, end - begin), StepItem::Outputs::kAll},
        {ids[1], std::span(tokens).subspan(begin, end - begin), StepItem::Outputs::kNone}};
    const auto logits = model->step(*cache, items);
    return std::vector<float>(logits.begin(), logits.end());
  };
  std::vector<float> all = step(0, 30);
  const CacheState state = state_of(*cache, ids);
  executor.fails_at = GetParam();
  EXPECT_THROW(step(30, 100), ResourceError);
  EXPECT_EQ(state_of(*cache, ids), state);
  // What has begun has ended.
  EXPECT_EQ(executor.n_ended, std::string(GetParam()) == "attention" ? 2 : 1);
  executor.fails_at = "";
  const auto rest = step(30, 100);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(all, expected);
}

INSTANTIATE_TEST_SUITE_P(Model, FailedStep,
                         ::testing::Values("reserve", "begin_step", "attention"));

TEST(Model, ReservesMemoryForStepsThatAreLargerThanAllBefore) {
  auto owned = std::make_unique<FailingExecutor>(make_cpu_executor({.n_threads = 1}));
  const FailingExecutor& executor = *owned;
  const auto model = Model::load(tiny_checkpoint(), std::move(owned));
  const auto cache = model->make_cache(1000, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  const auto tokens = some_tokens(100, 50);
  const auto n_reserved = [&](size_t n_tokens, StepItem::Outputs outputs) {
    const StepItem item{sequence, std::span(tokens).first(n_tokens), outputs};
    model->step(*cache, {&item, 1});
    return executor.n_reserved;
  };
  EXPECT_EQ(n_reserved(10, StepItem::Outputs::kLast), 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(n_reserved(1, StepItem::Outputs::kLast), 1);
  EXPECT_EQ(n_reserved(10, StepItem::Outputs::kNone), 1);
  EXPECT_EQ(n_reserved(11, StepItem::Outputs::kLast), 2);
  EXPECT_EQ(n_reserved(5, StepItem::Outputs::kAll), 3);  // more outputs
  EXPECT_EQ(n_reserved(11, StepItem::Outputs::kLast), 3);
}

// ---- keys and tensors: each is implemented (the logits change) or refused by name ---------------

struct Flip {
  const char* key;
  MetadataValue value;
};

class RefusedKey : public ::testing::TestWithParam<Flip> {};

TEST_P(RefusedKey, IsNamed) {
  const auto checkpoint = tiny_checkpoint();
  checkpoint->metadata.set(GetParam().key, GetParam().value);
  const std::string_view key = GetParam().key;
  expect_error<Error>([&] { read_spec(*checkpoint); }, {key.substr(key.find('.') + 1)});
}

INSTANTIATE_TEST_SUITE_P(
    Llama, RefusedKey,
    ::testing::Values(Flip{"llama.attention.sliding_window", metadata_value(int64_t{16})},
                      Flip{"llama.expert_count", metadata_value(int64_t{8})},
                      Flip{"llama.expert_used_count", metadata_value(int64_t{2})},
                      Flip{"llama.attn_logit_softcapping", metadata_value(50.0)},
                      Flip{"llama.final_logit_softcapping", metadata_value(30.0)},
                      Flip{"llama.attention.clamp_kqv", metadata_value(8.0)},
                      Flip{"llama.attention.max_alibi_bias", metadata_value(8.0)},
                      Flip{"llama.attention.causal", metadata_value(false)},
                      Flip{"llama.attention.scale", metadata_value(0.5)},
                      Flip{"llama.use_parallel_residual", metadata_value(true)},
                      Flip{"llama.logit_scale", metadata_value(0.25)},
                      Flip{"llama.embedding_scale", metadata_value(12.0)},
                      Flip{"llama.residual_scale", metadata_value(0.2)},
                      Flip{"llama.hidden_activation", metadata_value(std::string("gelu"))},
                      Flip{"llama.rope.scaling.yarn_log_multiplier", metadata_value(0.1)},
                      Flip{"llama.rope.scaling.attn_factor", metadata_value(1.2)},
                      Flip{"llama.rope.freq_base", metadata_value(0.0)},
                      Flip{"llama.rope.freq_base", metadata_value(std::nan(""))},
                      Flip{"llama.rope.dimension_count", metadata_value(int64_t{15})},
                      Flip{"llama.rope.dimension_count", metadata_value(int64_t{32})},
                      Flip{"llama.attention.head_count", metadata_value(int64_t{0})},
                      Flip{"llama.attention.head_count_kv", metadata_value(int64_t{0})},
                      Flip{"llama.attention.head_count_kv", metadata_value(int64_t{3})},
                      Flip{"llama.attention.head_count_kv", metadata_value(int64_t{8})},
                      Flip{"llama.attention.value_length", metadata_value(int64_t{8})},
                      Flip{"llama.attention.layer_norm_rms_epsilon", metadata_value(-1.0)},
                      Flip{"llama.vocab_size", metadata_value(int64_t{51})},
                      Flip{"llama.block_count", metadata_value(int64_t{-1})},
                      Flip{"llama.embedding_length", metadata_value(int64_t{0})},
                      Flip{"llama.context_length", metadata_value(int64_t{0})}));

TEST(LlamaSpec, RefusesRopeScalingByItsName) {
  for (const char* type : {"yarn", "longrope", "dynamic"}) {
    const auto checkpoint = tiny_checkpoint();
    checkpoint->metadata.set("llama.rope.scaling.type", metadata_value(std::string(type)));
    expect_error<UnsupportedError>([&] { read_spec(*checkpoint); }, {type});
  }
}

// As in llama.cpp: a factor alone scales linearly, and the type `none` turns it off.
TEST(LlamaSpec, TheTypeNoneDoesNotScale) {
  const auto plain = read_spec(*tiny_checkpoint()).rope;
  const auto checkpoint = tiny_checkpoint();
  checkpoint->metadata.set("llama.rope.scaling.factor", metadata_value(4.0));
  const auto scaled = read_spec(*checkpoint).rope;
  EXPECT_EQ(scaled.scaling, "linear");
  EXPECT_EQ(scaled.inverse_frequencies[1], plain.inverse_frequencies[1] / 4);
  checkpoint->metadata.set("llama.rope.scaling.type", metadata_value(std::string("none")));
  const auto off = read_spec(*checkpoint).rope;
  EXPECT_EQ(off.scaling, "none");
  EXPECT_EQ(off.scaling_factor, 1);
  EXPECT_EQ(off.inverse_frequencies, plain.inverse_frequencies);
}

TEST(LlamaSpec, RefusesUnknownArchitecturesAndTensors) {
  auto checkpoint = tiny_checkpoint();
  checkpoint->metadata.set("general.architecture", metadata_value(std::string("mamba")));
  EXPECT_THROW(read_spec(*checkpoint), UnsupportedError);

  checkpoint = tiny_checkpoint();
  checkpoint->tensors["blk.0.attn_sub_norm.weight"] = checkpoint->tensors["blk.0.attn_norm.weight"];
  const auto executor = make_reference_executor({.n_threads = 1});
  EXPECT_THROW(load_weights(*checkpoint, read_spec(*checkpoint), *executor), UnsupportedError);
}

TEST(LlamaSpec, NamesTensorsThatAreMissingOrMisshapen) {
  for (const bool missing : {true, false}) {
    const auto checkpoint = tiny_checkpoint();
    if (missing) {
      checkpoint->tensors.erase("blk.1.ffn_up.weight");
    } else {
      checkpoint->tensors["blk.1.ffn_up.weight"] = checkpoint->tensors["blk.1.ffn_down.weight"];
    }
    const auto executor = make_reference_executor({.n_threads = 1});
    expect_error<FormatError>([&] { load_weights(*checkpoint, read_spec(*checkpoint), *executor); },
                              {"blk.1.ffn_up.weight: "});
  }
}

void add_made(Checkpoint& checkpoint, const std::string& name, const std::vector<float>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  checkpoint.tensors[name] = {DType::kF32, shape, nullptr};
  checkpoint.derived[name] = {"of values", [=] { return Tensor::of(shape, values); }};
}

// Keys and tensors that Limpid implements: flipping one must change the logits.
TEST(LlamaSpec, HeedsWhatItImplements) {
  const auto tokens = some_tokens(12, 50);
  const auto logits_with = [&](const auto& change) {
    const auto checkpoint = tiny_checkpoint();
    change(*checkpoint);
    return run_in_chunks(*Model::load(checkpoint, make_reference_executor({.n_threads = 1})),
                         tokens, 12);
  };
  const auto plain = logits_with([](Checkpoint&) {});
  const auto set = [](const char* key, const MetadataValue& value) {
    return [key, value](Checkpoint& checkpoint) { checkpoint.metadata.set(key, value); };
  };
  EXPECT_NE(logits_with(set("llama.rope.freq_base", metadata_value(500000.0))), plain);
  EXPECT_NE(logits_with(set("llama.rope.dimension_count", metadata_value(int64_t{8}))), plain);
  EXPECT_NE(logits_with(set("llama.rope.scaling.factor", metadata_value(4.0))), plain);
  EXPECT_NE(logits_with(set("llama.attention.layer_norm_rms_epsilon", metadata_value(1e-1))),
            plain);
  EXPECT_NE(logits_with([](Checkpoint& checkpoint) {
              add_made(checkpoint, "rope_freqs.weight", std::vector<float>(8, 8.0F));
            }),
            plain);
  for (const char* bias : {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
                           "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}) {
    EXPECT_NE(logits_with([&](Checkpoint& checkpoint) {
                const std::string name = bias;
                const int64_t size = name.starts_with("ffn_gate") || name.starts_with("ffn_up") ? 96
                                     : name.starts_with("attn_k") || name.starts_with("attn_v")
                                         ? 32
                                         : 64;
                std::vector<float> values;
                for (int64_t i = 0; i < size; ++i)
                  values.push_back(0.1F * static_cast<float>(i % 7));
                add_made(checkpoint, "blk.0." + name, values);
              }),
              plain)
        << bias;
  }
}

// Rotary tables begin at an angle of 0, so no pair can turn backwards.
TEST(LlamaSpec, RefusesDivisorsThatAreNegative) {
  const auto checkpoint = tiny_checkpoint();
  add_made(*checkpoint, "rope_freqs.weight", {1, 1, 1, 1, 1, 1, 1, -2});
  expect_error<FormatError>([&] { read_spec(*checkpoint); }, {"rope_freqs.weight: ", "frequency"});
}

// Interleaved and half-split files of one model give equal logits.
TEST(LlamaSpec, RowOrderOfQueriesAndKeysIsUndone) {
  const auto tokens = some_tokens(12, 50);
  TinyShape shape;
  shape.architecture = "qwen2";
  shape.biases = true;
  const auto half_split = tiny_checkpoint(shape);
  const auto interleaved = tiny_checkpoint(shape);
  Metadata renamed;
  for (const auto& [key, value] : interleaved->metadata.all()) {
    renamed.set(key.starts_with("qwen2.") ? "llama." + key.substr(6) : key, value);
  }
  renamed.set("general.architecture", metadata_value(std::string("llama")));
  interleaved->metadata = renamed;
  for (auto& [name, view] : interleaved->tensors) {
    if (name.find("attn_q.") == std::string::npos && name.find("attn_k.") == std::string::npos)
      continue;
    const std::vector<float> values = decode(view);
    const int64_t width = view.shape.rank() == 2 ? view.shape.cols() : 1;
    std::vector<float> permuted(values.size());
    for (int64_t row = 0; row < static_cast<int64_t>(values.size()) / width; ++row) {
      const int64_t from = half_split_row(row, 16, 16);
      std::copy_n(values.begin() + from * width, width, permuted.begin() + row * width);
    }
    interleaved->owned.push_back(std::make_shared<Tensor>(Tensor::of(view.shape, permuted)));
    view = interleaved->owned.back()->view();
  }
  EXPECT_EQ(run_in_chunks(*Model::load(interleaved, make_reference_executor({.n_threads = 1})),
                          tokens, 12),
            run_in_chunks(*Model::load(half_split, make_reference_executor({.n_threads = 1})),
                          tokens, 12));
}

}  // namespace
}  // namespace limpid
