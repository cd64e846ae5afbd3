// `limpid run`: plain continuation of a text, or of several in one batch.
//
// One text streams to the terminal as it is generated. Several share each step of the model: a step
// reads the weights once for all of them, so eight answers take little longer than one. They are
// printed when all are done, since their pieces would mix.
#include <nlohmann/json.hpp>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/error_words.h"
#include "cli/run_trace.h"
#include "cli/sampler_settings.h"
#include "cli/signals.h"
#include "generate/continuation.h"
#include "limpid/batch.hpp"
#include "limpid/session.hpp"
#include "server/logprobs_json.h"

namespace limpid::cli {
namespace {

constexpr int kMostLogprobs = 20;

struct RunFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::vector<std::string> prompts;
  std::vector<std::string> files;
  std::optional<int64_t> n_logprobs;
  bool escape = false;
  bool json = false;
  bool timings = true;
  TraceFlags trace;
};

// The texts of -p, then those of -f.
std::vector<std::string> read_prompts(const RunFlags& values) {
  std::vector<std::string> prompts = values.prompts;
  for (const std::string& file : values.files) prompts.push_back(read_text(file));
  // At a terminal the program does not wait for a text unless asked to: it begins from BOS.
  if (prompts.empty()) prompts.push_back(stdin_is_terminal() ? "" : read_text("-"));
  if (values.escape) {
    for (std::string& prompt : prompts) prompt = unescape(prompt);
  }
  return prompts;
}

// The text fits and the answer outgrows the context. An answer without a bound outgrows any
// context.
[[noreturn]] void fail_full_context(const ContextOverflowError& error,
                                    const GenerationOptions& options) {
  const std::string context = sufficient_context(error);
  const std::string larger = options.n_predict < 0 ? "-n N"
                             : context.empty()     ? "a smaller -n"
                                                   : context + ", a smaller -n";
  throw ArgumentError(fmt::format(
      "text and answer outgrow the context of {} tokens: give {}, -n -2 to end there, or "
      "--context-shift to go on",
      error.n_ctx(), larger));
}

// Continues a single text, piece by piece on standard output unless JSON is wanted.
GenerationResult run_one(const LanguageModel& model, const std::string& prompt,
                         const GenerationOptions& options, bool stream) {
  Session session(model);
  TextStream text = session.generate(prompt, options);
  try {
    while (const auto piece = text.next()) {
      if (!stream) continue;
      write_out(*piece);
      flush_out();
    }
  } catch (const ContextOverflowError& error) {
    if (stream) write_out("\n");
    fail_full_context(error, options);
  }
  if (stream) write_out("\n");
  return text.result();
}

// The batch ends when the first answer outgrows the context. The advice must be enough for all
// texts, so it is about the longest one. A text that is too long itself is another error.
[[noreturn]] void fail_full_context(const LanguageModel& model,
                                    std::span<const std::string> prompts,
                                    const GenerationOptions& options,
                                    const ContextOverflowError& error) {
  int64_t longest = 0;
  for (const std::string& prompt : prompts)
    longest = std::max(longest, std::ssize(model.encode(prompt)));
  if (longest > error.n_ctx()) throw error;
  const int64_t n_needed = context_needed(longest, options.n_predict);
  fail_full_context(ContextOverflowError(error.n_tokens(), error.n_ctx(), n_needed), options);
}

// Continues several texts together. Prints them at the end unless JSON is wanted, and before an
// error as far as they came.
std::vector<GenerationResult> run_batch(const LanguageModel& model,
                                        std::span<const std::string> prompts,
                                        const GenerationOptions& options, bool prints) {
  std::vector<std::string> texts(prompts.size());
  const auto add = [&](size_t i, std::string_view piece) { texts[i] += piece; };
  const auto print = [&] {
    for (const std::string& text : texts) {
      if (prints) write_out(text + "\n");
    }
  };
  try {
    std::vector<GenerationResult> results = generate_batch(model, prompts, options, add);
    print();
    return results;
  } catch (const ContextOverflowError& error) {
    const auto is_begun = [](const std::string& text) { return !text.empty(); };
    if (std::ranges::any_of(texts, is_begun)) print();
    fail_full_context(model, prompts, options, error);
  }
}

void print_json(std::span<const std::string> prompts, std::span<const GenerationResult> results,
                bool with_logprobs) {
  auto document = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    Json entry = {{"prompt", prompts[i]}};
    entry.update(to_json(results[i]));
    if (with_logprobs) entry["logprobs"] = {{"content", logprobs_to_json(results[i].logprobs)}};
    document.push_back(std::move(entry));
  }
  write_json(document.size() == 1 ? document.front() : document);
}

void declare(CLI::App& app, RunFlags& values) {
  add_option(app, "-p,--prompt TEXT", values.prompts,
             "text to continue (default: standard input; at a terminal, BOS alone, if the model "
             "adds one)");
  add_option(app, "-f,--file FILE", values.files, "a file with the text; - is standard input");
  add_switch(app, "-e,--escape,!--no-escape", values.escape, "\\n, \\t, … in TEXT are escapes");
  CLI::Option* json =
      add_switch(app, "--json", values.json, "prompt, text, ids, stop reason and timings as JSON");
  needs(add_option(app, "--logprobs N", values.n_logprobs, Range{0, kMostLogprobs},
                   "with --json: the log-probability of each token, and those of the N likeliest "
                   "(up to 20)"),
        json);
  add_switch(app, "--timings,!--no-timings", values.timings, "speed on standard error (on)");
  declare_trace(app, values.trace, values.model.options);
  declare_model(app, values.model);
  declare_generation(app, values.generation);
}

int run(const RunFlags& values) {
  GenerationOptions options = values.generation.options;
  if (values.n_logprobs) options.n_logprobs = static_cast<int32_t>(*values.n_logprobs);
  const std::vector<std::string> prompts = read_prompts(values);
  if (values.trace.trace) {
    LIMPID_CHECK(ArgumentError, prompts.size() == 1, "--trace takes one text, not {}",
                 prompts.size());
    run_trace(values.model, values.trace, prompts.front(), values.json);
    return kExitOk;
  }

  const LanguageModel model = open_language_model(values.model);
  const std::string changed = apply_recommended(values.generation.given_settings,
                                                model.recommended_sampler(), options.sampler);
  if (values.model.verbose && !changed.empty())
    print_log(fmt::format("sampling as the model recommends: {}", changed));
  const InterruptGuard interrupt(options.cancel);
  const std::vector<GenerationResult> results =
      prompts.size() == 1 ? std::vector{run_one(model, prompts.front(), options, !values.json)}
                          : run_batch(model, prompts, options, !values.json);
  if (values.json) print_json(prompts, results, options.n_logprobs >= 0);
  flush_out();
  if (values.timings) print_timings(results);
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

Command run_command() {
  return {"continue a text", "run -m FILE [-p TEXT | -f FILE | -] [options]",
          "Continues a text as it is: no chat template. The continuation goes to standard "
          "output.\nSeveral -p or -f are continued together, in one batch.",
          "limpid run -m smollm2 -p 'The sea is' -n 32 --temp 0\n"
          "limpid run -m smollm2 -p 'The sea is' -p 'The sky is' -n 16 --json\n"
          "limpid run -m smollm2 -p 'The sea is' --trace --layer 0 --break L0.attn_output",
          bind<RunFlags, declare, run>};
}

}  // namespace limpid::cli
