// Flags that several subcommands share, and the values that follow from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "limpid/generation.hpp"
#include "limpid/model.hpp"

namespace limpid::cli {

// Which model, and how it is opened.
struct ModelFlags {
  std::string model;
  std::string repository;       // "ORGANISATION/MODEL[:TYPE]" of the hub, instead of `model`
  std::string repository_file;  // the .gguf of it
  bool is_offline = false;      // the repository is not fetched
  OpenOptions options{.n_batch = 2048};
  int64_t n_ubatch = 0;  // 0: 512, or 2,048 on a GPU, which a step of fewer tokens does not fill
  int64_t n_threads_batch = 0;
  bool verbose = false;

  // The same flags for another model.
  [[nodiscard]] ModelFlags with_model(std::string other) const;
};

// -m, -hf and --tokenizer, for a command that needs no weights.
void declare_model_path(CLI::App& app, ModelFlags& values);
// --config, --rope-scaling
void declare_overrides(CLI::App& app, ModelFlags& values);
void declare_threads(CLI::App& app, ModelFlags& values, std::string_view env = {});
inline constexpr std::string_view kContextDefault = "the model's own, or as much as memory allows";
// All of ModelFlags. `n_ctx_default` says in words what -c is by default.
void declare_model(CLI::App& app, ModelFlags& values,
                   std::string_view n_ctx_default = kContextDefault);
// The same for a command whose KV cache is always f32: without -ctk and -ctv.
void declare_model_with_f32_cache(CLI::App& app, ModelFlags& values);
// As declare_model, for a command that takes several models, into `models` instead of
// ModelFlags::model.
void declare_models(CLI::App& app, ModelFlags& values, std::vector<std::string>& models);
// With the bounds that one option sets to another. Throws ArgumentError.
OpenOptions to_open_options(const ModelFlags& values);

// How a continuation is made.
struct GenerationFlags {
  GenerationOptions options;
  std::vector<std::string> given_settings;  // of sampler_settings.h, by name
};

// -n, --temp, --top-k and the rest.
void declare_generation(CLI::App& app, GenerationFlags& values);

// Whole numbers between commas, blanks or the brackets of a JSON array. `what` is named by the
// ArgumentError.
std::vector<int64_t> parse_integers(std::string_view text, std::string_view what);
std::vector<TokenId> parse_token_ids(std::string_view text, std::string_view what);
// One of --positions, of which negative ones count from the end. Throws ArgumentError.
int64_t absolute_position(int64_t position, int64_t n_tokens);
// The characters that \n, \t, \r, \\, \", \' and \xHH mean, in place of these escapes.
std::string unescape(std::string_view text);

}  // namespace limpid::cli
