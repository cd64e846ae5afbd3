// What Ctrl-C does depends on where it comes:
//   during an answer     the answer ends, and a note; the conversation goes on
//   at the prompt        a note
//   without a terminal   the answer ends and the program with it, exit code 130
// A second one before the next message ends the program at once (cli/signals.h).
#include "cli/conversation.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/error_words.h"

namespace limpid::cli {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kExampleQuestion = "What is the capital of France?";

}  // namespace

Conversation::Conversation(std::unique_ptr<ChatPartner> partner, ConversationOptions options,
                           InterruptGuard& interrupt)
    : partner_(std::move(partner)),
      options_(std::move(options)),
      interrupt_(interrupt),
      reader_(make_line_reader()) {}

// Turns come from `first`, then from the reader. Over a pipe the conversation ends with the input;
// a person ends it with Ctrl-D, /exit, or Ctrl-C twice at the prompt.
int Conversation::hold(std::optional<std::string> first) {
  if (reader_->is_person() && !options_.banner.empty()) print_note(options_.banner);
  if (!options_.system_is_chosen && !has_system_message()) {
    print_note("(the model's chat template takes no system message)");
  }
  bool asked_to_leave = false;
  bool has_taken = false;
  while (!is_over_) {
    std::optional<Turn> turn = first ? Turn{*std::exchange(first, {}), true} : read_turn();
    // The first Ctrl-C at the prompt asks. It stays counted, so a second one leaves at once.
    if (!turn && reader_->is_person() && interrupt_.interrupted() && !asked_to_leave) {
      asked_to_leave = true;
      print_note("(Ctrl-C again, Ctrl-D or /exit leaves)");
      continue;
    }
    if (!turn && !reader_->is_person() && interrupt_.interrupted()) return kExitInterrupted;
    if (!turn && !reader_->is_person() && !has_taken) {
      print_note(fmt::format("standard input is empty; an example question: {}", kExampleQuestion));
      turn = {kExampleQuestion, true};
    }
    if (!turn) return kExitOk;
    has_taken = true;
    interrupt_.clear();
    take(*turn);
    asked_to_leave = interrupt_.interrupted();
  }
  return was_interrupted_ ? kExitInterrupted : kExitOk;
}

// A turn is a line, a block between """, or at a terminal several lines that each end with a
// backslash.
std::optional<Conversation::Turn> Conversation::read_turn() {
  std::optional<std::string> text = reader_->next("> ");
  if (!text) return std::nullopt;
  const bool is_block = text->starts_with(kBlock);
  if (is_block) text = read_block(text->substr(kBlock.size()));
  while (!is_block && reader_->is_person() && text && text->ends_with('\\')) {
    const std::optional<std::string> more = reader_->next(". ");
    if (!more && interrupt_.interrupted()) return std::nullopt;
    text->back() = '\n';
    if (!more) break;
    *text += *more;
  }
  if (!text) return std::nullopt;
  reader_->remember(*text);
  return Turn{std::move(*text), is_block};
}

// `text` is the rest of the line that began the block; the block goes on to the line that ends with
// """, or to the end of input. Newlines beside the quotes do not count.
std::optional<std::string> Conversation::read_block(std::string text) {
  if (text.starts_with('\n')) text.erase(0, 1);  // all of the block was pasted
  while (!text.ends_with(kBlock)) {
    const std::optional<std::string> more = reader_->next(". ");
    if (!more && interrupt_.interrupted()) return std::nullopt;
    if (!more) return text;
    text += (text.empty() ? "" : "\n") + *more;
  }
  text.resize(text.size() - kBlock.size());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// An empty line is not a turn. A block ("""…""") is never a command, so that a text which begins
// with a slash can be sent.
void Conversation::take(const Turn& turn) {
  if (turn.text.empty()) return;
  try {
    if (!turn.is_block && obey(turn.text)) return;
    answer([&](const ShowPiece& show) { return partner_->ask(turn.text, show); });
  } catch (const Error& error) {
    // After an error a person can go on. A script ends with the error, since its next turns would
    // depend on the failed one.
    if (!reader_->is_person() || options_.single_turn) throw;
    print_error(in_program_words(error));
  }
}

void Conversation::answer(const std::function<GenerationResult(const ShowPiece&)>& ask) {
  bool has_begun = false;
  const auto show = [&](std::string_view piece) {
    if (options_.json) return;
    has_begun = true;
    write_out(piece);
    flush_out();
  };
  GenerationResult result;
  try {
    result = ask(show);
  } catch (...) {
    if (has_begun) write_out("\n");  // the error gets a line of its own
    flush_out();
    throw;
  }
  write_out(options_.json ? dump_json(to_json(result, options_.tells_ids)) + "\n" : "\n");
  flush_out();
  if (options_.timings) print_timings({&result, 1});
  tell_how_it_ended(result);
  is_over_ = is_over_ || options_.single_turn;
  // Ctrl-C stays counted for a person, who leaves with a second one.
  if (interrupt_.interrupted() && !goes_on_after_interrupt()) is_over_ = was_interrupted_ = true;
}

bool Conversation::goes_on_after_interrupt() const {
  return reader_->is_person() && !options_.single_turn;
}

// Explains to the person why an answer ended, unless the model ended it.
void Conversation::tell_how_it_ended(const GenerationResult& result) {
  if (result.stop_reason == StopReason::kCancelled)
    print_note(goes_on_after_interrupt() ? "(stopped; Ctrl-C again leaves)" : "(stopped)");
  if (result.stop_reason == StopReason::kRepetition) {
    print_note("(ended: the answer had begun to repeat itself)");
  }
  if (result.stop_reason == StopReason::kLength) {
    const std::string note = partner_->length_note(result);
    if (!note.empty()) print_note(note);
  }
  if (result.n_dropped_messages > 0) {
    print_note(
        fmt::format("(the conversation is longer than the context: the model no longer sees its "
                    "oldest {})",
                    count(result.n_dropped_messages, "message")));
  }
}

bool Conversation::has_system_message() const {
  const std::vector<Message>& messages = partner_->messages();
  return !messages.empty() && messages.front().role == "system";
}

}  // namespace limpid::cli
