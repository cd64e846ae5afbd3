#include "cli/flags.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>

#include "cli/help.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

struct Values {
  std::string text = "default";
  std::string cache_type;
  std::string file;
  std::vector<std::string> prompts;
  int64_t count = 0;
  std::optional<int64_t> limit;
  double temperature = 0.8;
  bool single_turn = false;
  bool shift = false;
  std::optional<std::string> special;
};

// The message of the ArgumentError that parsing throws, or "".
std::string parse(Values& values, const Arguments& arguments) {
  CLI::App app;
  add_option(app, "-m,--model,model FILE", values.text, "a model", "LIMPID_TEST_MODEL");
  add_option(app, "-ctk,--cache-type-k TYPE", values.cache_type, "a type");
  add_option(app, "-f,--file FILE", values.file, "a file");
  add_option(app, "-p,--prompt TEXT", values.prompts, "prompts");
  add_option(app, "-n,--predict N", values.count, {.least = -1}, "a count", "LIMPID_TEST_COUNT");
  add_option(app, "--limit N", values.limit, Range{0, 20}, "a limit");
  add_option(app, "--temp X", values.temperature, "a number");
  add_switch(app, "-st,--single-turn", values.single_turn, "once");
  add_switch(app, "--shift,!--no-shift", values.shift, "shift", "LIMPID_TEST_SHIFT");
  add_option(app, "--special [LIST]", values.special, "special");
  precedes(app, "--temp", "-n");
  try {
    cli::parse(app, "say", arguments);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Flags, ShortOptionsOfSeveralLettersAreNotSplit) {
  Values values;
  EXPECT_EQ(parse(values, {"-st", "-ctk", "f32", "-n", "5"}), "");
  EXPECT_TRUE(values.single_turn);
  EXPECT_EQ(values.cache_type, "f32");
  EXPECT_EQ(values.count, 5);
}

TEST(Flags, ModelIsAFlagOrTheFirstPosition) {
  Values flag;
  Values position;
  EXPECT_EQ(parse(flag, {"-m", "a.gguf"}), "");
  EXPECT_EQ(parse(position, {"a.gguf", "-st"}), "");
  EXPECT_EQ(flag.text, "a.gguf");
  EXPECT_EQ(position.text, "a.gguf");
}

TEST(Flags, TwoDashesAloneEndTheOptions) {
  Values values;
  EXPECT_EQ(parse(values, {"-st", "--", "-odd=name.gguf"}), "");
  EXPECT_TRUE(values.single_turn);
  EXPECT_EQ(values.text, "-odd=name.gguf");
  EXPECT_NE(parse(values, {"--", "a.gguf", "-st"}).find("unexpected argument '-st'"),
            std::string::npos);
  EXPECT_NE(parse(values, {"a.gguf", "--", "b"}).find("unexpected argument 'b'"),
            std::string::npos);
  EXPECT_EQ(parse(values, {"-p", "--", "-st"}), "");  // the text of -p
  EXPECT_EQ(values.prompts, std::vector<std::string>{"--"});
}

TEST(Flags, APositionThatIsAListTakesAllThatAreLeft) {
  CLI::App app;
  std::string action;
  std::string out;
  std::vector<std::string> files;
  add_option(app, "action ACTION", action, "what to do");
  add_option(app, "files FILE...", files, "files");
  add_option(app, "-o,--output OUT", out, "a file");
  cli::parse(app, "say", {"train", "a", "-o", "b", "c", "-", "d"});
  EXPECT_EQ(action, "train");
  EXPECT_EQ(out, "b");
  EXPECT_EQ(files, (std::vector<std::string>{"a", "c", "-", "d"}));
}

TEST(Flags, ValuesAreTakenAsTheyStand) {
  Values values;
  EXPECT_EQ(parse(values, {"-p", "-st", "-p", "--help me", "-n", "-1", "-p", "-"}), "");
  EXPECT_EQ(values.prompts, (std::vector<std::string>{"-st", "--help me", "-"}));
  EXPECT_EQ(values.count, -1);
  EXPECT_FALSE(values.single_turn);
  EXPECT_TRUE(values.file.empty());
}

TEST(Flags, EveryWayToAttachAValue) {
  Values values;
  EXPECT_EQ(parse(values, {"--cache-type-k=f16", "-n7", "--temp=0.5"}), "");
  EXPECT_EQ(values.cache_type, "f16");
  EXPECT_EQ(values.count, 7);
  EXPECT_EQ(values.temperature, 0.5);
  Values other;
  EXPECT_EQ(parse(other, {"-ctk=f32"}), "");
  EXPECT_EQ(other.cache_type, "f32");
}

TEST(Flags, UnderscoresMayStandForDashes) {
  Values values;
  EXPECT_EQ(parse(values, {"--cache_type_k", "f16", "--single_turn", "--cache-type_k=q8_0"}), "");
  EXPECT_EQ(values.cache_type, "q8_0");
  EXPECT_TRUE(values.single_turn);
  EXPECT_NE(parse(values, {"--cache_typ"}).find("--cache_typ"), std::string::npos);
}

TEST(Flags, AnOptionWithoutANameIsUnknown) {
  Values values;
  EXPECT_EQ(parse(values, {"-=5"}), "unknown option - (limpid say --help lists them)");
  EXPECT_EQ(parse(values, {"--=5"}), "unknown option -- (limpid say --help lists them)");
}

TEST(Flags, ALoneDashIsStandardInput) {
  Values values;
  EXPECT_EQ(parse(values, {"-m", "a.gguf", "-"}), "");
  EXPECT_EQ(values.file, "-");
}

TEST(Flags, OptionalValue) {
  Values without;
  Values with;
  EXPECT_EQ(parse(without, {"--special", "-st"}), "");
  EXPECT_EQ(without.special, "");
  EXPECT_EQ(parse(with, {"--special", "<a>,<b>", "-st"}), "");
  EXPECT_EQ(with.special, "<a>,<b>");
  EXPECT_TRUE(with.single_turn);
}

TEST(Flags, TyposGetTheNearestName) {
  Values values;
  EXPECT_EQ(parse(values, {"--tmep", "1"}), "unknown option --tmep; did you mean --temp?");
  EXPECT_EQ(parse(values, {"-ctkk", "f32"}), "unknown option -ctkk; did you mean -ctk?");
  EXPECT_EQ(parse(values, {"--nothing-like-it"}),
            "unknown option --nothing-like-it (limpid say --help lists them)");
}

TEST(Flags, WrongValuesAreErrors) {
  Values values;
  EXPECT_EQ(parse(values, {"-n", "many"}), "-n: 'many' is not a whole number");
  EXPECT_EQ(parse(values, {"--predict=5x"}), "--predict: '5x' is not a whole number");
  EXPECT_EQ(parse(values, {"-n99999999999999999999"}), "-n: '99999999999999999999' is too large");
  EXPECT_EQ(parse(values, {"-n", "-2"}), "-n: -2 must be at least -1");
  EXPECT_EQ(parse(values, {"--limit", "21"}), "--limit: 21 must be in [0, 20]");
  for (const char* option : {"-n", "--temp", "-ctk", "-f"}) {
    EXPECT_EQ(parse(values, {option, ""}),
              fmt::format("{} '': the value is empty; give one, or leave the option out", option));
  }
  EXPECT_EQ(parse(values, {"--temp", "nan"}), "--temp: 'nan' is not a number");
  EXPECT_EQ(parse(values, {"--temp", "-inf"}), "--temp: '-inf' is not a finite number");
  EXPECT_EQ(parse(values, {"--temp", "1e400"}), "--temp: '1e400' is too large");
  EXPECT_EQ(parse(values, {"-n"}), "-n needs a value");
  EXPECT_EQ(parse(values, {"a.gguf", "b.gguf"}),
            "unexpected argument 'b.gguf': text goes after -p, in quotes (limpid say --help)");
  for (const char* option : {"--single-turn", "--no-shift"}) {
    for (const char* text : {"maybe", "99999999999999999999", "1x", ""})
      EXPECT_EQ(parse(values, {fmt::format("{}={}", option, text)}),
                fmt::format("{}: '{}' is neither on nor off", option, text));
  }
}

TEST(Flags, SwitchesHaveTheWordsOfLlamaServer) {
  for (const char* on : {"on", "1", "true", "enabled", "ENABLED"}) {
    Values values;
    EXPECT_EQ(parse(values, {fmt::format("--shift={}", on)}), "");
    EXPECT_TRUE(values.shift) << on;
    EXPECT_EQ(parse(values, {fmt::format("--no-shift={}", on)}), "");
    EXPECT_FALSE(values.shift) << on;
  }
  for (const char* off : {"off", "0", "false", "disabled"}) {
    Values values;
    EXPECT_EQ(parse(values, {fmt::format("--no-shift={}", off)}), "");
    EXPECT_TRUE(values.shift) << off;
    EXPECT_EQ(parse(values, {fmt::format("--shift={}", off)}), "");
    EXPECT_FALSE(values.shift) << off;
  }
}

TEST(Flags, ANumberTooSmallForItsTypeIsZero) {
  Values values;
  EXPECT_EQ(parse(values, {"--temp", "1e-400"}), "");
  EXPECT_EQ(values.temperature, 0);
}

TEST(Flags, TextsKeepWhatCli11WouldInterpret) {
  Values values;
  EXPECT_EQ(parse(values, {"-p", "{}", "-p", "[a,b]", "-p", "", "--prompt=", "--prompt=x=y"}), "");
  EXPECT_EQ(values.prompts, (std::vector<std::string>{"{}", "[a,b]", "", "", "x=y"}));
}

TEST(Flags, AnOptionalNumberIsEmptyUnlessGiven) {
  Values without;
  EXPECT_EQ(parse(without, {}), "");
  EXPECT_FALSE(without.limit.has_value());
  Values with;
  EXPECT_EQ(parse(with, {"--limit", "7"}), "");
  EXPECT_EQ(with.limit, 7);
}

TEST(Flags, AWrongValueOfTheEnvironmentNamesTheVariable) {
  setenv("LIMPID_TEST_COUNT", "big", 1);
  Values values;
  const std::string message = parse(values, {});
  unsetenv("LIMPID_TEST_COUNT");
  EXPECT_EQ(message, "$LIMPID_TEST_COUNT: 'big' is not a whole number");
  setenv("LIMPID_TEST_SHIFT", "12abc", 1);
  EXPECT_EQ(parse(values, {}), "$LIMPID_TEST_SHIFT: '12abc' is neither on nor off");
  unsetenv("LIMPID_TEST_SHIFT");
}

// As in llama-server.
TEST(Flags, AVariableThatTurnsOffIsPreferred) {
  setenv("LLAMA_ARG_TEST_SHIFT", "1", 1);
  setenv("LLAMA_ARG_NO_TEST_SHIFT", "1", 1);
  for (const bool is_given : {false, true}) {
    CLI::App app;
    bool shift = true;
    add_switch(app, "--shift,!--no-shift", shift, "shift", "LLAMA_ARG_TEST_SHIFT");
    cli::parse(app, "say", is_given ? Arguments{"--shift"} : Arguments{});
    EXPECT_EQ(shift, is_given);
  }
  unsetenv("LLAMA_ARG_TEST_SHIFT");
  unsetenv("LLAMA_ARG_NO_TEST_SHIFT");
}

TEST(Flags, CommandLineBeatsEnvironment) {
  setenv("LIMPID_TEST_MODEL", "from-environment", 1);
  setenv("LIMPID_TEST_SHIFT", "enabled", 1);
  Values environment;
  Values both;
  EXPECT_EQ(parse(environment, {}), "");
  EXPECT_EQ(parse(both, {"-m", "given", "--no-shift"}), "");
  unsetenv("LIMPID_TEST_MODEL");
  unsetenv("LIMPID_TEST_SHIFT");
  EXPECT_EQ(environment.text, "from-environment");
  EXPECT_TRUE(environment.shift);
  EXPECT_EQ(both.text, "given");
  EXPECT_FALSE(both.shift);
}

// --temp precedes -n here.
TEST(Flags, AnOptionPrecedesTheVariableOfAnother) {
  setenv("LIMPID_TEST_COUNT", "5", 1);
  for (const auto& [arguments, count] : {std::pair<Arguments, int64_t>{{}, 5},
                                         {{"--temp", "1"}, 0},
                                         {{"--temp", "1", "-n", "5"}, 5},
                                         {{"-n", "7"}, 7}}) {
    Values values;
    EXPECT_EQ(parse(values, arguments), "");
    EXPECT_EQ(values.count, count);
  }
  Values values;
  EXPECT_EQ(parse(values, {"--temp", "1", "a", "b"}),
            "unexpected argument 'b': text goes after -p, in quotes (limpid say --help)");
  unsetenv("LIMPID_TEST_COUNT");
}

TEST(Flags, WhatIsGivenMayEqualTheEnvironment) {
  setenv("LIMPID_TEST_MODEL", "a", 1);
  for (const auto& [arguments, is_given] :
       {std::pair<Arguments, bool>{{}, false}, {{"-m", "a"}, true}, {{"a"}, true}}) {
    CLI::App app;
    std::string model;
    add_option(app, "-m,--model,model FILE", model, "a model", "LIMPID_TEST_MODEL");
    cli::parse(app, "say", arguments);
    EXPECT_EQ(cli::is_given(app, "--model"), is_given);
    EXPECT_EQ(with_variable(app, "-m a: no"), is_given ? "-m a: no" : "$LIMPID_TEST_MODEL a: no");
    EXPECT_EQ(with_variable(app, "a is no model for -m"), "a is no model for -m");
  }
  unsetenv("LIMPID_TEST_MODEL");
}

TEST(Nearest, OnlyWhatIsNear) {
  const std::vector<std::string> names = {"chat", "run", "tokenize"};
  EXPECT_EQ(nearest("chta", names), "chat");
  EXPECT_EQ(nearest("tokenise", names), "tokenize");
  EXPECT_EQ(nearest("perplexity", names), "");
}

TEST(Flags, AnOptionGivenTwiceTakesTheLast) {
  Values values;
  const Arguments twice = {"-m",  "a",       "-m",         "b",           "-ctk",
                           "f16", "-ctk",    "f32",        "-n",          "1",
                           "-n2", "--temp",  "0.1",        "--temp=0.2",  "-st",
                           "-st", "--shift", "--no-shift", "--special=x", "--special=y"};
  EXPECT_EQ(parse(values, twice), "");
  EXPECT_EQ(values.text, "b");
  EXPECT_EQ(values.cache_type, "f32");
  EXPECT_EQ(values.count, 2);
  EXPECT_EQ(values.temperature, 0.2);
  EXPECT_TRUE(values.single_turn);
  EXPECT_FALSE(values.shift);
  EXPECT_EQ(values.special, "y");
  EXPECT_EQ(parse(values, {"-p", "a", "-p", "b"}), "");
  EXPECT_EQ(values.prompts, (std::vector<std::string>{"a", "b"}));
}

TEST(Wrapped, BreaksAtBlanksAndKeepsLongWordsWhole) {
  EXPECT_EQ(wrapped("one two  three\nfour", 2, 0, 10), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("abcdefghijkl mn", 0, 0, 5), "abcdefghijkl\nmn");
  EXPECT_EQ(wrapped("two", 4, 30, 10), "two");
  EXPECT_EQ(wrapped("ééé ééé", 0, 0, 7), "ééé ééé");  // characters, not bytes
  EXPECT_EQ(wrapped("", 0, 0, 5), "");
}

TEST(Help, ReadsWhatWasDeclared) {
  CLI::App app;
  std::string text;
  CLI::Option* option = add_option(app, "-ctk,--cache-type-k,place TYPE", text, "a type");
  suggest(option, {"f16", "f32"});
  EXPECT_EQ(spellings(*option), (std::vector<std::string>{"-ctk", "--cache-type-k"}));
  EXPECT_EQ(placeholder(*option), "TYPE");
  EXPECT_EQ(likely_values(*option), (std::vector<std::string>{"f16", "f32"}));
  EXPECT_EQ(shown(*option), "-ctk, --cache-type-k TYPE");
  EXPECT_EQ(shown(*add_option(app, "name", text, "a name")), "name");
}

// Square brackets are for a value that may be left out, and for the name of a variable.
TEST(Help, DefaultsStandInParentheses) {
  for (const Command& command : commands()) {
    const DeclaredCommand declared(command);
    for (const CLI::Option* option : declared.app->get_options())
      EXPECT_EQ(option->get_description().find('['), std::string::npos)
          << command.name() << ' ' << shown(*option) << ": " << option->get_description();
  }
}

TEST(HelpText, FitsTheTerminal) {
  const DeclaredCommand command(
      Command{"", "say -m FILE [options] [more options]",
              "Says a good deal about what it does, in more words than one line has room for.", "",
              [](CLI::App& app) -> cli::Run {
                static std::string model;
                static int64_t number = 0;
                add_option(app, "-m,--model FILE", model,
                           "a model, of which there is a lot to be said here", "M");
                add_option(app, "-a,--a-long-name,--another-long-name N", number, "short");
                return {};
              }});
  for (const size_t n_columns : {30U, 50U, 80U, 200U}) {
    const std::string text = help_text(command, n_columns);
    size_t longest = 0;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      longest = std::max(longest, text.find('\n', at) - at);
    EXPECT_LE(longest, n_columns) << text;
    EXPECT_GT(longest, std::min<size_t>(n_columns, 100) / 2) << text;  // and makes use of it
  }
}

}  // namespace
}  // namespace limpid::cli
