// The commands of a conversation: /help, /save, /undo and the others.
//
// A table holds name, argument and help of each command. /help prints the table, and a turn is
// looked up in it, so that a command cannot exist without its help.
//
// Commands that change the past (/undo, /regen, /system, /load) all do the same: they take the
// messages, change the list, and assign it to the partner. The KV cache keeps the common prefix
// with the old list, so only what changed is evaluated again.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_file.h"
#include "base/text.h"
#include "cli/conversation.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "cli/sampler_settings.h"

namespace limpid::cli {

// A row of the table from which /help is printed and turns are dispatched.
struct Conversation::SlashCommand {
  std::string_view name;
  std::string_view argument;  // "": takes none; "[TEXT]": may be left out
  std::string_view help;
  void (Conversation::*run)(const std::string& argument);
};

std::span<const Conversation::SlashCommand> Conversation::slash_commands() {
  static constexpr SlashCommand kCommands[] = {
      {"/help", "", "this list", &Conversation::help},
      {"/regen", "", "answer the last question again", &Conversation::regenerate},
      {"/undo", "", "take the last question and its answer back", &Conversation::undo},
      {"/clear", "", "forget the conversation", &Conversation::clear},
      {"/system", "[TEXT]", "change the system message, or show it", &Conversation::change_system},
      {"/set", "[NAME VALUE]", "change a sampling setting, or show them",
       &Conversation::change_setting},
      {"/save", "FILE", "keep the conversation, as JSON", &Conversation::save},
      {"/load", "FILE", "go on with a conversation that was kept", &Conversation::load},
      {"/exit", "", "leave", &Conversation::leave},
  };
  return kCommands;
}

namespace {

// "/word" at the beginning of `text`, or "": a path such as /usr/bin is not a command.
std::string_view command_word(std::string_view text) {
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool is_command =
      word.size() > 1 && word[0] == '/' && std::all_of(word.begin() + 1, word.end(), is_letter);
  return is_command ? word : "";
}

// `path` with a leading ~/ replaced, as a shell would have done.
std::string with_home(const std::string& path) {
  const std::string home = environment("HOME");
  return !home.empty() && path.starts_with("~/") ? home + path.substr(1) : path;
}

// A conversation as a file, which `limpid template --messages` reads too:
//   [
//    {"role": "system", "content": "You are a helpful assistant."},
//    {"role": "user", "content": "What is the capital of France?"},
//    {"role": "assistant", "content": "The capital of France is Paris."}
//   ]
std::vector<Message> read_conversation(const std::string& path) {
  const JsonFile file(path, read_text(path));
  std::vector<Message> messages;
  for (const JsonPlace& message : file.root().elements()) {
    messages.push_back({std::string(message["role"].string()),  //
                        std::string(message["content"].string())});
  }
  return messages;
}

// A slip such as "/save model.gguf" must not destroy the file, so only a conversation is replaced.
void write_conversation(const std::string& path, const std::vector<Message>& messages) {
  if (is_there(path)) {
    try {
      read_conversation(path);
    } catch (const FormatError&) {
      throw ArgumentError(
          fmt::format("{} exists and is not a conversation; choose another name", path));
    }
  }
  auto json = Json::array();
  for (const Message& message : messages) {
    json.push_back({{"role", message.role}, {"content", message.content}});
  }
  write_text(path, dump_json(json, 1) + "\n");
}

}  // namespace

// "/word" with only letters is a command; a turn such as "/usr/bin is what?" is text.
bool Conversation::obey(const std::string& text) {
  if (text == "exit") return leave(""), true;
  const std::string_view word = command_word(text);
  if (word.empty()) return false;
  std::vector<std::string> names;
  for (const SlashCommand& command : slash_commands()) {
    names.emplace_back(command.name);
    if (command.name != word) continue;
    const std::string argument(trimmed(std::string_view(text).substr(word.size())));
    LIMPID_CHECK(ArgumentError, argument.empty() || !command.argument.empty(),
                 "{} takes nothing after it", word);
    LIMPID_CHECK(ArgumentError,
                 !argument.empty() || command.argument.empty() || command.argument[0] == '[',
                 "{} {}: the argument is missing", word, command.argument);
    (this->*command.run)(argument);
    return true;
  }
  throw ArgumentError(
      fmt::format("no command {}{} (/help lists them; \"\"\"{}\"\"\" sends it as text)", word,
                  did_you_mean(word, names), word));
}

void Conversation::help(const std::string& /*argument*/) {
  std::string text;
  for (const SlashCommand& command : slash_commands()) {
    text += fmt::format("  {:20} {}\n", fmt::format("{} {}", command.name, command.argument),
                        command.help);
  }
  text +=
      "  \"\"\"                  begins and ends a message of several lines\n"
      "  \\ at the end, or Alt-Enter: the message goes on in the next line\n"
      "  Ctrl-C stops an answer, Ctrl-R searches what was typed, Ctrl-D leaves";
  print_note(text);
}

std::vector<Message> Conversation::before_last_question(std::string_view command) const {
  std::vector<Message> messages = partner_->messages();
  while (!messages.empty() && messages.back().role != "user") messages.pop_back();
  LIMPID_CHECK(ArgumentError, !messages.empty(), "{}: the conversation has no question yet",
               command);
  messages.pop_back();
  return messages;
}

// The same seed would repeat the answer, so it is increased by one. The largest is followed by 0.
void Conversation::regenerate(const std::string& /*argument*/) {
  const std::vector<Message> before = partner_->messages();
  std::vector<Message> messages = before_last_question("/regen");
  messages.push_back(before[messages.size()]);
  const size_t n_messages = messages.size();
  SamplerOptions& sampler = partner_->sampler();
  if (sampler.temperature <= 0) {
    print_note("(with temp 0 the same words come again; /set temp 0.8 changes that)");
  }
  if (sampler.seed >= 0) sampler.seed = sampler.seed == INT64_MAX ? 0 : sampler.seed + 1;
  partner_->assign(std::move(messages));
  try {
    answer([this](const ShowPiece& show) { return partner_->reply(show); });
  } catch (...) {  // the old answer stays, unless a new one has begun
    if (partner_->messages().size() == n_messages) partner_->assign(before);
    throw;
  }
}

// Only the first line of the question is shown again: a file may have been a part of it.
void Conversation::undo(const std::string& /*argument*/) {
  std::vector<Message> messages = before_last_question("/undo");
  const std::string question = partner_->messages()[messages.size()].content;
  partner_->assign(std::move(messages));
  print_note(fmt::format("(taken back: {})", question.substr(0, question.find('\n'))));
}

void Conversation::clear(const std::string& /*argument*/) {
  std::vector<Message> messages = partner_->messages();
  const size_t n_kept = has_system_message() ? 1 : 0;  // also one that /system set
  const size_t n_forgotten = messages.size() - n_kept;
  messages.resize(n_kept);
  partner_->assign(std::move(messages));
  print_note(fmt::format("(forgot {})", count(n_forgotten, "message")));
}

void Conversation::save(const std::string& path) {
  write_conversation(with_home(path), partner_->messages());
  print_note(fmt::format("(kept {} in {})", count(partner_->messages().size(), "message"), path));
}

void Conversation::load(const std::string& path) {
  std::vector<Message> messages;
  try {
    messages = read_conversation(with_home(path));
  } catch (const FormatError&) {
    throw ArgumentError(
        fmt::format("{} is not a conversation: /load reads what /save has written, a JSON array of "
                    "{{\"role\", \"content\"}}",
                    path));
  }
  const size_t n_messages = messages.size();
  partner_->assign(std::move(messages));
  print_note(fmt::format("({} from {})", count(n_messages, "message"), path));
}

// The answers that were given under the old message stay in the conversation.
void Conversation::change_system(const std::string& text) {
  std::vector<Message> messages = partner_->messages();
  if (text.empty())
    return print_note(has_system_message() ? messages.front().content : "(no system message)");
  if (!has_system_message()) messages.insert(messages.begin(), {"system", ""});
  messages.front().content = text;
  partner_->assign(std::move(messages));
  print_note("(the system message is changed)");
}

void Conversation::change_setting(const std::string& argument) {
  if (argument.empty()) return print_note(partner_->settings());
  const size_t space = argument.find_first_of(" \t");
  LIMPID_CHECK(ArgumentError, space != std::string::npos, "/set {}: the value is missing",
               argument);
  const SamplerOptions before = partner_->sampler();
  partner_->set(argument.substr(0, space), trimmed(std::string_view(argument).substr(space)));
  const std::string changed = differing_settings(partner_->sampler(), before);
  print_note(fmt::format("({})", changed.empty() ? argument : changed));
}

void Conversation::leave(const std::string& /*argument*/) { is_over_ = true; }

}  // namespace limpid::cli
