// GPT-2: what its keys and tensors change, and what is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "executor/executors.h"
#include "expect_error.h"
#include "export/completed.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::metadata_value;
using testing::run_in_chunks;
using testing::some_tokens;
using testing::tiny_checkpoint;
using testing::tiny_gpt2_shape;

using Change = std::function<void(Checkpoint&)>;

std::vector<float> logits_with(const Change& change, const char* executor = "reference") {
  const auto checkpoint = tiny_checkpoint(tiny_gpt2_shape());
  change(*checkpoint);
  return run_in_chunks(*Model::load(checkpoint, make_executor(executor, {.n_threads = 1})),
                       some_tokens(12, 50), 12);
}

// The rows [begin, begin + n) of a tensor as one of its own.
void split_off(Checkpoint& checkpoint, const std::string& from, int64_t begin, int64_t n,
               const std::string& name) {
  TensorView part = *checkpoint.find(from);
  const bool is_vector = part.shape.rank() == 1;
  part.data += static_cast<uint64_t>(begin) * (is_vector ? sizeof(float) : part.row_bytes());
  part.shape = is_vector ? Shape{n} : Shape{n, part.shape.cols()};
  checkpoint.tensors[name] = part;
}

// Q, K and V of both blocks as matrices of their own.
void split_qkv(Checkpoint& checkpoint) {
  for (const char* block : {"blk.0.", "blk.1."}) {
    for (const char* kind : {".weight", ".bias"}) {
      const std::string fused = std::string(block) + "attn_qkv" + kind;
      if (checkpoint.find(fused) == nullptr) continue;
      split_off(checkpoint, fused, 0, 64, std::string(block) + "attn_q" + kind);
      split_off(checkpoint, fused, 64, 64, std::string(block) + "attn_k" + kind);
      split_off(checkpoint, fused, 128, 64, std::string(block) + "attn_v" + kind);
      checkpoint.tensors.erase(fused);
    }
  }
}

TEST(Gpt2, FusedAndSeparateProjectionsAreOneModel) {
  for (const char* executor : {"reference", "cpu"}) {
    EXPECT_EQ(logits_with(split_qkv, executor), logits_with([](Checkpoint&) {}, executor))
        << executor;
  }
}

// What other programs require does not exist in a model with microgpt's norms: neither a fused
// matrix nor biases, and the norm is the first one.
TEST(Gpt2, IsNotCompletedWithTheNormsOfMicrogpt) {
  testing::TinyShape shape = tiny_gpt2_shape();
  shape.biases = false;
  for (const bool norm_comes_first : {false, true}) {
    const auto checkpoint = tiny_checkpoint(shape);
    split_qkv(*checkpoint);
    checkpoint->metadata.set("gpt2.norm", metadata_value(std::string("rms")));
    if (norm_comes_first) {
      checkpoint->metadata.set("gpt2.outer_norm", metadata_value(std::string("embedding")));
      checkpoint->tensors["token_embd_norm.weight"] = *checkpoint->find("output_norm.weight");
      checkpoint->tensors.erase("output_norm.weight");
    }
    checkpoint->tensor_order.clear();
    for (const auto& [name, tensor] : checkpoint->tensors) checkpoint->tensor_order.push_back(name);
    const Checkpoint whole = completed(*checkpoint);
    EXPECT_EQ(whole.tensor_order, checkpoint->tensor_order);
    const auto executor = make_reference_executor({.n_threads = 1});
    EXPECT_NO_THROW(load_weights(whole, read_spec(whole), *executor));
  }
}

TEST(Gpt2, RowsOfAFusedMatrixAreViews) {
  testing::TinyShape shape = tiny_gpt2_shape();
  shape.dtype = DType::kQ8_0;
  const auto checkpoint = tiny_checkpoint(shape);
  const auto executor = make_reference_executor({.n_threads = 1});
  const DecoderWeights weights = load_weights(*checkpoint, read_spec(*checkpoint), *executor);
  EXPECT_TRUE(weights.derived.empty());
  EXPECT_EQ(weights.blocks[1].wq.rows, 64);
  EXPECT_EQ(weights.blocks[1].wv.cols, 64);
  EXPECT_EQ(weights.blocks[1].bk.cols, 64);
}

TEST(Gpt2, ATensorThatIsMadeIsMadeOnce) {
  const auto checkpoint = tiny_checkpoint(tiny_gpt2_shape());
  const TensorView stored = *checkpoint->find("blk.0.attn_qkv.weight");
  int n_made = 0;
  checkpoint->tensors["blk.0.attn_qkv.weight"].data = nullptr;
  checkpoint->derived["blk.0.attn_qkv.weight"] = {
      "copied", [&] {
        ++n_made;
        return Tensor::of(stored.shape,
                          std::span(stored.f32(), static_cast<size_t>(stored.shape.n_elements())));
      }};
  const auto model = Model::load(checkpoint, make_reference_executor({.n_threads = 1}));
  EXPECT_EQ(n_made, 1);
  EXPECT_EQ(run_in_chunks(*model, some_tokens(12, 50), 12), logits_with([](Checkpoint&) {}));
}

TEST(Gpt2, HeedsWhatItImplements) {
  const auto plain = logits_with([](Checkpoint&) {});
  const auto set = [](const char* key, const MetadataValue& value) -> Change {
    return [key, value](Checkpoint& checkpoint) { checkpoint.metadata.set(key, value); };
  };
  EXPECT_TRUE(std::isfinite(plain.back()));
  EXPECT_EQ(logits_with(set("gpt2.hidden_activation", metadata_value(std::string("gelu_tanh")))),
            plain);
  EXPECT_EQ(logits_with(set("gpt2.attention.scale", metadata_value(0.25))), plain);  // head_dim 16
  for (const char* activation : {"gelu_erf", "relu", "silu"}) {
    EXPECT_NE(logits_with(set("gpt2.hidden_activation", metadata_value(std::string(activation)))),
              plain)
        << activation;
  }
  EXPECT_NE(logits_with(set("gpt2.attention.scale", metadata_value(1.0))), plain);
  EXPECT_NE(logits_with(set("gpt2.attention.scale_by_inverse_layer", metadata_value(true))), plain);
  EXPECT_NE(logits_with(set("gpt2.attention.layer_norm_epsilon", metadata_value(1e-1))), plain);
  EXPECT_NE(logits_with(set("gpt2.attention.head_count", metadata_value(int64_t{8}))), plain);
}

TEST(Gpt2, RunsWithoutBiases) {
  testing::TinyShape shape = tiny_gpt2_shape();
  shape.biases = false;
  const auto model = Model::load(tiny_checkpoint(shape), make_reference_executor({.n_threads = 1}));
  const auto logits = run_in_chunks(*model, some_tokens(12, 50), 12);
  EXPECT_TRUE(std::isfinite(logits.back()));
  EXPECT_NE(logits, logits_with([](Checkpoint&) {}));
}

TEST(Gpt2, NamesABiasThatIsMissingAmongOthers) {
  for (const char* name : {"blk.1.attn_qkv.bias", "blk.0.ffn_up.bias", "blk.1.attn_norm.bias"}) {
    const auto checkpoint = tiny_checkpoint(tiny_gpt2_shape());
    checkpoint->tensors.erase(name);
    const auto executor = make_reference_executor({.n_threads = 1});
    expect_error<FormatError>([&] { load_weights(*checkpoint, read_spec(*checkpoint), *executor); },
                              {name});
  }
  const auto checkpoint = tiny_checkpoint(tiny_gpt2_shape());
  checkpoint->tensors.erase("output_norm.bias");  // then the others are tensors of no known use
  const auto executor = make_reference_executor({.n_threads = 1});
  EXPECT_THROW(load_weights(*checkpoint, read_spec(*checkpoint), *executor), UnsupportedError);
}

TEST(Gpt2, HasNoPositionsBeyondThoseItLearned) {
  const auto executor = [] { return make_reference_executor({.n_threads = 1}); };
  testing::TinyShape shape = tiny_gpt2_shape();
  shape.n_ctx = 16;
  expect_error<ArgumentError>(
      [&] { Model::load(tiny_checkpoint(shape), executor(), {.n_ctx = 17}); }, {"17", "16"});
  const auto model = Model::load(tiny_checkpoint(shape), executor());
  EXPECT_EQ(run_in_chunks(*model, some_tokens(16, 50), 5).size(), 16U * 50U);
  const auto cache = model->make_cache(64, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  const auto tokens = some_tokens(17, 50);
  const StepItem item{sequence, tokens, StepItem::Outputs::kLast};
  EXPECT_THROW(model->step(*cache, {&item, 1}), ContextOverflowError);
}

struct Flip {
  const char* key;
  MetadataValue value;
};

class Gpt2RefusedKey : public ::testing::TestWithParam<Flip> {};

TEST_P(Gpt2RefusedKey, IsNamed) {
  const auto checkpoint = tiny_checkpoint(tiny_gpt2_shape());
  checkpoint->metadata.set(GetParam().key, GetParam().value);
  const std::string key = GetParam().key;
  const auto load = [&] {
    const DecoderSpec spec = read_spec(*checkpoint);
    load_weights(*checkpoint, spec, *make_reference_executor({.n_threads = 1}));
  };
  expect_error<Error>(
      load, {key == "gpt2.context_length" ? "position_embd" : key.substr(key.find('.') + 1)});
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Gpt2RefusedKey,
    ::testing::Values(Flip{"gpt2.hidden_activation", metadata_value(std::string("quick_gelu"))},
                      Flip{"gpt2.norm", metadata_value(std::string("batch"))},
                      Flip{"gpt2.outer_norm", metadata_value(std::string("none"))},
                      Flip{"gpt2.attention.scale", metadata_value(0.0)},
                      Flip{"gpt2.attention.head_count", metadata_value(int64_t{5})},
                      Flip{"gpt2.attention.head_count", metadata_value(int64_t{0})},
                      Flip{"gpt2.attention.head_count_kv", metadata_value(int64_t{2})},
                      Flip{"gpt2.attention.layer_norm_epsilon", metadata_value(-1e-5)},
                      Flip{"gpt2.attention.sliding_window", metadata_value(int64_t{16})},
                      Flip{"gpt2.attention.causal", metadata_value(false)},
                      Flip{"gpt2.use_parallel_residual", metadata_value(true)},
                      Flip{"gpt2.rope.freq_base", metadata_value(10000.0)},
                      Flip{"gpt2.vocab_size", metadata_value(int64_t{51})},
                      Flip{"gpt2.context_length", metadata_value(int64_t{512})},
                      Flip{"gpt2.block_count", metadata_value(int64_t{0})}));

}  // namespace
}  // namespace limpid
