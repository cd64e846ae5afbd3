// State dictionaries of nanoGPT and minGPT, old and new: the same model as in GGUF's names.
#include "layouts/state_dict.h"

#include <gtest/gtest.h>

#include <functional>

#include "executor/executors.h"
#include "expect_error.h"
#include "layouts/canonical.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::metadata_value;
using testing::run_in_chunks;
using testing::some_tokens;

constexpr int64_t kContext = 24;

testing::TinyShape shape_of_tests() {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.n_ctx = kContext;
  shape.tied = false;
  return shape;
}

std::vector<float> logits_of(Checkpoint checkpoint) {
  const auto canonical = std::make_shared<const Checkpoint>(to_canonical(std::move(checkpoint)));
  return run_in_chunks(*Model::load(canonical, make_reference_executor({.n_threads = 1})),
                       some_tokens(12, 50), 12);
}

// How a project calls a tensor of ours, and whether it keeps matrices as [in, out].
struct Style {
  const char* name;
  std::function<std::string(const std::string& part, int64_t block)> rename;
  bool is_transposed = false;
};

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string common_name(std::string part, const char* attn, const char* norm, const char* fc,
                        const char* proj) {
  part = replace(part, "attn_norm", std::string(norm) + "1");
  part = replace(part, "ffn_norm", std::string(norm) + "2");
  part = replace(part, "attn_qkv", "attn.c_attn");
  part = replace(part, "attn_output", attn);
  part = replace(part, "ffn_up", fc);
  return replace(part, "ffn_down", proj);
}

std::string in_transformer(const std::string& part, int64_t block) {
  if (block >= 0) {
    return "transformer.h." + std::to_string(block) + "." +
           common_name(part, "attn.c_proj", "ln_", "mlp.c_fc", "mlp.c_proj");
  }
  if (part == "token_embd.weight") return "transformer.wte.weight";
  if (part == "position_embd.weight") return "transformer.wpe.weight";
  return part == "output.weight" ? "lm_head.weight"
                                 : "transformer." + replace(part, "output_norm", "ln_f");
}

std::string in_blocks(const std::string& part, int64_t block) {
  if (block >= 0) {
    return "blocks." + std::to_string(block) + "." +
           common_name(part, "attn.c_proj", "ln_", "mlp.c_fc", "mlp.c_proj");
  }
  if (part == "token_embd.weight") return "tok_emb.weight";
  if (part == "position_embd.weight") return "pos_emb.weight";
  return part == "output.weight" ? "head.weight" : replace(part, "output_norm", "ln_f");
}

const std::vector<Style>& styles() {
  static const std::vector<Style> styles = {
      {"nanoGPT", in_transformer},
      {"compiled", [](const std::string& part,
                      int64_t block) { return "_orig_mod." + in_transformer(part, block); }},
      {"distributed", [](const std::string& part,
                         int64_t block) { return "module." + in_transformer(part, block); }},
      {"blocks", in_blocks},
      {"Conv1D", in_transformer, true},
      {"Conv1D without prefix",
       [](const std::string& part, int64_t block) {
         return replace(in_transformer(part, block), "transformer.", "");
       },
       true},
  };
  return styles;
}

Tensor transposed(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.shape.n_elements()));
  for (int64_t r = 0; r < view.shape[0]; ++r) {
    for (int64_t c = 0; c < view.shape[1]; ++c)
      values[c * view.shape[0] + r] = view.f32()[r * view.shape[1] + c];
  }
  return Tensor::of(Shape{view.shape[1], view.shape[0]}, values);
}

void add(Checkpoint& checkpoint, const std::string& name, Tensor tensor) {
  checkpoint.owned.push_back(std::make_shared<Tensor>(std::move(tensor)));
  checkpoint.tensors[name] = checkpoint.owned.back()->view();
  checkpoint.tensor_order.push_back(name);
}

Checkpoint state_dict(const Style& style, const testing::TinyShape& shape = shape_of_tests()) {
  const auto canonical = testing::tiny_checkpoint(shape);
  Checkpoint result;
  result.path = "ckpt.pt";
  result.format = "torch";
  result.naming = Naming::kStateDict;
  result.owned = canonical->owned;
  for (const std::string& name : canonical->tensor_order) {
    const bool in_block = name.starts_with("blk.");
    const std::string part = in_block ? name.substr(6) : name;
    const std::string theirs = style.rename(part, in_block ? name[4] - '0' : -1);
    const TensorView& view = *canonical->find(name);
    if (style.is_transposed && in_block && view.shape.rank() == 2) {
      add(result, theirs, transposed(view));
    } else {
      result.tensors[theirs] = view;
      result.tensor_order.push_back(theirs);
    }
  }
  return result;
}

void say(Checkpoint& checkpoint, const char* prefix) {
  const std::string at(prefix);
  checkpoint.metadata.set(at + "n_head", metadata_value(int64_t{4}));
  checkpoint.metadata.set(at + "activation_function", metadata_value(std::string("gelu_new")));
}

std::vector<float> expected() { return logits_of(*testing::tiny_checkpoint(shape_of_tests())); }

TEST(StateDict, OfEveryStyleIsTheSameModel) {
  const auto bits = expected();
  for (const Style& style : styles()) {
    Checkpoint checkpoint = state_dict(style);
    say(checkpoint, "given.");
    EXPECT_EQ(logits_of(checkpoint), bits) << style.name;
  }
}

TEST(StateDict, OfMinGptOf2020HasItsPartsApart) {
  Checkpoint checkpoint = state_dict({"", in_blocks});
  Checkpoint old = checkpoint;
  old.tensors.clear();
  old.tensor_order.clear();
  for (const auto& [name, view] : checkpoint.tensors) {
    std::string theirs = name;
    for (const auto& [from, to] : {std::pair{"ln_1", "ln1"},
                                   {"ln_2", "ln2"},
                                   {"attn.c_proj", "attn.proj"},
                                   {"mlp.c_fc", "mlp.0"},
                                   {"mlp.c_proj", "mlp.2"},
                                   {"pos_emb.weight", "pos_emb"}}) {
      theirs = replace(theirs, from, to);
    }
    if (name.find("c_attn") != std::string::npos) {
      const char* parts[] = {"query", "key", "value"};
      for (int64_t i = 0; i < 3; ++i) {
        TensorView rows = view;
        rows.shape = view.shape.rank() == 1 ? Shape{64} : Shape{64, 64};
        rows.data += static_cast<uint64_t>(i) * rows.n_bytes();
        old.tensors[replace(theirs, "c_attn", parts[i])] = rows;
      }
      continue;
    }
    old.tensors[theirs] = view;
    if (theirs == "pos_emb") old.tensors[theirs].shape = Shape{1, kContext, 64};
  }
  for (const auto& [name, view] : old.tensors) old.tensor_order.push_back(name);
  say(old, "given.");
  EXPECT_EQ(logits_of(old), expected());
}

TEST(StateDict, TakesTheFilesOwnWords) {
  const auto bits = expected();
  for (const char* container : {"state.model_args.", "state.config.", "state."}) {
    Checkpoint checkpoint = state_dict(styles()[0]);
    say(checkpoint, container);
    checkpoint.metadata.set(std::string(container) + "learning_rate", metadata_value(6e-4));
    EXPECT_EQ(logits_of(checkpoint), bits) << container;
  }
  // What the user says goes first.
  Checkpoint checkpoint = state_dict(styles()[0]);
  say(checkpoint, "state.config.");
  checkpoint.metadata.set("given.n_head", metadata_value(int64_t{8}));
  EXPECT_NE(logits_of(checkpoint), bits);
}

TEST(StateDict, SaysWhatItCannotKnowAndHowToGiveIt) {
  const auto message = [](const Checkpoint& checkpoint) -> std::string {
    try {
      to_canonical(checkpoint);
      return "";
    } catch (const UnsupportedError& error) {
      return error.what();
    }
  };
  Checkpoint checkpoint = state_dict(styles()[0]);
  EXPECT_NE(message(checkpoint).find("OpenOptions::config"), std::string::npos)
      << message(checkpoint);
  EXPECT_NE(message(checkpoint).find("n_head"), std::string::npos) << message(checkpoint);
  checkpoint.metadata.set("given.n_head", metadata_value(int64_t{4}));
  EXPECT_NE(message(checkpoint).find("OpenOptions::config"), std::string::npos)
      << message(checkpoint);
  EXPECT_NE(message(checkpoint).find("gelu"), std::string::npos) << message(checkpoint);
}

TEST(StateDict, MaskBuffersAreLeftWhateverTheirType) {
  const auto bits = expected();
  for (const DType dtype : {DType::kF32, DType::kU8, DType::kBool, DType::kF64, DType::kI64}) {
    for (const Style& style : styles()) {
      Checkpoint checkpoint = state_dict(style);
      say(checkpoint, "given.");
      const std::string attn = replace(style.rename("attn_output.weight", 1), "c_proj.weight", "");
      add(checkpoint, attn + "bias", Tensor(dtype, Shape{1, 1, kContext, kContext}));
      if (style.is_transposed) add(checkpoint, attn + "masked_bias", Tensor(dtype, Shape{}));
      EXPECT_EQ(logits_of(checkpoint), bits) << style.name << " " << dtype_info(dtype).name;
      EXPECT_EQ(to_canonical(checkpoint).unused_tensors.size(), style.is_transposed ? 2U : 1U);
    }
  }
}

TEST(StateDict, AMaskOfAnotherShapeIsNotKnown) {
  for (const Shape& shape : {Shape{64}, Shape{192}, Shape{kContext, kContext},
                             Shape{1, 1, kContext, kContext - 1}, Shape{1, 4, 8, 8}}) {
    Checkpoint checkpoint = state_dict(styles()[0]);
    say(checkpoint, "given.");
    add(checkpoint, "transformer.h.0.attn.bias", Tensor(DType::kF32, shape));
    EXPECT_THROW(to_canonical(checkpoint), UnsupportedError) << shape.to_string();
  }
}

TEST(StateDict, AHeadInTheEmbeddingsBytesIsTied) {
  testing::TinyShape shape = shape_of_tests();
  shape.tied = true;
  Checkpoint checkpoint = state_dict(styles()[0], shape);
  say(checkpoint, "given.");
  const auto bits = logits_of(checkpoint);
  checkpoint.tensors["lm_head.weight"] = *checkpoint.find("transformer.wte.weight");
  checkpoint.tensor_order.emplace_back("lm_head.weight");
  EXPECT_EQ(logits_of(checkpoint), bits);
  const Checkpoint canonical = to_canonical(checkpoint);
  EXPECT_TRUE(read_spec(canonical).tied_embeddings);
  EXPECT_EQ(canonical.unused_tensors.size(), 1U);
}

TEST(StateDict, SourcesThatDifferAreAnError) {
  for (const char* prefix : {"given.", "state.model_args."}) {
    for (const char* key : {"n_layer", "n_embd", "block_size", "vocab_size", "n_inner"}) {
      Checkpoint checkpoint = state_dict(styles()[0]);
      say(checkpoint, prefix);
      checkpoint.metadata.set(std::string(prefix) + key, metadata_value(int64_t{7}));
      expect_error<FormatError>([&] { to_canonical(checkpoint); },
                                {fmt::format(": {}: is 7 in ", key)});
    }
  }
  Checkpoint checkpoint = state_dict(styles()[0]);
  say(checkpoint, "given.");
  checkpoint.metadata.set("given.bias", metadata_value(false));
  EXPECT_THROW(to_canonical(checkpoint), FormatError);
}

TEST(StateDict, RefusesWhatTheUserSaysAndItDoesNotKnow) {
  for (const char* key : {"n_heads", "rope_theta", "activation"}) {
    Checkpoint checkpoint = state_dict(styles()[0]);
    say(checkpoint, "given.");
    checkpoint.metadata.set(std::string("given.") + key, metadata_value(int64_t{4}));
    expect_error<UnsupportedError>([&] { to_canonical(checkpoint); },
                                   {fmt::format("OpenOptions::config: unknown key {}", key)});
  }
  Checkpoint strange = state_dict(styles()[0]);
  strange.tensors.erase("transformer.wpe.weight");
  std::erase(strange.tensor_order, "transformer.wpe.weight");
  EXPECT_THROW(to_canonical(strange), UnsupportedError);
}

TEST(StateDict, TheFilesOwnEpsilonAndScaleCount) {
  const auto with = [](const std::string& prefix) {
    Checkpoint checkpoint = state_dict(styles()[0]);
    say(checkpoint, prefix.c_str());
    checkpoint.metadata.set(prefix + "layer_norm_epsilon", metadata_value(0.5));
    checkpoint.metadata.set(prefix + "scale_attn_by_inverse_layer_idx", metadata_value(true));
    return logits_of(checkpoint);
  };
  EXPECT_EQ(with("state.config."), with("given."));
  EXPECT_NE(with("state.config."), expected());
}

}  // namespace
}  // namespace limpid
