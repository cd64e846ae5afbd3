// Options that several commands share. A value on the command line takes precedence over one in the
// environment (LLAMA_ARG_…, llama.cpp's names), and that over the default in the struct.
//
// The values go into the structs of the library (OpenOptions, GenerationOptions), so the library's
// defaults are also the program's. ModelFlags adds only what the library does not have.
#include "cli/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/checked.h"
#include "base/text.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "cli/sampler_settings.h"
#include "generate/engine.h"
#include "layouts/lora_adapter.h"
#include "quantize/file_type.h"
#include "train/run_folder.h"

namespace limpid::cli {
namespace {

constexpr std::array<std::string_view, 4> kDevices = {"cpu", "opencl", "cuda", "reference"};

// Reads "15043+1.5" or "15043-inf": an id, a sign, and a number. Returns the problem, or "".
std::string read_bias(const std::string& text, std::vector<LogitBias>& biases) {
  const size_t sign = std::min(text.find_first_of("+-"), text.size());
  const std::string size = text.substr(std::min(sign + 1, text.size()));
  LogitBias bias{0, std::numeric_limits<float>::infinity()};
  const bool readable = read_value(text.substr(0, sign), {}, bias.id).empty() &&
                        (size == "inf" || read_value(size, {}, bias.bias).empty());
  if (!readable)
    return fmt::format("'{}' is not a token id, a sign and a number, as in 15043+1.5 or 15043-inf",
                       text);
  if (text[sign] == '-') bias.bias = -bias.bias;
  biases.push_back(bias);
  return "";
}

std::string read_generator(const std::string& text, RandomNumbers& value) {
  if (text != "philox" && text != "mt19937")
    return fmt::format("'{}' is neither philox nor mt19937", text);
  value = text == "philox" ? RandomNumbers::kPhilox : RandomNumbers::kMersenneTwister;
  return "";
}

// Names the option in the error of the library, which refuses its value.
void check_value(std::string_view option, const std::function<void()>& check) {
  try {
    check();
  } catch (const ArgumentError& error) {
    throw ArgumentError(fmt::format("{}: {}", option, error.what()));
  }
}

// Reads "a:0.5,b:2" into the form of --lora: "a=0.5", "b=2". Returns the problem, or "".
std::string read_scaled_adapters(std::string_view list, std::vector<std::string>& adapters) {
  for (const std::string& entry : split_full_list(list, "--lora-scaled")) {
    const size_t colon = std::min(entry.rfind(':'), entry.size());
    const std::string scale = entry.substr(std::min(colon + 1, entry.size()));
    double number = 0;
    if (colon == 0 || !read_value(scale, {}, number).empty())
      return fmt::format("'{}' is not an adapter's folder, a colon and a number, as in poet:0.5",
                         entry);
    adapters.push_back(entry.substr(0, colon) + "=" + scale);
  }
  return "";
}

// Reads "auto", "all" or a number. Returns the problem, or "".
std::string read_gpu_layers(const std::string& text, int64_t& n_layers) {
  if (text == "auto" || text == "-1") {
    n_layers = OpenOptions::kLayersThatFit;
  } else if (text == "all") {
    n_layers = std::numeric_limits<int64_t>::max();
  } else if (!read_value(text, {.least = 0}, n_layers).empty()) {
    return fmt::format("'{}' is not a number of layers, all or auto", text);
  }
  return "";
}

// -m sets `model`: one name, or several.
template <typename Model>
void declare_sources(CLI::App& app, ModelFlags& values, Model& model, std::string help) {
  constexpr bool kTakesOne = std::is_same_v<Model, std::string>;
  group(app, "model");
  add_choice(app, kTakesOne ? "-m,--model,model FILE" : "-m,--model,model FILE...", model,
             short_names(), std::move(help), "LLAMA_ARG_MODEL");
  CLI::Option* repository = add_list(
      app, "-hf,-hfr,--hf-repo REPO",
      [&](const std::string& text) -> std::string {
        if (kTakesOne && is_given(app, "-m")) return "-m names a model too; give one of them";
        return values.repository = text, "";
      },
      "instead of -m: a repository ORGANISATION/MODEL of the Hugging Face hub, fetched the first "
      "time; after a colon the type of its .gguf (q4_k_m)",
      "LLAMA_ARG_HF_REPO");
  needs(add_option(app, "-hff,--hf-file NAME", values.repository_file,
                   "with -hf: the .gguf file to use", "LLAMA_ARG_HF_FILE"),
        repository);
  precedes(app, "-m", "-hf");
  precedes(app, "-hf", "-m");
  add_switch(app, "--offline", values.is_offline,
             "with -hf: use what was fetched before, and no network", "LLAMA_ARG_OFFLINE");
  add_option(app, "--tokenizer FILE", values.options.tokenizer_path,
             "a tokenizer in place of the model's: tokenizer.json, tokenizer.model, a folder, …");
}

void declare_cache_types(CLI::App& app, OpenOptions& options) {
  add_choice(app, "-ctk,--cache-type-k TYPE", options.cache_type_k, {"f16", "f32"},
             "keys of the KV cache: f16 or f32", "LLAMA_ARG_CACHE_TYPE_K");
  add_choice(app, "-ctv,--cache-type-v TYPE", options.cache_type_v, {"f16", "f32"},
             "values of the KV cache: f16 or f32", "LLAMA_ARG_CACHE_TYPE_V");
}

void declare_opening(CLI::App& app, ModelFlags& values, std::string_view n_ctx_default) {
  OpenOptions& options = values.options;
  declare_overrides(app, values);
  add_option(app, "-c,--ctx-size N", options.n_ctx, {.least = 0},
             fmt::format("tokens of context (default: {})", n_ctx_default), "LLAMA_ARG_CTX_SIZE");
  add_option(app, "-b,--batch-size N", options.n_batch, {.least = 1},
             "tokens of a prompt evaluated in one step, at most (2048)", "LLAMA_ARG_BATCH");
  add_option(
      app, "-ub,--ubatch-size N", values.n_ubatch, {.least = 0},
      "as -b, under llama.cpp's other name; the smaller of the two is used (512, on a GPU 2048)",
      "LLAMA_ARG_UBATCH");
  declare_threads(app, values, "LLAMA_ARG_THREADS");
  add_option(app, "-tb,--threads-batch N", values.n_threads_batch,
             "threads for prompts; only the number of -t is supported", "LLAMA_ARG_THREADS_BATCH");
  precedes(app, "-t", "-tb");
  add_choice(app, "-dev,--device NAME", options.device, {kDevices.begin(), kDevices.end()},
             "what computes: cpu, opencl, cuda (opencl:1 for the second one; limpid devices "
             "lists them), or reference, which is slow and defines every op (cpu)",
             "LLAMA_ARG_DEVICE");
  suggest(add_list(
              app, "-ngl,--gpu-layers,--n-gpu-layers N",
              [&](const std::string& text) { return read_gpu_layers(text, options.gpu_layers); },
              "layers on the device, the others on that of --split: a number, all, or auto, which "
              "is as many as fit; without --device, on the first GPU (auto)",
              "LLAMA_ARG_N_GPU_LAYERS"),
          {"auto", "all", "0"});
  add_choice(app, "--split DEVICE", options.split, {"cpu", "opencl:1", "cuda:1"},
             "device of the layers that --gpu-layers leaves: cpu, or another GPU (cpu)");
  add_choice(app, "--products TYPE", options.products, {"f32", "bf16", "f16"},
             "precision of products: f32, or, faster and less exact, bf16 (weights of bf16 on the "
             "CPU) or f16 (tensor cores of CUDA; OpenCL emulates them, slowly) (f32)");
  add_choice(app, "--quantize TYPE", options.quantize, file_type_list(),
             "quantise while opening (q8_0, q4_0, q4_k_m, …) and keep the result in a "
             "cache");
  add_switch(app, "-v,--verbose", values.verbose, "report on stderr what is being done");
}

}  // namespace

void declare_model_path(CLI::App& app, ModelFlags& values) {
  declare_sources(app, values, values.model, "model file, or a name that pull knows");
}

void declare_overrides(CLI::App& app, ModelFlags& values) {
  add_option(app, "--config FILE", values.options.config,
             "hyper-parameters of a bare state dictionary, as JSON: a file, or the text itself");
  add_option(app, "--rope-scaling RULE", values.options.rope_scaling,
             "none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,ORIGINAL in place of the model's own");
  add_option(app, "--lora DIR[=SCALE]", values.options.lora,
             "an adapter in PEFT's layout; may be given several times");
  add_list(
      app, "--lora-scaled LIST",
      [&](const std::string& list) { return read_scaled_adapters(list, values.options.lora); },
      "the same in llama.cpp's spelling: DIR:SCALE, several between commas");
}

// At most what a pool takes (base/thread_pool.h).
void declare_threads(CLI::App& app, ModelFlags& values, std::string_view env) {
  add_option(app, "-t,--threads N", values.options.n_threads, {.most = 1024},
             "threads (default: as many as cores)", env);
}

void declare_model(CLI::App& app, ModelFlags& values, std::string_view n_ctx_default) {
  declare_model_path(app, values);
  declare_opening(app, values, n_ctx_default);
  declare_cache_types(app, values.options);
}

void declare_model_with_f32_cache(CLI::App& app, ModelFlags& values) {
  values.options.cache_type_k = values.options.cache_type_v = "f32";
  declare_model_path(app, values);
  declare_opening(app, values, kContextDefault);
}

void declare_models(CLI::App& app, ModelFlags& values, std::vector<std::string>& models) {
  declare_sources(app, values, models,
                  "model file, a name that pull knows, or a folder of models; may be given "
                  "several times");
  declare_opening(app, values, kContextDefault);
  declare_cache_types(app, values.options);
}

ModelFlags ModelFlags::with_model(std::string other) const {
  ModelFlags flags = *this;
  flags.model = std::move(other);
  flags.repository.clear();
  return flags;
}

// llama.cpp splits a batch (-b) into parts that are computed at once (-ub). Here a step is one
// part, so the smaller of the two numbers counts. A negative -t means all cores, as there.
OpenOptions to_open_options(const ModelFlags& values) {
  OpenOptions options = values.options;
  LIMPID_CHECK(
      ArgumentError, values.n_threads_batch <= 0 || values.n_threads_batch == options.n_threads,
      "-tb {}: prompts run on as many threads as generation; set -t to it, or leave it out",
      values.n_threads_batch);
  check_value("-ctk", [&] { cache_dtype(options.cache_type_k); });
  check_value("-ctv", [&] { cache_dtype(options.cache_type_v); });
  const std::string device = options.device.substr(0, options.device.find(':'));
  LIMPID_CHECK(ArgumentError, std::ranges::count(kDevices, device) > 0, "--device {}: choose {}",
               options.device, fmt::join(kDevices, ", "));
  const bool on_gpu =
      (options.device != "cpu" && options.device != "reference") || options.gpu_layers > 0;
  options.n_batch = std::min(options.n_batch, values.n_ubatch > 0 ? values.n_ubatch
                                              : on_gpu            ? 2048
                                                                  : 512);
  options.n_threads = std::max(options.n_threads, 0);
  for (std::string& adapter : options.lora) {  // DIR[=SCALE], where DIR may be a run's folder
    const std::string path = read_lora_source(adapter).path;
    const std::string trained = newest_checkpoint(path);
    if (!trained.empty()) adapter.replace(0, path.size(), trained);
  }
  return options;
}

void declare_generation(CLI::App& app, GenerationFlags& values) {
  GenerationOptions& options = values.options;
  SamplerOptions& sampler = options.sampler;
  group(app, "generation");
  add_option(app, "-n,--predict,--n-predict N", options.n_predict, {.least = -2},
             "tokens at most; -1: until the model stops, -2: until the context is full (-1)",
             "LLAMA_ARG_N_PREDICT");
  add_option(app, "--stop,-r,--reverse-prompt TEXT", options.stop,
             "end before this text; may be given several times");
  add_switch(app, "--ignore-eos", sampler.ignore_eos, "never choose a token that ends the text");
  add_switch(app, "--context-shift,!--no-context-shift", options.context_shift,
             "when the context is full, drop the older half instead of failing",
             "LLAMA_ARG_CONTEXT_SHIFT");
  add_option(app, "--keep N", options.n_keep, {.least = -1},
             "tokens that the shift keeps at the start; -1: all of the prompt (0)");
  add_switch(app, "--special", options.show_special, "write control tokens as text");
  group(app, "sampling");
  declare_settings(app, sampler, values.given_settings);
  add_list(
      app, "--rng NAME",
      [&](const std::string& text) { return read_generator(text, sampler.random_numbers); },
      "generator of random numbers: philox, or mt19937, which draws as llama.cpp does (philox)");
  add_list(
      app, "-l,--logit-bias ID+BIAS",
      [&](const std::string& text) { return read_bias(text, sampler.logit_bias); },
      "add to a token's logit; ID-inf bans it; may be given several times");
  add_option(app, "--samplers LIST", sampler.order,
             "the chain, names between ';' (penalties;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;"
             "temperature)");
}

// Reads "1,2,3", "[1, 2, 3]" and "1 2 3" alike.
std::vector<int64_t> parse_integers(std::string_view text, std::string_view what) {
  constexpr std::string_view kSeparators = ",[] \n\t\r";
  std::vector<int64_t> values;
  while (true) {
    const std::string_view gap = text.substr(0, text.find_first_not_of(kSeparators));
    text.remove_prefix(gap.size());
    const bool is_between = !values.empty() && !text.empty();
    LIMPID_CHECK(ArgumentError, std::ranges::count(gap, ',') <= (is_between ? 1 : 0),
                 "{}: a number is missing beside a comma", what);
    if (text.empty()) return values;
    const std::string word(text.substr(0, text.find_first_of(kSeparators)));
    LIMPID_CHECK(ArgumentError, read_value(word, {}, values.emplace_back()).empty(),
                 "{}: '{}' is not a whole number", what, text.substr(0, 20));
    text.remove_prefix(word.size());
  }
}

std::vector<TokenId> parse_token_ids(std::string_view text, std::string_view what) {
  std::vector<TokenId> ids;
  for (const int64_t value : parse_integers(text, what)) {
    const auto id = checked_cast<TokenId>(value);
    LIMPID_CHECK(ArgumentError, id && *id >= 0, "{}: {} is not a token id", what, value);
    ids.push_back(*id);
  }
  return ids;
}

int64_t absolute_position(int64_t position, int64_t n_tokens) {
  const int64_t found = position < 0 ? position + n_tokens : position;
  LIMPID_CHECK(ArgumentError, found >= 0 && found < n_tokens, "--positions: {} is outside the {}",
               position, count(n_tokens, "token"));
  return found;
}

// Unknown escapes stay as they are: "\d" remains a backslash and a letter.
std::string unescape(std::string_view text) {
  constexpr std::string_view kLetters = "nrtabfv0\\\"'";
  constexpr std::string_view kBytes{"\n\r\t\a\b\f\v\0\\\"'", 11};
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const bool is_escape = rest.size() > 1 && rest[0] == '\\';
    const size_t known = is_escape ? kLetters.find(rest[1]) : kLetters.npos;
    unsigned byte = 0;  // of an int, from_chars would take a sign
    if (known != kLetters.npos) {
      result += kBytes[known];
      ++i;
    } else if (rest.starts_with("\\x") && rest.size() > 3 &&
               std::from_chars(&rest[2], &rest[2] + 2, byte, 16).ptr == &rest[2] + 2) {
      result += static_cast<char>(byte);
      i += 3;
    } else {
      result += rest[0];
    }
  }
  return result;
}

}  // namespace limpid::cli
