#include "cli/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> result;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    result.emplace_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return result;
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
                       : word.size() == 3 ? 1
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

Flags::Flags(std::string usage, std::string summary, std::string examples)
    : usage_(std::move(usage)),
      summary_(std::move(summary)),
      examples_(std::move(examples)),
      impl_(std::make_unique<Impl>()) {
  impl_->app.set_help_flag();
  takes_value_["-h"] = takes_value_["--help"] = false;
}

Flags::~Flags() = default;

void Flags::group(std::string title) { group_ = std::move(title); }

std::string Flags::declare(std::string_view declaration, std::string help, const std::string& env,
                           bool takes_value) {
  const size_t space = std::min(declaration.find(' '), declaration.size());
  const std::string placeholder(declaration.substr(space));
  std::string for_parser;
  std::string shown;
  std::vector<std::string> short_names;
  std::string long_name;
  for (const std::string& name : split_names(declaration.substr(0, space))) {
    const std::string spelled = name.starts_with('!') ? name.substr(1) : name;
    if (is_multi_letter_short(spelled)) {
      short_names.push_back(spelled);
    } else {
      for_parser += (for_parser.empty() ? "" : ",") + name;
      if (is_long(spelled) && long_name.empty()) long_name = spelled;
    }
    if (!spelled.starts_with('-')) {  // a position; shown where nothing else names it
      if (shown.empty() && declaration.substr(0, space) == spelled) shown = spelled;
      continue;
    }
    takes_value_[spelled] = takes_value;
    shown += (shown.empty() ? "" : ", ") + spelled;
  }
  for (const std::string& name : short_names) long_form_[name] = long_name;
  if (!env.empty()) help += fmt::format(" [${}]", env);
  entries_.push_back({group_, shown + placeholder, std::move(help)});
  return for_parser;
}

void Flags::text(std::string_view names, std::string& value, std::string help,
                 const std::string& env) {
  auto* option = impl_->app.add_option(declare(names, std::move(help), env, true), value);
  if (!env.empty()) option->envname(env);
}

void Flags::texts(std::string_view names, std::vector<std::string>& values, std::string help) {
  impl_->app.add_option(declare(names, std::move(help), {}, true), values)->allow_extra_args(false);
}

void Flags::integer(std::string_view names, int64_t& value, std::string help,
                    const std::string& env) {
  auto* option = impl_->app.add_option(declare(names, std::move(help), env, true), value);
  if (!env.empty()) option->envname(env);
}

void Flags::number(std::string_view names, double& value, std::string help,
                   const std::string& env) {
  auto* option = impl_->app.add_option(declare(names, std::move(help), env, true), value);
  if (!env.empty()) option->envname(env);
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
            if (!words.empty()) value = words.front();
          })
      ->expected(0, 1);
}

void Flags::unknown_option(const std::string& option) const {
  std::vector<std::string> names;
  for (const auto& [name, takes_value] : takes_value_) names.push_back(name);
  const std::string suggestion = nearest(option, names);
  const std::string command = usage_.substr(0, usage_.find(' '));
  throw ArgumentError(
      suggestion.empty()
          ? fmt::format("no option {} (limpid {} --help lists them)", option, command)
          : fmt::format("no option {}; did you mean {}?", option, suggestion));
}

// CLI11 sees only names that it can: long ones, and short ones of a single letter.
Arguments Flags::rewrite(const Arguments& arguments) const {
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
      result.push_back(argument.substr(0, 2));
      result.push_back(argument.substr(2));
      continue;
    }
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

bool Flags::parse(const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "-h" || argument == "--help") return print_help(), false;
  }
  Arguments words = rewrite(arguments);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    impl_->app.parse(words);
  } catch (const CLI::ExtrasError&) {
    throw ArgumentError(fmt::format("unexpected argument '{}' (limpid {} --help)",
                                    impl_->app.remaining().front(),
                                    usage_.substr(0, usage_.find(' '))));
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

void Flags::print_help() const {
  fmt::print("usage: limpid {}\n\n{}\n", usage_, summary_);
  std::string group;
  for (const Entry& entry : entries_) {
    if (entry.group != group) fmt::print("\n{}:\n", group = entry.group);
    if (entry.names.size() > 30) {
      fmt::print("  {}\n  {:32}{}\n", entry.names, "", entry.help);
    } else {
      fmt::print("  {:32}{}\n", entry.names, entry.help);
    }
  }
  fmt::print("\nexamples:\n");
  std::string_view rest = examples_;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    fmt::print("  {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace limpid::cli
