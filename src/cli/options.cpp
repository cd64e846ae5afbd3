#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/checked.h"
#include "cli/model_path.h"
#include "generate/engine.h"
#include "quantize/file_type.h"

namespace limpid::cli {

void declare_model_path(Flags& flags, ModelFlags& values) {
  flags.group("model");
  flags.text("-m,--model,model FILE", values.model, "model file, or a name that pull knows",
             "LLAMA_ARG_MODEL");
  std::vector<std::string> names;
  for (const NamedModel& named : named_models()) names.emplace_back(named.name);
  flags.suggest(std::move(names));
  flags.text("-hf,-hfr,--hf-repo REPO", values.repository,
             "instead of -m: a repository ORGANISATION/MODEL of the Hugging Face hub, fetched the "
             "first time; behind a colon the type of its .gguf (q4_k_m)",
             "LLAMA_ARG_HF_REPO");
  flags.text("-hff,--hf-file NAME", values.repository_file, "with -hf: the .gguf to take",
             "LLAMA_ARG_HF_FILE");
  flags.text("--tokenizer FILE", values.tokenizer,
             "another tokenizer than the model's: tokenizer.json, tokenizer.model, a folder, …");
}

void declare_overrides(Flags& flags, ModelFlags& values) {
  flags.text("--config FILE", values.config,
             "hyper-parameters of a bare state dictionary, as JSON: a file, or the text itself");
  flags.text("--rope-scaling TEXT", values.rope_scaling,
             "none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,ORIGINAL in place of the model's own");
}

void declare_model(Flags& flags, ModelFlags& values, std::string_view n_ctx_default) {
  declare_model_path(flags, values);
  declare_overrides(flags, values);
  flags.integer("-c,--ctx-size N", values.n_ctx,
                fmt::format("tokens of context (default: {})", n_ctx_default),
                "LLAMA_ARG_CTX_SIZE");
  flags.integer("-b,--batch-size N", values.n_batch,
                "tokens of a prompt evaluated in one step, at most (2048)", "LLAMA_ARG_BATCH");
  flags.integer("-ub,--ubatch-size N", values.n_ubatch, "a second bound on the same (512)",
                "LLAMA_ARG_UBATCH");
  flags.integer("-t,--threads N", values.n_threads, "threads (default: as many as cores)",
                "LLAMA_ARG_THREADS");
  flags.integer("-tb,--threads-batch N", values.n_threads_batch,
                "threads for prompts; only the number of -t is supported",
                "LLAMA_ARG_THREADS_BATCH");
  flags.text("--executor NAME", values.executor, "cpu, or reference (slow: it defines every op)");
  flags.suggest({"cpu", "reference"});
  flags.text("-ctk,--cache-type-k TYPE", values.cache_type_k, "keys of the KV cache: f16 or f32",
             "LLAMA_ARG_CACHE_TYPE_K");
  flags.suggest({"f16", "f32"});
  flags.text("-ctv,--cache-type-v TYPE", values.cache_type_v, "its values: f16 or f32",
             "LLAMA_ARG_CACHE_TYPE_V");
  flags.suggest({"f16", "f32"});
  flags.text("--quantize TYPE", values.quantize,
             "quantise while opening (q8_0, q4_0, q4_k_m, …) and keep the result in a cache");
  flags.suggest(file_type_list());
  flags.toggle("-v,--verbose", values.verbose, "say on stderr what is being done");
}

namespace {

void check_at_least(int64_t value, int64_t least, std::string_view flag) {
  LIMPID_CHECK(ArgumentError, value >= least, "{} {}: must be at least {}", flag, value, least);
}

float as_float(double value, std::string_view flag, double least, double most) {
  LIMPID_CHECK(ArgumentError, value >= least && value <= most, "{} {}: must lie in [{}, {}]", flag,
               value, least, most);
  return static_cast<float>(value);
}

int32_t as_int32(int64_t value, std::string_view flag) {
  const auto fitting = checked_cast<int32_t>(value);
  LIMPID_CHECK(ArgumentError, fitting.has_value(), "{} {}: is too large", flag, value);
  return *fitting;
}

// "15043+1.5", "15043-inf".
LogitBias parse_logit_bias(const std::string& text) {
  LogitBias bias;
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, bias.id);
  const bool signed_number =
      id.ec == std::errc() && id.ptr < end && (*id.ptr == '+' || *id.ptr == '-');
  if (signed_number) {
    const std::string_view rest(id.ptr + 1, static_cast<size_t>(end - id.ptr - 1));
    const float sign = *id.ptr == '-' ? -1.0F : 1.0F;
    float size = std::numeric_limits<float>::infinity();
    const auto number = std::from_chars(id.ptr + 1, end, size);
    if ((number.ec == std::errc() && number.ptr == end) || rest == "inf") {
      bias.bias = sign * size;
      return bias;
    }
  }
  throw ArgumentError(
      fmt::format("--logit-bias {}: give a token id, a sign and a number, as in 15043+1.5 or "
                  "15043-inf",
                  text));
}

}  // namespace

OpenOptions to_open_options(const ModelFlags& values) {
  LIMPID_CHECK(ArgumentError, values.n_ctx >= 0,
               "-c {}: must be positive, or 0 for the model's own", values.n_ctx);
  check_at_least(values.n_batch, 1, "-b");
  check_at_least(values.n_ubatch, 1, "-ub");
  LIMPID_CHECK(
      ArgumentError, values.n_threads_batch <= 0 || values.n_threads_batch == values.n_threads,
      "-tb {}: prompts run on as many threads as generation; set -t to it, or leave it out",
      values.n_threads_batch);
  LIMPID_CHECK(ArgumentError, values.n_threads <= 4096, "-t {}: must be at most 4096",
               values.n_threads);
  OpenOptions options;
  options.n_ctx = values.n_ctx;
  options.n_batch = std::min(values.n_batch, values.n_ubatch);
  options.n_threads = static_cast<int>(std::max<int64_t>(values.n_threads, 0));
  options.executor = values.executor;
  cache_dtype(values.cache_type_k);
  cache_dtype(values.cache_type_v);
  options.cache_type_k = values.cache_type_k;
  options.cache_type_v = values.cache_type_v;
  options.quantize = values.quantize;
  options.tokenizer_path = values.tokenizer;
  options.config = values.config;
  options.rope_scaling = values.rope_scaling;
  return options;
}

void declare_generation(Flags& flags, GenerationFlags& values) {
  flags.group("generation");
  flags.integer("-n,--predict,--n-predict N", values.n_predict,
                "tokens at most; -1: until the model stops, -2: until the context is full (-1)",
                "LLAMA_ARG_N_PREDICT");
  flags.texts("--stop,-r,--reverse-prompt TEXT", values.stop,
              "end before this text; may be given several times");
  flags.toggle("--ignore-eos", values.ignore_eos, "never choose a token that ends the text");
  flags.toggle("--context-shift,!--no-context-shift", values.context_shift,
               "when the context is full, drop the older half instead of failing",
               "LLAMA_ARG_CONTEXT_SHIFT");
  flags.integer("--keep N", values.n_keep,
                "tokens that the shift keeps at the start; -1: all of the prompt (0)");
  flags.toggle("--special", values.show_special, "write control tokens as text");
  flags.group("sampling");
  flags.integer("-s,--seed N", values.seed, "-1: a random one (-1)");
  flags.number("--temp,--temperature X", values.temperature, "0: always the likeliest token (0.8)");
  flags.integer("--top-k N", values.top_k, "0: off (40)", "LLAMA_ARG_TOP_K");
  flags.number("--top-p X", values.top_p, "1: off (0.95)");
  flags.number("--min-p X", values.min_p, "0: off (0.05)");
  flags.number("--typical,--typical-p X", values.typical_p, "1: off (1)");
  flags.number("--top-nsigma,--top-n-sigma X", values.top_n_sigma, "0 or less: off (-1)");
  flags.number("--xtc-probability X", values.xtc_probability, "0: off (0)");
  flags.number("--xtc-threshold X", values.xtc_threshold, "above 0.5: off (0.1)");
  flags.integer("--repeat-last-n N", values.repeat_last_n,
                "tokens that the penalties look at; 0: none, -1: all (64)");
  flags.number("--repeat-penalty X", values.repeat_penalty, "1: off (1)");
  flags.number("--presence-penalty X", values.presence_penalty, "0: off (0)");
  flags.number("--frequency-penalty X", values.frequency_penalty, "0: off (0)");
  flags.texts("-l,--logit-bias ID+BIAS", values.logit_bias,
              "add to a token's logit; ID-inf bans it; may be given several times");
  flags.text("--samplers LIST", values.samplers,
             "the chain, names between ';' (penalties;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;"
             "temperature)");
}

GenerationOptions to_generation_options(const GenerationFlags& values) {
  constexpr double kHuge = 1e30;
  check_at_least(values.n_predict, -2, "-n");
  check_at_least(values.n_keep, -1, "--keep");
  GenerationOptions options;
  options.n_predict = values.n_predict;
  options.stop = values.stop;
  options.context_shift = values.context_shift;
  options.n_keep = values.n_keep;
  options.show_special = values.show_special;
  SamplerOptions& sampler = options.sampler;
  sampler.seed = values.seed;
  sampler.temperature = as_float(values.temperature, "--temp", -kHuge, kHuge);
  sampler.top_k = as_int32(values.top_k, "--top-k");
  sampler.top_p = as_float(values.top_p, "--top-p", 0, kHuge);
  sampler.min_p = as_float(values.min_p, "--min-p", 0, 1);
  sampler.typical_p = as_float(values.typical_p, "--typical", 0, kHuge);
  sampler.top_n_sigma = as_float(values.top_n_sigma, "--top-nsigma", -kHuge, kHuge);
  sampler.xtc_probability = as_float(values.xtc_probability, "--xtc-probability", 0, 1);
  sampler.xtc_threshold = as_float(values.xtc_threshold, "--xtc-threshold", 0, kHuge);
  sampler.repeat_last_n = as_int32(values.repeat_last_n, "--repeat-last-n");
  sampler.repeat_penalty = as_float(values.repeat_penalty, "--repeat-penalty", 1e-6, kHuge);
  sampler.presence_penalty = as_float(values.presence_penalty, "--presence-penalty", -kHuge, kHuge);
  sampler.frequency_penalty =
      as_float(values.frequency_penalty, "--frequency-penalty", -kHuge, kHuge);
  for (const std::string& bias : values.logit_bias) {
    sampler.logit_bias.push_back(parse_logit_bias(bias));
  }
  sampler.ignore_eos = values.ignore_eos;
  if (!values.samplers.empty()) sampler.order = values.samplers;
  return options;
}

std::vector<int64_t> parse_integers(std::string_view text, std::string_view what) {
  std::vector<int64_t> values;
  const auto is_separator = [](char c) {
    return c == ',' || c == '[' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
  };
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    while (at < end && is_separator(*at)) ++at;
    if (at == end) return values;
    int64_t value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    LIMPID_CHECK(ArgumentError, error == std::errc() && (after == end || is_separator(*after)),
                 "{}: '{}' is not a whole number", what,
                 std::string_view(at, std::min<size_t>(static_cast<size_t>(end - at), 20)));
    values.push_back(value);
    at = after;
  }
}

std::vector<TokenId> parse_token_ids(std::string_view text, std::string_view what) {
  std::vector<TokenId> ids;
  for (const int64_t value : parse_integers(text, what)) {
    const auto id = checked_cast<TokenId>(value);
    LIMPID_CHECK(ArgumentError, id && *id >= 0, "{}: {} is no token id", what, value);
    ids.push_back(*id);
  }
  return ids;
}

std::string unescape(std::string_view text) {
  constexpr std::string_view kLetters = "nrtabfv0\\\"'";
  constexpr std::string_view kBytes{"\n\r\t\a\b\f\v\0\\\"'", 11};
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char letter = text[i + 1];
    const size_t known = kLetters.find(letter);
    int byte = 0;
    if (known != std::string_view::npos) {
      result += kBytes[known];
      ++i;
    } else if (letter == 'x' && i + 3 < text.size() &&
               std::from_chars(text.data() + i + 2, text.data() + i + 4, byte, 16).ptr ==
                   text.data() + i + 4) {
      result += static_cast<char>(byte);
      i += 3;
    } else {
      result += '\\';
    }
  }
  return result;
}

}  // namespace limpid::cli
