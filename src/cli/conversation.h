// A conversation on a terminal or over a pipe: reads turns, answers them, and obeys the commands
// that begin with '/'.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat_partner.h"
#include "cli/line_reader.h"
#include "cli/signals.h"

namespace limpid::cli {

struct ConversationOptions {
  std::string banner;             // shown to a person first; "" for none
  bool system_is_chosen = false;  // by the user, who may have chosen none
  bool single_turn = false;
  bool json = false;
  bool tells_ids = true;  // in the JSON: a server reports neither ids nor a seed
  bool timings = false;
};

class Conversation {
 public:
  // `interrupt` must outlive the conversation; its token must be that of the partner's answers.
  Conversation(std::unique_ptr<ChatPartner> partner, ConversationOptions options,
               InterruptGuard& interrupt);

  // Answers `first` if there is one, then what is typed. Returns the exit code.
  int hold(std::optional<std::string> first);

 private:
  struct Turn {
    std::string text;
    bool is_block = false;  // came between """, so it is not a command
  };
  struct SlashCommand;
  static std::span<const SlashCommand> slash_commands();

  std::optional<Turn> read_turn();
  std::optional<std::string> read_block(std::string text);
  void take(const Turn& turn);
  // Runs the turn as a command. Returns false if it is not a command. Throws ArgumentError for an
  // unknown command.
  bool obey(const std::string& text);
  // Shows the answer that `ask` gets from the partner, piece by piece.
  void answer(const std::function<GenerationResult(const ShowPiece&)>& ask);
  void tell_how_it_ended(const GenerationResult& result);
  [[nodiscard]] bool goes_on_after_interrupt() const;

  void help(const std::string& argument);
  void regenerate(const std::string& argument);
  void undo(const std::string& argument);
  void save(const std::string& path);
  void load(const std::string& path);
  void change_system(const std::string& text);
  void change_setting(const std::string& argument);
  void clear(const std::string& argument);
  void leave(const std::string& argument);

  [[nodiscard]] bool has_system_message() const;
  // The messages before the last question. Throws ArgumentError, whose text begins with `command`,
  // when the conversation has no question.
  [[nodiscard]] std::vector<Message> before_last_question(std::string_view command) const;

  std::unique_ptr<ChatPartner> partner_;
  ConversationOptions options_;
  InterruptGuard& interrupt_;
  std::unique_ptr<LineReader> reader_;
  bool is_over_ = false;
  bool was_interrupted_ = false;  // Ctrl-C ended an answer and with it the conversation
};

}  // namespace limpid::cli
