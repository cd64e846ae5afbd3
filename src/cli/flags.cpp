#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "cli/known_elsewhere.h"
#include "cli/output.h"
#include "cli/terminal_text.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

// "-c,--ctx-size N" -> {"-c", "--ctx-size"}
std::vector<std::string> names_of(std::string_view declaration) {
  return split(declaration.substr(0, declaration.find(' ')), ',');
}

std::string without_negation(const std::string& name) {
  return name.starts_with('!') ? name.substr(1) : name;
}

bool is_long(std::string_view name) { return name.starts_with("--"); }
bool is_multi_letter_short(std::string_view name) {
  return name.size() > 2 && name[0] == '-' && name[1] != '-';
}

// Letters inserted, removed, replaced, or two neighbours swapped (Damerau 1964).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before;  // rows i - 1, i and i + 1 of the table
  std::vector<size_t> row;
  std::vector<size_t> next(b.size() + 1);
  std::iota(next.begin(), next.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::move(row);
    row = next;
    next[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
  }
  return next.back();
}

// What is wrong with `text` as a number of this type, or "".
template <typename Number>
std::string read_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && after == end) return "";
  if (error == std::errc::result_out_of_range && after == end) return "is too large";
  return std::is_integral_v<Number> ? "is not a whole number" : "is not a number";
}

// Who is asking what a command accepts, instead of running it.
thread_local CommandDescription* asking = nullptr;

// CLI11's own words for "true"; llama.cpp's environment also says "enabled".
std::string as_switch(const std::string& word) {
  if (word == "enabled") return "true";
  if (word == "disabled") return "false";
  return word;
}

}  // namespace

struct Flags::Impl {
  CLI::App app;
};

std::string nearest(std::string_view word, const std::vector<std::string>& choices) {
  std::string best;
  const size_t limit = word.size() <= 2   ? 0
                       : word.size() <= 4 ? 1
                                          : std::max<size_t>(2, word.size() / 3);
  size_t best_distance = limit + 1;
  for (const std::string& choice : choices) {
    const size_t distance = edit_distance(word, choice);
    if (distance < best_distance) {
      best_distance = distance;
      best = choice;
    }
  }
  return best;
}

Flags::Flags(std::string usage, std::string summary, const std::string& examples)
    : description_{std::move(usage), std::move(summary), split(examples, '\n'), {}},
      impl_(std::make_unique<Impl>()) {
  impl_->app.set_help_flag();
  takes_value_["-h"] = takes_value_["--help"] = false;
}

Flags::~Flags() = default;

void Flags::group(std::string title) { group_ = std::move(title); }

std::string Flags::declare(std::string_view declaration, std::string help, const std::string& env,
                           bool takes_value) {
  const size_t space = std::min(declaration.find(' '), declaration.size());
  CommandDescription::Option option{group_,          {},  std::string(declaration.substr(space)),
                                    std::move(help), env, {}};
  if (!option.placeholder.empty()) option.placeholder.erase(0, 1);
  std::string for_parser;
  std::vector<std::string> short_names;
  std::string long_name;
  for (const std::string& name : names_of(declaration)) {
    const std::string spelled = without_negation(name);
    if (is_multi_letter_short(spelled)) {
      short_names.push_back(spelled);
    } else {
      for_parser += (for_parser.empty() ? "" : ",") + name;
      if (is_long(spelled) && long_name.empty()) long_name = spelled;
    }
    if (!spelled.starts_with('-')) continue;  // a position
    takes_value_[spelled] = takes_value;
    option.spellings.push_back(spelled);
  }
  for (const std::string& name : short_names) long_form_[name] = long_name;
  if (option.spellings.empty() && option.placeholder.empty()) option.placeholder = for_parser;
  description_.options.push_back(std::move(option));
  return for_parser;
}

void Flags::text(std::string_view names, std::string& value, std::string help,
                 const std::string& env) {
  auto* option = impl_->app.add_option(declare(names, std::move(help), env, true), value);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!env.empty()) option->envname(env);
}

void Flags::texts(std::string_view names, std::vector<std::string>& values, std::string help) {
  impl_->app.add_option(declare(names, std::move(help), {}, true), values)->allow_extra_args(false);
}

// As the user knows the option: as it was typed, or the variable that gave it.
std::string Flags::name_for_errors(std::string_view declaration, const std::string& env) const {
  const std::vector<std::string> names = names_of(declaration);
  for (const std::string& name : names) {
    if (typed_.contains(name)) return name;
  }
  return env.empty() ? names.front() : "$" + env;
}

void Flags::converted(std::string_view names, std::string help, const std::string& env,
                      std::function<std::string(const std::string&)> convert) {
  const auto read = [this, env, declaration = std::string(names),
                     convert = std::move(convert)](const std::string& text) {
    const std::string problem = convert(text);
    if (problem.empty()) return;
    throw ArgumentError(
        fmt::format("{} '{}': {}", name_for_errors(declaration, env), text, problem));
  };
  auto* option =
      impl_->app.add_option_function<std::string>(declare(names, std::move(help), env, true), read);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!env.empty()) option->envname(env);
}

void Flags::integer(std::string_view names, int64_t& value, std::string help,
                    const std::string& env) {
  converted(names, std::move(help), env,
            [&value](const std::string& text) { return read_number(text, value); });
}

void Flags::number(std::string_view names, double& value, std::string help,
                   const std::string& env) {
  converted(names, std::move(help), env,
            [&value](const std::string& text) { return read_number(text, value); });
}

void Flags::toggle(std::string_view names, bool& value, std::string help, const std::string& env) {
  auto* option = impl_->app.add_flag(declare(names, std::move(help), env, false), value);
  if (!env.empty()) option->envname(env);
  option->transform(
      CLI::Validator([](std::string& word) { return word = as_switch(word), ""; }, ""));
}

void Flags::optional_text(std::string_view names, bool& given, std::string& value,
                          std::string help) {
  impl_->app
      .add_option_function<std::vector<std::string>>(
          declare(names, std::move(help), {}, false),
          [&given, &value](const std::vector<std::string>& words) {
            given = true;
            if (!words.empty()) value = words.back();
          })
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Flags::suggest(std::vector<std::string> values) {
  description_.options.back().values = std::move(values);
}

std::string Flags::command_name() const {
  return description_.usage.substr(0, description_.usage.find(' '));
}

void Flags::unknown_option(const std::string& option) const {
  const std::string_view elsewhere = why_not_here(option);
  if (!elsewhere.empty()) throw ArgumentError(fmt::format("no option {}: {}", option, elsewhere));
  std::vector<std::string> names;
  for (const auto& [name, takes_value] : takes_value_) names.push_back(name);
  const std::string suggestion = nearest(option, names);
  throw ArgumentError(
      suggestion.empty()
          ? fmt::format("no option {} (limpid {} --help lists them)", option, command_name())
          : fmt::format("no option {}; did you mean {}?", option, suggestion));
}

void Flags::unexpected(const std::string& word) const {
  throw ArgumentError(
      takes_value_.contains("--prompt")
          ? fmt::format(
                "unexpected argument '{}': text goes behind -p, in quotes (limpid {} --help)", word,
                command_name())
          : fmt::format("unexpected argument '{}' (limpid {} --help)", word, command_name()));
}

// CLI11 sees only names that it can: long ones, and short ones of a single letter.
Arguments Flags::rewrite(const Arguments& arguments) {
  Arguments result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-" && !dash_.empty()) {
      result.push_back(dash_);
      continue;
    }
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") {
      result.push_back(argument);
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    const auto known = takes_value_.find(name);
    if (known == takes_value_.end()) {
      // -n32: a one-letter option with its number attached.
      const bool attached = !is_long(argument) && takes_value_.contains(argument.substr(0, 2)) &&
                            std::isdigit(static_cast<unsigned char>(argument[2])) != 0;
      if (!attached) unknown_option(name);
      typed_.insert(argument.substr(0, 2));
      result.push_back(argument.substr(0, 2));
      result.push_back(argument.substr(2));
      continue;
    }
    typed_.insert(name);
    const auto rewritten = long_form_.find(name);
    const std::string spelled = rewritten == long_form_.end() ? name : rewritten->second;
    result.push_back(spelled);
    if (equals < argument.size()) {
      if (is_long(spelled)) {
        result.back() += argument.substr(equals);
      } else {
        result.push_back(argument.substr(equals + 1));
      }
    } else if (known->second) {
      if (i + 1 == arguments.size()) throw ArgumentError(fmt::format("{} wants a value", name));
      result.push_back(arguments[++i]);
    }
  }
  return result;
}

CommandDescription Flags::describe(const std::function<void()>& command) {
  CommandDescription description;
  asking = &description;
  command();
  asking = nullptr;
  return description;
}

bool Flags::parse(const Arguments& arguments) {
  if (asking != nullptr) {
    *asking = description_;
    return false;
  }
  for (const std::string& argument : arguments) {
    if (argument == "-h" || argument == "--help") {
      write_out(help_text(description_, terminal_columns(STDOUT_FILENO)));
      return false;
    }
  }
  Arguments words = rewrite(arguments);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    impl_->app.parse(words);
  } catch (const CLI::ExtrasError&) {
    unexpected(impl_->app.remaining().front());
  } catch (const CLI::ParseError& error) {
    throw ArgumentError(error.what());
  }
  return true;
}

bool Flags::given(std::string_view name) const {
  const auto rewritten = long_form_.find(name);
  return impl_->app.count(rewritten == long_form_.end() ? std::string(name) : rewritten->second) >
         0;
}

std::string CommandDescription::Option::shown() const {
  if (spellings.empty()) return placeholder;
  return fmt::format("{}{}{}", fmt::join(spellings, ", "), placeholder.empty() ? "" : " ",
                     placeholder);
}

std::string wrapped(std::string_view text, size_t indent, size_t column, size_t n_columns) {
  std::string out;
  while (true) {
    const size_t begin = text.find_first_not_of(" \n");
    if (begin == text.npos) return out;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    const size_t width = n_characters(word);
    if (out.empty()) {
      column += width;
    } else if (column + 1 + width <= n_columns) {
      out += ' ';
      column += 1 + width;
    } else {
      out += '\n' + std::string(indent, ' ');
      column = indent + width;
    }
    out += word;
  }
}

std::string help_text(const CommandDescription& command, size_t n_columns) {
  constexpr size_t kNames = 34;   // columns for the names of options
  constexpr size_t kNarrow = 60;  // below, help begins on a line of its own
  const size_t indent = n_columns < kNarrow ? 6 : kNames;
  std::string text =
      fmt::format("usage: limpid {}\n\n{}\n", wrapped(command.usage, 4, 14, n_columns),
                  wrapped(command.summary, 0, 0, n_columns));
  std::string group;
  for (const CommandDescription::Option& option : command.options) {
    if (option.group != group) text += fmt::format("\n{}:\n", group = option.group);
    const std::string names = "  " + option.shown();
    const bool same_line = n_characters(names) < indent;
    text += same_line ? names + std::string(indent - n_characters(names), ' ')
                      : "  " + wrapped(names, 4, 2, n_columns) + "\n" + std::string(indent, ' ');
    const std::string env = option.env.empty() ? "" : fmt::format(" [${}]", option.env);
    text += wrapped(option.help + env, indent, indent, n_columns) + "\n";
  }
  text += "\nexamples:\n";
  for (const std::string& example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

}  // namespace limpid::cli
