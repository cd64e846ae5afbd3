// One order of addition: the logits of a token are the same bits for any number of threads, any
// chunking of the prompt, alone or among others, on every instruction set. Whole models on the cpu
// executor, compared with ==.
#include <gtest/gtest.h>

#include "executor/executors.h"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::run_in_chunks;

constexpr int64_t kVocabSize = 70;
constexpr int64_t kTokens = 530;  // more than one chunk of 512, and nine blocks of the KV cache

std::vector<int32_t> prompt(int64_t n, int64_t stride) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i)
    tokens.push_back(static_cast<int32_t>((i * stride + i / 7) % kVocabSize));
  return tokens;
}

struct Setting {
  DType dtype;
  DType kv_dtype;
  std::string_view architecture = "llama";
  const char* activation = "gelu_tanh";  // of GPT-2
};

std::shared_ptr<const Checkpoint> checkpoint_of(const Setting& setting) {
  const bool is_gpt2 = setting.architecture == "gpt2";
  testing::TinyShape shape = is_gpt2 ? testing::tiny_gpt2_shape() : testing::TinyShape{};
  shape.vocab_size = kVocabSize;
  shape.n_layers = 2;
  shape.n_heads = 6;
  shape.n_kv_heads = is_gpt2 ? 6 : 2;
  shape.d_model = 96;
  shape.biases = true;
  shape.dtype = setting.dtype;
  const auto checkpoint = testing::tiny_checkpoint(shape);
  if (is_gpt2) {
    checkpoint->metadata.set("gpt2.hidden_activation",
                             testing::metadata_value(std::string(setting.activation)));
  }
  return checkpoint;
}

std::unique_ptr<Model> load(const Setting& setting, int n_threads, std::string_view isa) {
  ExecutorOptions options;
  options.n_threads = n_threads;
  options.isa = isa;
  return Model::load(checkpoint_of(setting), make_cpu_executor(options));
}

class Invariance : public ::testing::TestWithParam<Setting> {
 protected:
  std::vector<float> expected() const {
    return run_in_chunks(*load(GetParam(), 1, ""), prompt(kTokens, 5), 512, GetParam().kv_dtype);
  }
};

TEST_P(Invariance, OverThreadsAndChunks) {
  const std::vector<float> bits = expected();
  for (const int n_threads : {1, 2, 3, 7}) {
    const auto model = load(GetParam(), n_threads, "");
    for (const size_t chunk : {1u, 7u, 64u, 512u}) {
      EXPECT_EQ(run_in_chunks(*model, prompt(kTokens, 5), chunk, GetParam().kv_dtype), bits)
          << n_threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(Invariance, OverInstructionSets) {
  const auto tokens = prompt(150, 5);
  const auto bits = run_in_chunks(*load(GetParam(), 2, "scalar"), tokens, 64, GetParam().kv_dtype);
  for (const std::string_view isa : available_isas()) {
    EXPECT_EQ(run_in_chunks(*load(GetParam(), 2, isa), tokens, 64, GetParam().kv_dtype), bits)
        << isa;
  }
}

// Three sequences advance at different paces in shared steps, one of them watched.
TEST_P(Invariance, AloneAndAmongOthers) {
  const auto tokens = prompt(200, 5);
  const auto alone = run_in_chunks(*load(GetParam(), 1, ""), tokens, 64, GetParam().kv_dtype);
  const auto model = load(GetParam(), 2, "");
  const auto cache = model->make_cache(2000, GetParam().kv_dtype, GetParam().kv_dtype);
  const SequenceId watched = cache->add_sequence();
  const SequenceId others[] = {cache->add_sequence(), cache->add_sequence()};
  const auto noise = prompt(400, 11);
  std::vector<float> among;
  for (size_t i = 0; i < tokens.size(); i += 5) {
    const std::vector<StepItem> items = {
        {others[0], std::span(noise).subspan(i, i % 3 + 1), StepItem::Outputs::kLast},
        {watched, std::span(tokens).subspan(i, 5), StepItem::Outputs::kAll},
        {others[1], std::span(noise).subspan(2 * i, 2), StepItem::Outputs::kNone}};
    const auto logits = model->step(*cache, items);
    among.insert(among.end(), logits.begin() + kVocabSize, logits.end());
  }
  EXPECT_EQ(among, alone);
}

INSTANTIATE_TEST_SUITE_P(
    Types, Invariance,
    ::testing::Values(Setting{DType::kF32, DType::kF32}, Setting{DType::kF16, DType::kF16},
                      Setting{DType::kBF16, DType::kF32}, Setting{DType::kQ8_0, DType::kF16},
                      Setting{DType::kQ4_0, DType::kF32}, Setting{DType::kQ4_1, DType::kF16},
                      Setting{DType::kQ5_1, DType::kF16}),
    [](const auto& info) { return std::string(dtype_info(info.param.dtype).name); });

INSTANTIATE_TEST_SUITE_P(Gpt2, Invariance,
                         ::testing::Values(Setting{DType::kF32, DType::kF32, "gpt2"},
                                           Setting{DType::kF16, DType::kF16, "gpt2", "gelu_erf"},
                                           Setting{DType::kQ8_0, DType::kF16, "gpt2", "gelu_erf"}),
                         [](const auto& info) {
                           return std::string(dtype_info(info.param.dtype).name);
                         });

}  // namespace
}  // namespace limpid
