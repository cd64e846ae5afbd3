// The settings of a run of training.
#include "train/run_settings.h"

#include <gtest/gtest.h>

#include "base/parse_number.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// "tokens of a sample (128)" -> "128".
std::string_view default_in(std::string_view help) {
  if (!help.ends_with(')')) return {};
  help.remove_suffix(1);
  return help.substr(help.rfind('(') + 1);
}

TEST(RunSettings, HaveTheDefaultsThatTheirHelpStates) {
  RunSettings settings;
  int n_numbers = 0;
  RunSettings::for_each(
      settings, [&](const char* name, const auto& value, auto, const char* help, auto...) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
          const auto stated = parse_number<double>(default_in(help));
          if (!stated) return;
          EXPECT_EQ(*stated, static_cast<double>(value)) << name;
          ++n_numbers;
        }
      });
  EXPECT_GT(n_numbers, 15);
}

TEST(RunSettings, AreRefusedBelowTheirLeastValue) {
  RunSettings settings;
  settings.config = "gpt2";
  settings.data = {"text"};
  EXPECT_NO_THROW(settings.check());
  settings.keep = 0;
  EXPECT_THROW(settings.check(), ArgumentError);
  settings.keep = 1;
  settings.clip = -0.5;
  EXPECT_THROW(settings.check(), ArgumentError);
}

// run.json could not hold them.
TEST(RunSettings, AreRefusedUnlessTheyAreUtf8) {
  RunSettings settings;
  settings.config = "gpt2";
  settings.data = {"text", "te\xFFxt"};
  EXPECT_THROW(settings.check(), ArgumentError);
  settings.data = {"text"};
  settings.sample_prompt = "a\xFF";
  EXPECT_THROW(settings.check(), ArgumentError);
}

}  // namespace
}  // namespace limpid
