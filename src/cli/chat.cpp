// `limpid chat`: a conversation in the model's own format.
#include "limpid/chat.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "generate/engine.h"

namespace limpid::cli {
namespace {

struct ChatFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  std::string system_file;
  std::string template_file;
  bool single_turn = false;
  bool escape = false;
  bool json = false;
  bool timings = false;
};

void declare_chat(Flags& flags, ChatFlags& values) {
  flags.text("-p,--prompt TEXT", values.prompt, "the first thing to say");
  flags.text("-f,--file FILE", values.prompt_file, "a file with it");
  flags.text("-sys,--system-prompt TEXT", values.system,
             "what the model is told beforehand (You are a helpful assistant.);\n"
             "                                  '' leaves it to the template");
  flags.text("-sysf,--system-prompt-file FILE", values.system_file, "a file with it");
  flags.toggle("-st,--single-turn", values.single_turn, "answer once and leave");
  flags.text("--chat-template-file FILE", values.template_file,
             "a Jinja template in place of the model's own", "LLAMA_ARG_CHAT_TEMPLATE_FILE");
  flags.toggle("-e,--escape,!--no-escape", values.escape, "\\n, \\t, … in TEXT are escapes");
  flags.toggle("--json", values.json, "each answer as a line of JSON");
  flags.toggle("--timings", values.timings, "speed on standard error after each answer");
  declare_model(flags, values.model);
  declare_generation(flags, values.generation);
}

// -p or -f; nothing when neither was given.
std::optional<std::string> first_message(const ChatFlags& values) {
  std::string text = values.prompt_file.empty() ? values.prompt : read_text(values.prompt_file);
  if (values.escape) text = unescape(text);
  if (text.empty()) return std::nullopt;
  return text;
}

class Conversation {
 public:
  Conversation(Chat chat, const ChatFlags& values, InterruptGuard& interrupt)
      : chat_(std::move(chat)),
        values_(values),
        interrupt_(interrupt),
        reader_(make_line_reader()) {}

  // Exit code. Answers `first`, then what is typed.
  int hold(std::optional<std::string> first) {
    if (reader_->is_person() && !first) {
      print_log(
          "/exit leaves, /clear forgets, Ctrl-C stops an answer, \\ at the end continues a line");
    }
    while (true) {
      std::optional<std::string> text = std::exchange(first, std::nullopt);
      if (!text) text = read_turn();
      LIMPID_CHECK(
          ArgumentError, text || reader_->is_person() || n_turns_ > 0,
          "nothing to answer: standard input is empty; give -p TEXT, or chat in a terminal "
          "(docker run -it)");
      ++n_turns_;
      // The first Ctrl-C at the prompt asks; it stays counted, so a second one leaves at once.
      if (!text && reader_->is_person() && interrupt_.interrupted() && !wants_to_leave_) {
        wants_to_leave_ = true;
        print_log("\n(Ctrl-C again, Ctrl-D or /exit leaves)");
        continue;
      }
      wants_to_leave_ = false;
      if (!text || *text == "/exit" || *text == "exit") return kExitOk;
      interrupt_.clear();
      if (*text == "/clear") {
        chat_.clear();
        continue;
      }
      if (text->empty()) continue;
      if (!answer(*text)) return kExitInterrupted;
      if (values_.single_turn) return kExitOk;
    }
  }

 private:
  std::optional<std::string> read_turn() {
    std::optional<std::string> text = reader_->next("> ");
    while (reader_->is_person() && text && text->ends_with('\\')) {
      const std::optional<std::string> more = reader_->next(". ");
      text->back() = '\n';
      if (!more) break;
      *text += *more;
    }
    return text;
  }

  // False when Ctrl-C ended a conversation that nobody can go on with.
  bool answer(const std::string& text) {
    try {
      TextStream stream = chat_.ask(text);
      while (const auto piece = stream.next()) {
        if (values_.json) continue;
        write_out(*piece);
        flush_out();
      }
      const GenerationResult& result = stream.so_far();
      write_out(values_.json ? dump_json(to_json(result)) + "\n" : "\n");
      flush_out();
      if (values_.timings || values_.model.verbose) print_timings({&result, 1});
    } catch (const ContextOverflowError& error) {
      if (!reader_->is_person()) throw;
      print_error(error.what());
    }
    if (!interrupt_.interrupted()) return true;
    interrupt_.clear();
    return reader_->is_person() && !values_.single_turn;
  }

  Chat chat_;
  const ChatFlags& values_;
  InterruptGuard& interrupt_;
  std::unique_ptr<LineReader> reader_;
  bool wants_to_leave_ = false;  // Ctrl-C at the prompt
  int64_t n_turns_ = 0;          // read, whatever became of them
};

}  // namespace

int chat_command(const Arguments& arguments) {
  ChatFlags values;
  Flags flags("chat -m FILE [options]",
              "A conversation in the model's own chat format. /exit, exit and Ctrl-D leave; Ctrl-C "
              "stops an answer,\ntwice leaves. Without a terminal each line of standard input is a "
              "turn.",
              "limpid chat -m smollm2\n"
              "limpid chat -m smollm2 -st -p 'What is the capital of France?' --temp 0\n"
              "echo 'Name a river.' | limpid chat -m smollm2 -sys 'Answer in one word.'");
  declare_chat(flags, values);
  if (!flags.parse(arguments)) return kExitOk;
  ChatOptions options;
  options.generation = to_generation_options(values.generation);
  if (flags.given("--system-prompt")) options.system = values.system;
  if (!values.system_file.empty()) options.system = read_text(values.system_file);
  if (values.escape && options.system) options.system = unescape(*options.system);
  const std::optional<std::string> first = first_message(values);

  const LanguageModel model = open_language_model(
      values.model, values.template_file.empty() ? "" : read_text(values.template_file));
  model.engine()->tokenizer();  // throws without one
  LIMPID_CHECK(UnsupportedError, !model.chat_template().empty(),
               "{} carries no chat template; give one with --chat-template-file, or continue plain "
               "text with limpid run",
               values.model.model);
  apply_model_samplers(flags, values.model, model, options.generation.sampler);
  InterruptGuard interrupt(options.generation.cancel);
  return Conversation(Chat(model, options), values, interrupt).hold(first);
}

}  // namespace limpid::cli
