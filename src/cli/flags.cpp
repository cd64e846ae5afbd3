// The grammar of a command line, of which CLI11 understands a part:
//   -n 5   -n5   -n=5   --predict 5   --predict=5     one option, however its value is attached
//   -ctk f32   -st                                    one dash and several letters
//   --context-shift   --no-context-shift              a switch and its negation
//   -p -st                                            "-st" is the value of -p, not an option
//   -                                                 standard input, where the command has -f
//   --                                                the rest are positions: -- -odd.gguf
// prepare() rewrites a line into the part that CLI11 understands. Values are read here, because the
// errors must name the option as the user wrote it: "--predict: 'ten' is not a whole number".
#include "cli/flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "cli/help.h"

namespace limpid::cli {
namespace {

// Options of llama.cpp's programs that Limpid lacks, and why.
constexpr std::string_view kOfGpus[] = {"-sm", "--split-mode", "-ts",   "--tensor-split",
                                        "-mg", "--main-gpu",   "-nkvo", "--no-kv-offload"};
constexpr std::string_view kAlwaysSo[] = {
    "-fa",     "--flash-attn",       "--no-mmap", "--mlock",       "--jinja",     "--no-warmup",
    "-cnv",    "--conversation",     "-i",        "--interactive", "--simple-io", "-co",
    "--color", "--no-display-prompt"};

// Why Limpid lacks an option that users of llama.cpp type out of habit, or "".
std::string_view why_not_here(std::string_view option) {
  if (std::ranges::count(kOfGpus, option) > 0)
    return "a model lies on the device of --device and on that of --split: share its layers out "
           "with --gpu-layers, and leave this out";
  if (std::ranges::count(kAlwaysSo, option) > 0)
    return "there is nothing to switch here; leave it out";
  return "";
}

// The exception for a value that an option cannot take. parse() adds the name under which the user
// gave the option.
struct BadValue {
  std::string option;  // its first name
  std::string problem;
};

// CLI11 knows names of one letter after one dash, and longer ones after two. So an option -ctk is
// "--_ctk" to CLI11, and -c is "--_c": only then do all names keep the order of the declaration.
std::string name_for_parser(std::string_view name) {
  if (name.starts_with('!')) return "!" + name_for_parser(name.substr(1));
  const bool one_dash = name.starts_with('-') && !name.starts_with("--");
  return one_dash ? fmt::format("--_{}", name.substr(1)) : std::string(name);
}

// The parts of a declaration "-c,--ctx-size N".
struct Declaration {
  std::string first_name;
  std::string names;  // as CLI11 takes them
  std::string placeholder;

  explicit Declaration(std::string_view text) {
    const std::string_view before = text.substr(0, text.find(' '));
    first_name = before.substr(0, before.find(','));
    placeholder = text.substr(std::min(before.size() + 1, text.size()));
    for (const std::string& name : CLI::detail::split(std::string(before), ','))
      names += (names.empty() ? "" : ",") + name_for_parser(name);
  }
};

// How many letters must be inserted, removed or replaced, or swapped with their neighbour, to turn
// `a` into `b` (Damerau 1964): 1 for "tmep" and "temp". distance[i][j] is that of the first i
// letters of `a` and the first j of `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> distance(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = distance[i][j] = i + j;
      if (i == 0 || j == 0) continue;
      const size_t replaced = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here = std::min({replaced, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) here = std::min(here, distance[i - 2][j - 2] + 1);
    }
  }
  return distance.back().back();
}

// Options of llama.cpp that Limpid lacks get a reason; other names the nearest spelling, or a hint
// where to look.
[[noreturn]] void fail_unknown(const CLI::App& app, std::string_view command,
                               const std::string& name) {
  const std::string_view reason = why_not_here(name);
  LIMPID_CHECK(ArgumentError, reason.empty(), "unknown option {}: {}", name, reason);
  std::vector<std::string> names = {"-h", "--help"};
  for (const CLI::Option* option : app.get_options())
    std::ranges::move(spellings(*option), std::back_inserter(names));
  const std::string suggestion = did_you_mean(name, names);
  throw ArgumentError(fmt::format(
      "unknown option {}{}", name,
      suggestion.empty() ? fmt::format(" (limpid {} --help lists them)", command) : suggestion));
}

// Rewrites the words for CLI11, and notes the name under which each option was given.
//
// One pass over the words, with the declared options at hand, because a name and a value can look
// alike: in "-p -st" the text "-st" belongs to -p. For the options of `run`
//   -p -st --temp=0.5 -n32 -ctk f32 -
// becomes
//   --_p -st --temp 0.5 --_n 32 --_ctk f32 --_f -
struct Prepared {
  Arguments words;
  std::map<const CLI::Option*, std::string> given_as;
};

Prepared prepare(const CLI::App& app, std::string_view command, const Arguments& arguments) {
  Prepared prepared;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "-" && find_option(app, "-f") != nullptr) {
      prepared.words.insert(prepared.words.end(), {name_for_parser("-f"), name});
      continue;
    }
    if (name == "--") {  // positions follow, whatever they look like
      const auto from = arguments.begin() + static_cast<ptrdiff_t>(i);
      prepared.words.insert(prepared.words.end(), from, arguments.end());
      break;
    }
    if (name.size() < 2 || name[0] != '-') {
      prepared.words.push_back(name);
      continue;
    }
    size_t end = std::min(name.find('='), name.size());
    size_t begin_of_value = end + 1;
    if (end == name.size() && name[1] != '-' && find_option(app, name) == nullptr &&
        std::isdigit(static_cast<unsigned char>(name[2])) != 0)
      end = begin_of_value = 2;  // -n32
    std::optional<std::string> value;
    if (end < name.size()) value = name.substr(begin_of_value);
    name.resize(end);
    const CLI::Option* option = find_option(app, name);
    if (option == nullptr) {  // --ctx_size means --ctx-size, as in llama.cpp
      std::string other = name;
      std::ranges::replace(other, '_', '-');
      if (name.starts_with("--") && find_option(app, other) == nullptr)  // --n-embd means --n_embd
        std::replace(other.begin() + 2, other.end(), '-', '_');
      option = find_option(app, other);
      if (option == nullptr) fail_unknown(app, command, name);
      name = other;
    }
    prepared.given_as[option] = name;
    const bool wants_value = option->get_expected_min() > 0;
    if (wants_value && !value) {
      LIMPID_CHECK(ArgumentError, i + 1 < arguments.size(), "{} needs a value", name);
      value = arguments[++i];
    }
    // Only a text may be empty: -o "$OUT" with a variable that is not set is a mistake, and does
    // not mean that the option is left out.
    LIMPID_CHECK(ArgumentError, !wants_value || !value->empty() || placeholder(*option) == "TEXT",
                 "{} '': the value is empty; give one, or leave the option out", name);
    // An option takes the next word as its value, whatever the word looks like. A switch takes a
    // value only after '='.
    prepared.words.push_back(name_for_parser(name));
    if (value && option->get_expected_max() == 0) {  // CLI11 has other words, and fails at some
      bool is_on = false;
      const std::string problem = read_value(*value, {}, is_on);
      LIMPID_CHECK(ArgumentError, problem.empty(), "{}: {}", name, problem);
      value = is_on ? "true" : "false";
    }
    if (value && wants_value) prepared.words.push_back(*value);
    if (value && !wants_value) prepared.words.back() += "=" + *value;
  }
  return prepared;
}

// Whether the environment turns a switch off by llama.cpp's other name, LLAMA_ARG_NO_… in the place
// of LLAMA_ARG_…: it reads one for each switch that has a negation, whatever the value, and
// prefers it.
bool is_off_in_environment(std::string_view declaration, std::string_view env) {
  constexpr std::string_view kBegin = "LLAMA_ARG_";
  return declaration.find('!') != declaration.npos && env.starts_with(kBegin) &&
         !environment(fmt::format("{}NO_{}", kBegin, env.substr(kBegin.size())).c_str()).empty();
}

// Whether an option on the command line precedes this one, which is in the environment. Also takes
// those options off CLI11's list of excluded ones: CLI11 would refuse both on one command line.
bool is_preceded(const CLI::App& app, CLI::Option* option) {
  const auto is_on_line = [&](const CLI::Option* each) {
    return std::ranges::count(app.parse_order(), each) > 0;
  };
  const auto others = option->get_excludes();
  for (CLI::Option* other : others) option->remove_excludes(other);
  return !is_on_line(option) && std::ranges::any_of(others, is_on_line);
}

// The option as the user gave it: by one of its names, or in the environment.
std::string given_name(const Prepared& prepared, const CLI::Option* option) {
  const auto name = prepared.given_as.find(option);
  return name == prepared.given_as.end() ? "$" + option->get_envname() : name->second;
}

// Of an option that was given without the one that it needs: "--layer requires --trace".
std::string missing_partner(const CLI::App& app, const Prepared& prepared) {
  for (const CLI::Option* option : app.get_options()) {
    for (const CLI::Option* other : option->get_needs()) {
      if (option->count() > 0 && other->count() == 0)
        return fmt::format("{} requires {}", given_name(prepared, option),
                           spellings(*other).front());
    }
  }
  return {};
}

}  // namespace

void group(CLI::App& app, std::string_view title) {
  app.option_defaults()->group(std::string(title));
}

template <typename Number>
std::string read_value(const std::string& text, const Range& range, Number& value) {
  const char* end = text.data() + text.size();
  Number number{};
  const auto [after, error] = std::from_chars(text.data(), end, number);
  // In double precision: as a float, 1e30 is above a bound of 1e30, and 1e-50 is not read at all.
  const bool is_whole = std::is_integral_v<Number> && error == std::errc();
  const double wide = is_whole ? static_cast<double>(number) : std::strtod(text.c_str(), nullptr);
  if (after != end || error == std::errc::invalid_argument || std::isnan(wide))
    return fmt::format("'{}' is not a {}", text,
                       std::is_integral_v<Number> ? "whole number" : "number");
  if (error != std::errc() && std::abs(wide) > 1) return fmt::format("'{}' is too large", text);
  if (std::isinf(wide)) return fmt::format("'{}' is not a finite number", text);
  if (wide >= range.least && wide <= range.most) return value = number, "";
  if (std::isinf(range.most)) return fmt::format("{} must be at least {}", text, range.least);
  if (std::isinf(range.least)) return fmt::format("{} must be at most {}", text, range.most);
  return fmt::format("{} must be in [{}, {}]", text, range.least, range.most);
}
template std::string read_value(const std::string&, const Range&, int&);
template std::string read_value(const std::string&, const Range&, int64_t&);
template std::string read_value(const std::string&, const Range&, float&);
template std::string read_value(const std::string&, const Range&, double&);

std::string read_value(const std::string& text, const Range& /*range*/, std::string& value) {
  return value = text, "";
}

std::string read_value(const std::string& text, const Range& /*range*/, bool& value) {
  constexpr std::string_view kOn[] = {"on", "1", "true", "enabled", "enable", "yes"};
  constexpr std::string_view kOff[] = {"off", "0", "false", "disabled", "disable", "no"};
  const std::string word = CLI::detail::to_lower(text);
  value = std::ranges::count(kOn, word) > 0;
  if (value || std::ranges::count(kOff, word) > 0) return "";
  return fmt::format("'{}' is neither on nor off", text);
}

std::string read_value(const std::string& text, const Range& /*range*/,
                       std::vector<std::string>& value) {
  return value.push_back(text), "";
}

// CLI11 passes the texts on unchanged, because its own conversions read "010" as octal, "{}" as an
// empty list, and take a number that is too large for its largest value.
CLI::Option* add_list(CLI::App& app, std::string_view text,
                      std::function<std::string(const std::string&)> read, std::string help,
                      std::string_view env) {
  const Declaration declaration(text);
  const CLI::callback_t callback = [&app, name = declaration.first_name,
                                    read = std::move(read)](const CLI::results_t& texts) {
    if (is_preceded(app, find_option(app, name))) return true;
    for (const std::string& each : texts) {
      const std::string problem = read(each);
      if (!problem.empty()) throw BadValue{name, problem};
    }
    return true;
  };
  const std::string& value = declaration.placeholder;
  const bool takes_several = value.ends_with("...");
  const bool may_lack = value.starts_with('[');
  CLI::Option* option = app.add_option(declaration.names, callback, std::move(help))
                            ->type_name(value)
                            ->allow_extra_args(takes_several)
                            ->multi_option_policy(may_lack ? CLI::MultiOptionPolicy::TakeLast
                                                           : CLI::MultiOptionPolicy::TakeAll)
                            ->envname(std::string(env));
  if (takes_several) option->expected(1, CLI::detail::expected_max_vector_size);
  return may_lack ? option->expected(0, 1) : option;
}

// The texts are those of the environment, or what prepare() made of others.
CLI::Option* add_switch(CLI::App& app, std::string_view text, bool& value, std::string help,
                        std::string_view env) {
  const Declaration declaration(text);
  const bool is_off = is_off_in_environment(text, env);
  if (is_off) value = false;
  const auto read = [&app, name = declaration.first_name, is_off](const std::string& word) {
    bool is_on = false;
    if (is_off && !is_given(app, name)) return "false";
    const std::string problem = read_value(word, {}, is_on);
    if (!problem.empty()) throw BadValue{name, problem};
    return is_on ? "true" : "false";
  };
  return app.add_flag(declaration.names, value, std::move(help))
      ->type_name("")
      ->transform(read)
      ->envname(std::string(env));
}

// placeholder() and likely_values() of help.cpp take them apart again.
void suggest(CLI::Option* option, const std::vector<std::string>& values) {
  option->type_name(fmt::format("{}:{}", option->get_type_name(), fmt::join(values, " ")));
}

void add_one_of(CLI::App& app, std::string_view declaration, std::string& value,
                const std::vector<std::string>& choices, std::string help, std::string_view env) {
  const auto read = [&value, choices](const std::string& text) -> std::string {
    if (std::ranges::count(choices, text) > 0) return value = text, "";
    return fmt::format("'{}' is not one of {}{}", text, fmt::join(choices, ", "),
                       did_you_mean(text, choices));
  };
  suggest(add_list(app, declaration, read, std::move(help), env), choices);
}

void needs(CLI::Option* option, CLI::Option* other) { option->needs(other); }

CLI::Option* find_option(const CLI::App& app, std::string_view name) {
  return const_cast<CLI::App&>(app).get_option_no_throw(name_for_parser(name));
}

// CLI11 keeps the list, as options that exclude each other: there both options of a pair, here only
// `other`, unless it precedes `option` too.
void precedes(const CLI::App& app, std::string_view option, std::string_view other) {
  CLI::Option* first = find_option(app, option);
  CLI::Option* second = find_option(app, other);
  const bool is_mutual = first->get_excludes().contains(second);
  second->excludes(first);
  if (!is_mutual) first->remove_excludes(second);
}

bool is_given(const CLI::App& app, std::string_view name) {
  return std::ranges::count(app.parse_order(), find_option(app, name)) > 0;
}

std::string with_variable(const CLI::App& app, const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(" :"));
  const CLI::Option* option = name.starts_with('-') ? find_option(app, name) : nullptr;
  if (option == nullptr || option->count() == 0 || is_given(app, name)) return message;
  return "$" + option->get_envname() + message.substr(name.size());
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The words of CLI11's own errors are kept only where it knows more than prepare(): "--single-turn"
// with a value that is neither true nor false.
void parse(CLI::App& app, std::string_view command, const Arguments& arguments) {
  Prepared prepared = prepare(app, command, arguments);
  std::ranges::reverse(prepared.words);  // CLI11 takes them from the back
  try {
    app.parse(std::move(prepared.words));
  } catch (const BadValue& bad) {
    throw ArgumentError(
        fmt::format("{}: {}", given_name(prepared, find_option(app, bad.option)), bad.problem));
  } catch (const CLI::RequiresError&) {
    throw ArgumentError(missing_partner(app, prepared));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> left = app.remaining();  // "--" included
    throw ArgumentError(fmt::format(
        "unexpected argument '{}'{} (limpid {} --help)", left[left.front() == "--" ? 1 : 0],
        find_option(app, "--prompt") != nullptr ? ": text goes after -p, in quotes" : "", command));
  } catch (const CLI::ParseError& error) {
    throw ArgumentError(error.what());
  }
}

// A short word must be nearer than a long one: "-n" is not a typo of "-p".
std::string nearest(std::string_view word, const std::vector<std::string>& choices) {
  const auto distance = [word](const std::string& choice) { return edit_distance(word, choice); };
  const size_t limit = word.size() <= 2   ? 0
                       : word.size() <= 4 ? 1
                                          : std::max<size_t>(2, word.size() / 3);
  const auto best = std::ranges::min_element(choices, {}, distance);
  return best == choices.end() || distance(*best) > limit ? "" : *best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& choices) {
  const std::string suggestion = nearest(word, choices);
  return suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion);
}

}  // namespace limpid::cli
