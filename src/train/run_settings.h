// The settings of a run of training, as the user states them. A run keeps its settings in its
// folder, so that it can be resumed without repeating them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/trainer.h"

namespace limpid {

struct RunSettings {
  // What learns: an existing model (`model`), or a new model of a configuration.
  std::string model;
  std::string config;     // a name (configuration_names, or one of ours) or a config.json
  std::string tokenizer;  // a file or folder, "bytes" or "chars"; "": the model's own
  std::vector<std::string> data;
  std::string val = "0.1";  // a file, or a share of the data
  int64_t steps = 1000;
  int64_t batch_size = 12;
  int64_t seq_len = 0;  // 0: the model's positions, 1,024 at most
  int64_t grad_accum = 1;
  double lr = 3e-4;
  double min_lr = 0;
  int64_t warmup = 0;
  std::string schedule = "cosine";
  std::string optimizer = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double weight_decay = 0.1;
  double clip = 1.0;
  double dropout = 0;
  std::string dtype = "f32";
  std::string checkpoint_activations = "off";
  int64_t lora = 0;  // rank of an adapter that learns instead of the model; 0: none
  double lora_alpha = 16;
  std::string lora_targets;  // names of PEFT's modules; "": see new_adapter.h
  std::string freeze;        // parts of names between commas: tensors that do not learn
  int64_t seed = 1337;
  int64_t eval_every = 250;    // 0: at the end only
  int64_t eval_windows = 0;    // 0: all of the held-out data
  int64_t sample_every = 250;  // 0: no samples
  int64_t sample_tokens = 128;
  double sample_temp = 0.8;
  std::string sample_prompt;  // "": as a document begins
  int64_t save_every = 250;   // 0: at the end only
  int64_t keep = 2;           // checkpoints

  // Calls visit(name, member, placeholder, help) for each member; for a number with a least value,
  // calls visit(name, member, placeholder, help, least).
  template <typename Settings, typename Visit>
  static void for_each(Settings& s, Visit&& visit);

  // JSON with a key for each member.
  std::string to_json() const;
  // Throws FormatError with `path`.
  static RunSettings from_json(const std::string& text, const std::string& path);

  // Throws ArgumentError for values that contradict each other or are out of range.
  void check() const;
  // Returns the options for `model`. Throws ArgumentError, UnsupportedError for settings that do
  // not fit it.
  TrainingOptions training_options(const Checkpoint& model, int n_threads) const;
};

// Whether RunSettings::tokenizer is the name of a tokenizer that the run makes, and not a file.
constexpr bool is_made_tokenizer(std::string_view name) {
  return name == "bytes" || name == "chars";
}

// Returns the names of the settings that a run may change when it goes on. Its checkpoints and its
// position in the data depend on all others.
std::span<const std::string_view> changeable_settings();

// The name of settings that are ready to use, and the settings. Throws ArgumentError for another
// name.
inline constexpr std::string_view kRunPreset = "shakespeare-char";
RunSettings run_preset(std::string_view name);

template <typename Settings, typename Visit>
void RunSettings::for_each(Settings& s, Visit&& visit) {
  visit("model", s.model, "MODEL", "the model that goes on learning");
  visit("config", s.config, "NAME|FILE", "a new model: a name, or a config.json");
  visit("tokenizer", s.tokenizer, "FILE|bytes|chars",
        "the tokenizer, if none lies beside the config or the model");
  visit("data", s.data, "FILE...", "texts to learn from");
  visit("val", s.val, "FILE|SHARE",
        "held-out text, or the share of the data that is held out (0.1)");
  visit("steps", s.steps, "N", "updates of the weights (1000)", 0);
  visit("batch-size", s.batch_size, "N", "sequences in a step (12)", 1);
  visit("seq-len", s.seq_len, "N",
        "tokens of a sequence (default: the model's positions, at most 1024)", 0);
  visit("grad-accum", s.grad_accum, "N", "batches whose gradients make one step (1)", 1);
  visit("lr", s.lr, "X", "the largest learning rate (3e-4)", 0);
  visit("min-lr", s.min_lr, "X", "the learning rate at the end (0)", 0);
  visit("warmup", s.warmup, "N", "steps in which the learning rate rises (0)", 0);
  visit("schedule", s.schedule, "NAME", "constant, linear, cosine or wsd (cosine)");
  visit("optimizer", s.optimizer, "NAME",
        "adamw, muon (matrices; the others by adamw) or sgd (adamw)");
  visit("beta1", s.beta1, "X", "decay of the mean of gradients; the momentum of sgd (0.9)");
  visit("beta2", s.beta2, "X", "decay of the mean of their squares (0.95)");
  visit("weight-decay", s.weight_decay, "X",
        "weight decay of matrices; norms and biases have none (0.1)", 0);
  visit("clip", s.clip, "X", "largest norm of the gradient; 0: no limit (1)", 0);
  visit("dropout", s.dropout, "X",
        "share of activations set to zero at random in a step; GPT-2 only (0)");
  visit("dtype", s.dtype, "f32|bf16|f16",
        "type of matrix products and kept activations; weights and gradients stay f32 (f32)");
  visit("checkpoint-activations", s.checkpoint_activations, "on|off",
        "less memory: compute activations again in the backward pass (off)");
  visit("lora", s.lora, "RANK", "train a low-rank adapter instead of the model; 0: no (0)", 0);
  visit("lora-alpha", s.lora_alpha, "X", "the adapter's scale is X / RANK (16)");
  visit("lora-targets", s.lora_targets, "LIST",
        "modules that the adapter changes, or all-linear (q_proj,v_proj; c_attn)");
  visit("freeze", s.freeze, "LIST",
        "tensors whose name contains one of these do not learn, such as token_embd,blk.0.");
  visit("seed", s.seed, "N", "seed of all random numbers (1337)", 0);
  visit("eval-every", s.eval_every, "N", "steps between held-out losses; 0: at the end only (250)",
        0);
  visit("eval-windows", s.eval_windows, "N", "held-out sequences; 0: all (0)", 0);
  visit("sample-every", s.sample_every, "N",
        "steps between samples of the model's text; 0: none (250)", 0);
  visit("sample-tokens", s.sample_tokens, "N", "tokens of a sample (128)", 1);
  visit("sample-temp", s.sample_temp, "X", "the temperature of samples; 0: greedy (0.8)", 0);
  visit("sample-prompt", s.sample_prompt, "TEXT",
        "text that samples continue (default: a new document)");
  visit("save-every", s.save_every, "N", "steps between checkpoints; 0: at the end only (250)", 0);
  visit("keep", s.keep, "N", "checkpoints that are kept (2)", 1);
}

}  // namespace limpid
