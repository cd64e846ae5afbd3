// "use a smaller context (OpenOptions::n_ctx)" becomes "use a smaller context (-c)": the library
// does not know what a program calls its options.
//
// The library throws one message for all programs that use it. Only this file knows both names, so
// an option that is renamed is changed in one place.
#include "cli/error_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error_text.h"
#include "base/text.h"

namespace limpid::cli {
namespace {

using Words = std::pair<std::string_view, std::string_view>;  // the library's, and ours

constexpr Words kWords[] = {
    {"name a device that is here (OpenOptions::device)",
     "see limpid doctor, or name a device that is here (--device)"},
    {"OpenOptions::n_batch", "-b"},
    {"OpenOptions::n_ctx", "-c"},
    {"OpenOptions::tokenizer_path", "--tokenizer"},
    // Not every command that quantises has the option.
    {"set PlanOptions::allow_requantize",
     "make the file by limpid convert or limpid quantize with --allow-requantize"},
    {"RunSettings::model", "-m"},
    {"Address already in use", "another program has the port; choose one with --port"},
    // The model may have one that it does not add.
    {"the model has no BOS token to begin with", "the model adds no BOS token: give a text (-p)"},
};

// The messages of a part of the library begin with its name: "[session] …; lower n_keep". The words
// are options in such a message; in another one they may be keys of a file.
constexpr Words kWordsOfParts[] = {{"n_ctx", "-c"}, {"n_keep", "--keep"}, {"n_predict", "-n"}};

// For each other member of these structs there is an option of its name, which has this between its
// words: "RunSettings::seq_len" is "--seq-len". Those of microgpt have the names of its settings.
constexpr Words kStructs[] = {
    {"OpenOptions::", "-"}, {"RunSettings::", "-"}, {"Config::", "_"}, {"Shape::", "_"}};

// In tokens. A model without learned positions has no limit, so this is ten times what any model
// was trained for.
int64_t largest_context = 1 << 24;

// A text that is longer than any context must be shortened.
std::string advice_on(const ContextOverflowError& error) {
  if (error.n_tokens() > largest_context)
    return fmt::format(" (the model has {} positions): shorten the text", largest_context);
  const std::string context = sufficient_context(error);
  return ": shorten the text, or use " +
         (context.empty() ? "a larger -c and a smaller -n" : context);
}

std::string with_options_of(std::string_view name, std::string_view between,
                            const std::string& message) {
  std::string out;
  size_t at = 0;
  for (size_t hit = 0; (hit = message.find(name, at)) != message.npos;) {
    const size_t begin = hit + name.size();
    const size_t end = std::min(
        message.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", begin), message.size());
    out += message.substr(at, hit - at) + "--" +
           replaced(std::string_view(message).substr(begin, end - begin), "_", between);
    at = end;
  }
  return out + message.substr(at);
}

}  // namespace

ArgumentError in_line(int64_t number, const ArgumentError& error) {
  return ArgumentError(fmt::format("line {}: {}", number, without_part(error)));
}

void set_largest_context(int64_t n_positions) { largest_context = n_positions; }

// Advice must work when it is followed, so no context is recommended that the model cannot have.
std::string sufficient_context(const ContextOverflowError& error) {
  return error.n_needed() > largest_context ? "" : fmt::format("-c {}", error.n_needed());
}

// The library names its own options in messages; here they get the names of the command line.
std::string in_program_words(const std::exception& error) {
  if (const auto* overflow = dynamic_cast<const ContextOverflowError*>(&error)) {
    return fmt::format("the sequence has {} tokens and the context holds {}{}",
                       overflow->n_tokens(), overflow->n_ctx(), advice_on(*overflow));
  }
  std::string message = without_part(error);
  if (message.size() < std::string_view(error.what()).size()) {
    for (const auto& [word, ours] : kWordsOfParts) message = replaced(message, word, ours);
  }
  for (const auto& [word, ours] : kWords) message = replaced(message, word, ours);
  for (const auto& [name, between] : kStructs) message = with_options_of(name, between, message);
  return message;
}

}  // namespace limpid::cli
