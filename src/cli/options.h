// Flags that several subcommands share, and what they become.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "limpid/generation.hpp"
#include "limpid/model.hpp"
#include "tensor/dtype.h"

namespace limpid::cli {

// How a model is opened.
struct ModelFlags {
  std::string model;
  std::string repository;       // "ORGANISATION/MODEL[:TYPE]" of the hub, instead of `model`
  std::string repository_file;  // the .gguf of it
  std::string tokenizer;        // another than the model's own
  std::string config;           // hyper-parameters of a bare state dictionary
  std::string rope_scaling;     // another than the model's own
  int64_t n_ctx = 0;
  int64_t n_batch = 2048;
  int64_t n_ubatch = 512;
  int64_t n_threads = 0;
  int64_t n_threads_batch = 0;
  std::string executor = "cpu";
  std::string cache_type_k = "f16";
  std::string cache_type_v = "f16";
  std::string quantize;
  bool verbose = false;
};

// -m alone, for what needs no weights.
void declare_model_path(Flags& flags, ModelFlags& values);
// --config, --rope-scaling
void declare_overrides(Flags& flags, ModelFlags& values);
// All of ModelFlags. `n_ctx_default` says in words what -c is where nobody gives it.
void declare_model(Flags& flags, ModelFlags& values,
                   std::string_view n_ctx_default = "the model's own, or what memory allows of it");
// Checks ranges; throws ArgumentError.
OpenOptions to_open_options(const ModelFlags& values);

// How a continuation is made.
struct GenerationFlags {
  int64_t n_predict = GenerationOptions::kUnlimited;
  int64_t seed = -1;
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  double typical_p = 1.0;
  double top_n_sigma = -1.0;
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  int64_t repeat_last_n = 64;
  double repeat_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::vector<std::string> logit_bias;  // "ID+BIAS"
  std::string samplers;                 // order; "": the default
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool context_shift = false;
  int64_t n_keep = 0;
  bool show_special = false;
};

// -n, --temp, --top-k and the rest, into `values`.
void declare_generation(Flags& flags, GenerationFlags& values);
// Throws ArgumentError.
GenerationOptions to_generation_options(const GenerationFlags& values);

// Whole numbers between commas, blanks or the brackets of a JSON array. `what` is named by the
// ArgumentError.
std::vector<int64_t> parse_integers(std::string_view text, std::string_view what);
std::vector<TokenId> parse_token_ids(std::string_view text, std::string_view what);
// \n \t \r \\ \" \' and \xHH become what they stand for.
std::string unescape(std::string_view text);

}  // namespace limpid::cli
