// `limpid run`: plain continuation of a text, or of several in one batch.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "limpid/batch.hpp"
#include "limpid/session.hpp"

namespace limpid::cli {
namespace {

struct RunFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::vector<std::string> prompts;
  std::vector<std::string> files;
  bool escape = false;
  bool json = false;
  bool timings = true;
};

std::vector<std::string> read_prompts(const RunFlags& values) {
  std::vector<std::string> prompts = values.prompts;
  for (const std::string& file : values.files) prompts.push_back(read_text(file));
  if (prompts.empty()) prompts.emplace_back();  // from nothing: BOS alone
  if (values.escape) {
    for (std::string& prompt : prompts) prompt = unescape(prompt);
  }
  return prompts;
}

GenerationResult run_one(const LanguageModel& model, const std::string& prompt,
                         const GenerationOptions& options, bool stream) {
  Session session(model);
  TextStream text = session.generate(prompt, options);
  while (const auto piece = text.next()) {
    if (!stream) continue;
    write_out(*piece);
    flush_out();
  }
  if (stream) write_out("\n");
  return text.result();
}

void print_json(std::span<const std::string> prompts, std::span<const GenerationResult> results) {
  auto document = nlohmann::ordered_json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    nlohmann::ordered_json entry;
    entry["prompt"] = prompts[i];
    entry.update(to_json(results[i]));
    document.push_back(std::move(entry));
  }
  if (document.size() == 1) document = nlohmann::ordered_json(document.front());
  write_out(dump_json(document) + "\n");
}

}  // namespace

int run_command(const Arguments& arguments) {
  RunFlags values;
  Flags flags("run -m FILE -p TEXT [options]",
              "Continues a text as it stands: no chat template. The continuation goes to standard "
              "output.\nSeveral -p or -f are continued together, in one batch.",
              "limpid run -m smollm2 -p 'The sea is' -n 32 --temp 0\n"
              "limpid run -m smollm2 -p 'The sea is' -p 'The sky is' -n 16 --json");
  flags.texts("-p,--prompt TEXT", values.prompts, "text to continue (none: from BOS alone)");
  flags.texts("-f,--file FILE", values.files, "a file with the text; - is standard input");
  flags.dash_means("--file=-");
  flags.toggle("-e,--escape,!--no-escape", values.escape, "\\n, \\t, … in TEXT are escapes");
  flags.toggle("--json", values.json, "prompt, text, ids, stop reason and timings as JSON");
  flags.toggle("--timings,!--no-timings", values.timings, "speed on standard error (on)");
  declare_model(flags, values.model);
  declare_generation(flags, values.generation);
  if (!flags.parse(arguments)) return kExitOk;
  GenerationOptions options = to_generation_options(values.generation);
  const std::vector<std::string> prompts = read_prompts(values);

  const LanguageModel model = open_language_model(values.model);
  apply_model_samplers(flags, values.model, model, options.sampler);
  const InterruptGuard interrupt(options.cancel);
  std::vector<GenerationResult> results;
  if (prompts.size() == 1) {
    results.push_back(run_one(model, prompts.front(), options, !values.json));
  } else {
    results = generate_batch(model, prompts, options);
    for (size_t i = 0; i < results.size() && !values.json; ++i) {
      write_out(fmt::format("{}\n", results[i].text));
    }
  }
  if (values.json) print_json(prompts, results);
  flush_out();
  if (values.timings) print_timings(results);
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace limpid::cli
