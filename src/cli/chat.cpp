// `limpid chat`: a conversation in the model's own format.
//
// The model is in this process or behind a server (--connect). Both are a ChatPartner, so that the
// conversation itself (conversation.h) is written once. What only an engine in this process can do
// is refused for a server, instead of being ignored.
#include "limpid/chat.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/help.h"
#include "cli/model_path.h"
#include "cli/sampler_settings.h"
#include "cli/signals.h"
#include "generate/engine.h"
#include "generate/sampler_chain.h"

namespace limpid::cli {
namespace {

constexpr const char* kKeys = "/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves";

struct ChatFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::string prompt;
  std::string prompt_file;
  std::optional<std::string> system;
  std::optional<std::string> system_file;
  std::string template_file;
  std::string server;
  std::string key;
  const CLI::App* app = nullptr;  // which knows what was given
  bool escape = false;
  ConversationOptions conversation;
};

// What only the answers of a model in this process can do.
constexpr std::string_view kOfItsAnswers[] = {
    "--keep", "--special", "--chat-template-file", "--context-shift", "--samplers", "--rng"};

void declare(CLI::App& app, ChatFlags& values) {
  values.app = &app;
  add_option(app, "-p,--prompt TEXT", values.prompt,
             "the first message; follows the text of -f or of standard input");
  add_option(app, "-f,--file FILE", values.prompt_file,
             "a file with the first message; - is standard input");
  add_option(app, "-sys,--system-prompt TEXT", values.system,
             "the system message (You are a helpful assistant.); '' leaves it to "
             "the template");
  add_option(app, "-sysf,--system-prompt-file FILE", values.system_file,
             "a file with the system message");
  add_switch(app, "-st,--single-turn", values.conversation.single_turn, "answer once and leave");
  add_option(app, "--chat-template-file FILE", values.template_file,
             "a Jinja template in place of the model's own", "LLAMA_ARG_CHAT_TEMPLATE_FILE");
  add_switch(app, "-e,--escape,!--no-escape", values.escape, "\\n, \\t, … in TEXT are escapes");
  add_switch(app, "--json", values.conversation.json, "each answer as a line of JSON");
  add_switch(app, "--timings", values.conversation.timings,
             "speed on standard error after each answer");
  add_option(app, "--connect URL", values.server,
             "talk with the model of a server that has OpenAI's API; -m is then the server's name "
             "for it");
  add_option(app, "--api-key KEY", values.key, "with --connect: the server's key ($OPENAI_API_KEY)",
             "LIMPID_API_KEY");
  declare_model(app, values.model);
  declare_generation(app, values.generation);
}

// The stream ends here, and with it the answer becomes a message: a Chat waits for that.
GenerationResult read(TextStream stream, const ShowPiece& show) {
  while (const auto piece = stream.next()) show(*piece);
  return stream.so_far();
}

// A conversation with a model in this process. limpid::Chat does the work; this adds settings by
// name, and why an answer ended.
class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(LanguageModel model, const ChatOptions& options)
      : model_(std::move(model)), chat_(model_, options) {}

  GenerationResult ask(const std::string& question, const ShowPiece& show) override {
    return read(chat_.ask(question), show);
  }
  GenerationResult reply(const ShowPiece& show) override { return read(chat_.reply(), show); }
  const std::vector<Message>& messages() const override { return chat_.messages(); }
  void assign(std::vector<Message> messages) override { chat_.assign(std::move(messages)); }
  SamplerOptions& sampler() override { return chat_.generation().sampler; }
  std::string settings() override { return all_settings(sampler()); }

  // The new settings are checked by building a sampler chain from them.
  void set(std::string_view name, std::string_view value) override {
    SamplerOptions changed = sampler();
    set_sampler(name, value, changed);
    const SamplerChain checked(changed, engine_of(model_)->model().spec().vocab_size, {});
    sampler() = std::move(changed);
  }

  std::string length_note(const GenerationResult& result) override {
    const int64_t limit = chat_.generation().n_predict;
    const bool context_is_full = limit < 0 || std::ssize(result.ids) < limit;
    return context_is_full ? "(ended: the context is full)" : "";
  }

 private:
  LanguageModel model_;
  Chat chat_;
};

// main.cpp has replaced a closed standard input by something that cannot be read.
bool stdin_is_closed() { return (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY; }

// The text of -f, or of a pipe when -p asks a question about it, followed by the text of -p.
// Nothing when neither option was given. `limpid chat -p 'What does it do?' < square.c` sends:
//
//   int square(int x) { return x * x; }
//
//   What does it do?
std::optional<std::string> first_message(const ChatFlags& values) {
  std::string text;
  if (!values.prompt_file.empty()) {
    text = read_text(values.prompt_file);
  } else if (!values.prompt.empty() && !stdin_is_terminal() && !stdin_is_closed()) {
    text = read_text("-");
  }
  if (!values.prompt.empty()) {
    while (text.ends_with('\n')) text.pop_back();
    if (!text.empty()) text += "\n\n";
    text += values.escape ? unescape(values.prompt) : values.prompt;
  }
  if (text.empty()) return std::nullopt;
  return text;
}

// Nothing when no option gave one: the library has a default.
std::optional<std::string> system_message(const ChatFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.system || !values.system_file,
               "-sys and -sysf both give a system message; give one of them");
  if (values.system_file) return read_text(*values.system_file);
  if (!values.system) return std::nullopt;
  return values.escape ? unescape(*values.system) : *values.system;
}

// Applies the recommended settings that no option has set, and returns where they come from. For
// SmolLM2, `--temp 0.5` alone gives temp 0.5 (the user), repeat-penalty 1.1 (tried with Limpid),
// and top-k 40 (the default).
std::string choose_sampler(const std::vector<std::string>& given, const LanguageModel& model,
                           const NamedModel* named, SamplerOptions& sampler) {
  const std::string changed = apply_recommended(given, recommended_sampler(model, named), sampler);
  if (changed.empty())
    return "sampling: the flags, and else the defaults of --help (/set shows all)";
  return fmt::format("sampling: {} (recommended {})", changed,
                     named == nullptr ? "by the model" : fmt::format("for {}", named->name));
}

// Who answers, and what a person sees about them first.
struct Introduced {
  std::unique_ptr<ChatPartner> partner;
  std::string banner;
};

Introduced local_partner(const ChatFlags& values, const std::optional<std::string>& system) {
  ChatOptions chat;
  chat.generation = values.generation.options;
  chat.system = system;
  const LanguageModel model = open_language_model(
      values.model, values.template_file.empty() ? "" : read_text(values.template_file));
  engine_of(model)->tokenizer();  // throws without one
  const std::string& path = engine_of(model)->checkpoint().path;
  LIMPID_CHECK(UnsupportedError, !model.chat_template().empty(),
               "{} carries no chat template; give one with --chat-template-file, or continue plain "
               "text with limpid run",
               path);
  const NamedModel* named = named_model_at(path);
  const std::string sampling =
      choose_sampler(values.generation.given_settings, model, named, chat.generation.sampler);
  if (values.model.verbose) print_log(sampling);
  return {std::make_unique<LocalPartner>(model, chat),
          fmt::format("{}; context {} tokens\n{}\n{}",
                      named == nullptr ? model_name(path) : std::string(named->description),
                      model.n_ctx(), sampling, kKeys)};
}

RemoteServer remote_server(const ChatFlags& values) {
  RemoteServer server{server_root(values.server), values.key};
  if (server.key.empty()) server.key = environment("OPENAI_API_KEY");
  const bool is_plain = std::ranges::all_of(server.key, [](char c) { return c > ' ' && c <= '~'; });
  LIMPID_CHECK(ArgumentError, is_plain, "the key has blanks or characters that no key has");
  return server;
}

// The server's only model, unless -m names one.
std::string remote_model(const ChatFlags& values, const RemoteServer& server) {
  if (is_given(*values.app, "-m")) return values.model.model;
  const std::vector<std::string> names = models_of(server);
  LIMPID_CHECK(ArgumentError, names.size() == 1, "{} has {} models; name one with -m{}{}",
               server.url, names.size(), names.empty() ? "" : ": ", fmt::join(names, ", "));
  return names.front();
}

Introduced remote_partner(const ChatFlags& values, const std::optional<std::string>& system) {
  RemoteOptions remote;
  remote.system = system.value_or(kDefaultSystemPrompt);
  remote.generation = values.generation.options;
  remote.given_settings = values.generation.given_settings;
  remote.server = remote_server(values);
  remote.model = remote_model(values, remote.server);
  std::string banner = fmt::format("{} at {}\n{}", remote.model, remote.server.url, kKeys);
  return {make_remote_partner(std::move(remote)), std::move(banner)};
}

// Of the options that open a model, only its name and -v mean something for a server, and a key
// means something for a server only.
void check_options(const ChatFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.server.empty() || !is_given(*values.app, "--api-key"),
               "--api-key is for a server; name it with --connect");
  if (values.server.empty()) return;
  for (const CLI::Option* option : values.app->get_options()) {
    const std::vector<std::string> names = spellings(*option);
    if (names.empty()) continue;
    const std::string& name = names.front();
    const bool is_refused = option->get_group() == "model"
                                ? name != "-m" && name != "-v"
                                : std::ranges::count(kOfItsAnswers, name) > 0;
    const auto is_long = [](const std::string& other) { return other.starts_with("--"); };
    LIMPID_CHECK(ArgumentError, !is_refused || !is_given(*values.app, name),
                 "{} is for a model in this process; with --connect the server decides",
                 *std::ranges::find_if(names, is_long));
  }
}

int run(const ChatFlags& values) {
  check_options(values);
  ConversationOptions options = values.conversation;
  options.system_is_chosen = values.system || values.system_file;
  options.tells_ids = values.server.empty();
  options.timings = options.timings || values.model.verbose;
  const std::optional<std::string> system = system_message(values);
  const std::optional<std::string> first = first_message(values);
  auto [partner, banner] =
      values.server.empty() ? local_partner(values, system) : remote_partner(values, system);
  if (!options.single_turn && !first) options.banner = std::move(banner);
  InterruptGuard interrupt(values.generation.options.cancel);
  return Conversation(std::move(partner), options, interrupt).hold(first);
}

}  // namespace

Command chat_command() {
  return {"talk with a model", "chat -m FILE [options]",
          "A conversation in the model's own chat format. /help lists the commands; Ctrl-C "
          "stops an answer;\npress it again to leave. Without a terminal each line of standard "
          "input is a "
          "turn.\nSampling settings come from the flags, else from Limpid for a model that "
          "`limpid pull` knows by\nname, else from the model's file, else from the defaults "
          "below.",
          "limpid chat -m smollm2\n"
          "limpid chat -m smollm2 -st -p 'What is the capital of France?' --temp 0\n"
          "limpid chat --connect http://localhost:8080\n"
          "echo 'Name a river.' | limpid chat -m smollm2 -sys 'Answer in one word.'\n"
          "echo 'int f(int x) { return x + 1; }' | limpid chat -m smollm2 -p 'What does it do?'",
          bind<ChatFlags, declare, run>};
}

}  // namespace limpid::cli
