// `limpid explain`: what a model did with a text, as a page to look at, as JSON, or in short.
//
// The answer is made first, without looking; then the whole text is evaluated once more with a
// probe in the executor. A text is evaluated much faster than it is generated, and the executor
// computes the same numbers either way.
//
// The executors lie around each other like this, outermost first:
//
//   ProbeExecutor    keeps, or changes, the values that the analysis asks for
//   TimingExecutor   measures each op
//   the executor     of --device, which computes
//
// The timer is inside, so that its times do not contain the work of the probe.
#include "cli/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/machine.h"
#include "cli/model_path.h"
#include "cli/output_path.h"
#include "cli/terminal_text.h"
#include "generate/engine.h"
#include "insight/explain_chart.h"
#include "insight/explanation_json.h"

namespace limpid::cli {
namespace {

struct ExplainFlags {
  ModelFlags model;
  TextFlags text;
  std::string token;
  std::string against;
  int64_t n_predict = 0;
  ExplainOptions options;
  WhatIfFlags what_if;
  std::string beside;
  std::string output;
  bool json = false;
  std::string picture;
  bool measure = true;
};

// A model with a probe in its executor, and a clock within the probe.
struct Probed {
  std::unique_ptr<Model> model;
  ProbeExecutor* probe = nullptr;
  TimingExecutor* timer = nullptr;
};

Probed open_probed(const ModelFlags& flags, std::shared_ptr<const Checkpoint> checkpoint) {
  Probed probed;
  probed.model =
      load_weights_only(flags, std::move(checkpoint), [&](std::unique_ptr<Executor> inner) {
        return wrap_in(probed.probe)(wrap_in(probed.timer)(std::move(inner)));
      });
  return probed;
}

// Appends the likeliest token each time, up to the end of the text or the context, or `n` tokens.
void add_answer(Model& model, const Tokenizer* tokenizer, int64_t n, std::vector<TokenId>& ids) {
  n = std::min(n, model.n_ctx() - std::ssize(ids));
  if (n <= 0) return;
  const auto cache = model.make_cache(std::ssize(ids) + n, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  ProgressBar bar("answering");
  std::vector<TokenId> next = ids;
  for (int64_t i = 0; i < n; ++i) {
    const StepItem item{sequence, next, StepItem::Outputs::kLast};
    const auto logits = model.step(*cache, {&item, 1});
    const auto best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
    if (tokenizer != nullptr && tokenizer->is_stop(best)) return;
    next = {best};
    ids.push_back(best);
    bar.show(i + 1, n);
  }
}

// Throws ArgumentError where --against is subtracted from itself: at the end of the text the other
// token may be the model's own choice, which is known only after the explanation.
void check_against(const ExplainFlags& values, const Explanation& explanation) {
  if (values.against.empty() || explanation.parts.empty()) return;
  const Attribution& last = explanation.parts.back();
  LIMPID_CHECK(ArgumentError, last.token != last.against || values.token.empty(),
               "--token and --against are the same token: give two");
  LIMPID_CHECK(ArgumentError, last.token != last.against,
               "--against {}: this is the token that the model expects itself; name the one to "
               "hold it against with --token",
               in_quotes(values.against));
}

// The facts about the model for the page. The KV cache of an explanation is f32.
PageFacts facts_of(const Model& model, int64_t n_tokens, std::vector<OpTime> times,
                   const MachineLimits& limits) {
  const DecoderSpec& spec = model.spec();
  PageFacts facts;
  facts.model = model_name(model.checkpoint().path);
  facts.description = describe_model(spec);
  facts.times = std::move(times);
  if (limits.n_threads > 0) {
    facts.limits = fmt::format("{} ({}).", limits_text(limits), count(limits.n_threads, "thread"));
    facts.limits.front() = 'L';
    for (OpTime& time : facts.times)
      time.share = time.share_of_limit(limits.read_bytes_per_second, limits.flops_per_second);
  }
  for (const auto& [name, tensor] : model.checkpoint().tensors)
    facts.n_weight_bytes += tensor.n_bytes();
  facts.n_cache_bytes =
      static_cast<uint64_t>(2 * n_tokens * spec.n_layers * spec.n_kv_heads * spec.head_dim) *
      sizeof(float);
  return facts;
}

// The second runs that the options ask for: first that of the edits, last that of --beside.
std::vector<ShownContrast> second_runs(const ExplainFlags& values, const Probed& probed,
                                       std::span<const TokenId> ids, std::vector<Edit> edits) {
  std::vector<ShownContrast> runs;
  const ContrastRun plain{*probed.model, *probed.probe};
  if (!edits.empty()) {
    const ContrastRun changed{*probed.model, *probed.probe, std::move(edits)};
    runs.push_back({describe_edits(values.what_if), contrast(plain, changed, ids)});
  }
  if (!values.beside.empty()) {
    const ModelFlags flags = second_model(values.model, values.beside);
    const auto checkpoint = open_header(flags);
    check_output(values.output, *checkpoint);
    const Probed other = open_probed(flags, checkpoint);
    runs.push_back({"beside " + model_name(checkpoint->path),
                    contrast(plain, {*other.model, *other.probe}, ids)});
  }
  return runs;
}

Json to_json(const ExplainFlags& values, const Explanation& explanation, const PageFacts& facts,
             std::span<const ShownContrast> runs, const Tokenizer* tokenizer) {
  Json json = {{"model", facts.model}};
  json.update(explanation_to_json(explanation, tokenizer));
  json["times"] = times_to_json(facts.times);
  json["memory"] = {{"weight_bytes", facts.n_weight_bytes}, {"cache_bytes", facts.n_cache_bytes}};
  if (values.what_if.is_wanted())
    json["what_if"] = contrast_to_json(runs.front().contrast, tokenizer);
  if (!values.beside.empty()) json["beside"] = contrast_to_json(runs.back().contrast, tokenizer);
  return json;
}

void declare(CLI::App& app, ExplainFlags& values) {
  declare_text(app, values.text);
  add_option(app, "-n,--predict N", values.n_predict, Range{.least = 0},
             "let the model continue the text by up to N tokens, the likeliest each time (0)");
  add_option(app, "-o,--output FILE", values.output,
             "write one HTML page (or what --json or --svg gives); - is standard output");
  add_switch(app, "--json", values.json, "the numbers as JSON");
  add_choice(app, "--svg WHAT", values.picture, picture_names(),
             "one picture as SVG: surprise, lens, parts, part-heads, sizes, heads, a head as "
             "L3.H5, or of a second run distance or divergence");
  add_option(app, "--lens-every N", values.options.lens_every, Range{.least = 1},
             "logit lens at every Nth layer only (1)");
  add_option(app, "--token TOKEN", values.token,
             "say who spoke for this token at each position (the one that follows; at the end the "
             "likeliest)");
  add_option(app, "--against TOKEN", values.against,
             "... and against this one: the difference of their logits");
  add_option(
      app, "--parts N", values.options.n_attributed, Range{.least = 0},
      "attribute the logits at the last N positions (all, or as many as a page has room for)");
  add_switch(app, "--measure,!--no-measure", values.measure,
             "for a page and --json: measure the limits of the machine and compare each op with "
             "them, which takes a second (on)");
  declare_what_if(app, values.what_if);
  add_option(app, "--beside MODEL2", values.beside,
             "run another model over the same tokens: another quantisation, a model fine-tuned "
             "from this one");
  declare_model_with_f32_cache(app, values.model);
}

// Whether the options that say what is shown go together. Throws ArgumentError.
void check_shown(const ExplainFlags& values) {
  LIMPID_CHECK(ArgumentError,
               (values.picture != "distance" && values.picture != "divergence") ||
                   !values.beside.empty() || values.what_if.is_wanted(),
               "--svg {} draws two runs: give --ablate, --patch, --steer or --beside",
               values.picture);
  LIMPID_CHECK(ArgumentError,
               (values.picture != "parts" && values.picture != "part-heads") ||
                   values.options.n_attributed != 0,
               "--svg {} draws the parts of the last logit, and --parts 0 attributes none: give "
               "--parts 1, or leave it out",
               values.picture);
  LIMPID_CHECK(ArgumentError, !values.json || values.picture.empty(),
               "give one of --json and --svg");
}

void run(const ExplainFlags& values) {
  check_shown(values);
  const auto checkpoint = open_header(values.model);
  const TextEncoder encoder(values.text, *checkpoint);
  // Without a tokenizer -p cannot be used, and tokens are shown as numbers.
  const Tokenizer* tokenizer = encoder.tokenizer();
  std::vector<TokenId> ids = encoder.prompt();
  ExplainOptions options = values.options;
  if (!values.token.empty()) options.token = encoder.token(values.token, "--token");
  if (!values.against.empty()) options.against = encoder.token(values.against, "--against");
  check_output(values.output, *checkpoint);
  const Probed probed = open_probed(values.model, checkpoint);
  check_what_if(values.what_if, probed.model->spec());
  if (!values.picture.empty()) check_picture(values.picture, probed.model->spec());
  options.n_prompt = std::ssize(ids);
  add_answer(*probed.model, tokenizer, values.n_predict, ids);
  std::vector<Edit> edits = edits_of(values.what_if, *probed.model, *probed.probe, ids, encoder);
  ProgressBar bar("explaining");
  options.progress = [&](int64_t done, int64_t total) { return bar.show(done, total), true; };
  probed.timer->take();  // those of the answer and the edits
  const Stopwatch watch;
  const Explanation explanation = explain(*probed.model, *probed.probe, ids, options);
  const double seconds = watch.seconds();
  check_against(values, explanation);
  std::vector<OpTime> times = probed.timer->take();
  bar.wipe();
  const bool shows_times = values.json || (!values.output.empty() && values.picture.empty());
  const PageFacts facts =
      facts_of(*probed.model, std::ssize(ids), std::move(times),
               shows_times && values.measure
                   ? measure_limits(values.model.options.n_threads, values.model.options.products)
                   : MachineLimits{});
  const std::vector<ShownContrast> runs = second_runs(values, probed, ids, std::move(edits));
  std::string text;
  if (values.json) {
    text = dump_json(to_json(values, explanation, facts, runs, tokenizer)) + "\n";
  } else if (!values.picture.empty()) {
    text = explain_chart(explanation, values.picture, probed.model->spec(), runs, tokenizer);
  } else if (values.output.empty()) {
    text = explain_report(explanation, runs, tokenizer);
  } else {
    text = explain_page(explanation, facts, runs, tokenizer);
  }
  write_text(values.output.empty() ? "-" : values.output, text);
  const std::string where = values.output.empty()
                                ? ""
                                : fmt::format(": {}, {}", values.output, format_bytes(text.size()));
  print_log(fmt::format("{} explained in {:.2f} s{}", count(ids.size(), "token"), seconds, where));
}

}  // namespace

Command explain_command() {
  return {
      "why a model says what it says, as a page to look at",
      "explain -m FILE (-p TEXT | -f FILE | --ids LIST) [-o PAGE] [options]",
      "Evaluates a text and shows what happened inside the model: how much each token surprised "
      "it and what it expected instead, what it would have said after each layer (logit lens), "
      "which heads and MLPs made it say what it said (direct logit attribution), where each head "
      "looked, how large the activations were, and what changes without a part. -o writes one "
      "HTML page that needs no network; --json gives the same numbers to programs, --svg "
      "draws one picture; without these, a short report is printed.",
      "limpid explain -m smollm2 -p 'The capital of France is' -n 8 -o page.html\n"
      "limpid explain -m smollm2 -p 'Is the sky blue' --token '?' --against '.'\n"
      "limpid explain -m smollm2 -p 'one two three one two' --ablate L1.H2\n"
      "limpid explain -m smollm2 -f text.txt --lens-every 4 --json",
      bind<ExplainFlags, declare, run>};
}

}  // namespace limpid::cli
