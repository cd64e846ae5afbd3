#include "cli/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

struct Values {
  std::string text = "default";
  std::string cache_type;
  std::string file;
  std::vector<std::string> prompts;
  std::string special_list;
  int64_t count = 0;
  double temperature = 0.8;
  bool single_turn = false;
  bool shift = false;
  bool special = false;
};

// The message of the ArgumentError that parsing throws, or "".
std::string parse(Values& values, const Arguments& arguments) {
  Flags flags("say -m FILE", "Says.", "limpid say");
  flags.text("-m,--model,model FILE", values.text, "a model", "LIMPID_TEST_MODEL");
  flags.text("-ctk,--cache-type-k TYPE", values.cache_type, "a type");
  flags.text("-f,--file FILE", values.file, "a file");
  flags.texts("-p,--prompt TEXT", values.prompts, "prompts");
  flags.integer("-n,--predict N", values.count, "a count");
  flags.number("--temp X", values.temperature, "a number");
  flags.toggle("-st,--single-turn", values.single_turn, "once");
  flags.toggle("--shift,!--no-shift", values.shift, "shift", "LIMPID_TEST_SHIFT");
  flags.optional_text("--special [LIST]", values.special, values.special_list, "special");
  flags.dash_means("--file=-");
  try {
    EXPECT_TRUE(flags.parse(arguments));
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

TEST(Flags, ALoneDashIsStandardInput) {
  Values values;
  EXPECT_EQ(parse(values, {"-m", "a.gguf", "-"}), "");
  EXPECT_EQ(values.file, "-");
}

TEST(Flags, OptionalValue) {
  Values without;
  Values with;
  EXPECT_EQ(parse(without, {"--special", "-st"}), "");
  EXPECT_TRUE(without.special);
  EXPECT_TRUE(without.special_list.empty());
  EXPECT_EQ(parse(with, {"--special", "<a>,<b>", "-st"}), "");
  EXPECT_EQ(with.special_list, "<a>,<b>");
  EXPECT_TRUE(with.single_turn);
}

TEST(Flags, TyposGetTheNearestName) {
  Values values;
  EXPECT_EQ(parse(values, {"--tmep", "1"}), "no option --tmep; did you mean --temp?");
  EXPECT_EQ(parse(values, {"-ctkk", "f32"}), "no option -ctkk; did you mean -ctk?");
  EXPECT_EQ(parse(values, {"--nothing-like-it"}),
            "no option --nothing-like-it (limpid say --help lists them)");
}

TEST(Flags, WrongValuesAreErrors) {
  Values values;
  EXPECT_NE(parse(values, {"-n", "many"}), "");
  EXPECT_NE(parse(values, {"-n", "5x"}), "");
  EXPECT_NE(parse(values, {"-n"}), "");
  EXPECT_NE(parse(values, {"a.gguf", "b.gguf"}), "");
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
  EXPECT_EQ(values.special_list, "y");
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

TEST(HelpText, FitsTheTerminal) {
  CommandDescription command;
  command.usage = "say -m FILE [options] [more options]";
  command.summary =
      "Says a good deal about what it does, in more words than one line has room for.";
  command.options = {
      {"options",
       {"-m", "--model"},
       "FILE",
       "a model, of which there is a lot to be said here",
       "M",
       {}},
      {"options", {"-a", "--a-long-name", "--another-long-name"}, "N", "short", "", {}}};
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
