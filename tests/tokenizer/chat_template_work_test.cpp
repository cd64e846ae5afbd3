// What a template may cost: everything that a render does is charged to its budget, and neither the
// parser nor the scopes do more work than the template is long.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "allocation_count.h"
#include "limpid/error.hpp"
#include "tokenizer/chat_template.h"

namespace limpid {
namespace {

bool renders_with(const std::string& source, int64_t max_steps) {
  TemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::array();
  TemplateLimits limits;
  limits.max_steps = max_steps;
  const ChatTemplate parsed(source, limits);
  try {
    parsed.render(inputs);
    return true;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more steps"), std::string::npos) << error.what();
    return false;
  }
}

// The smallest limit on steps with which the template renders.
int64_t steps_of(const std::string& source) {
  int64_t too_few = 0;
  int64_t enough = 1;
  while (!renders_with(source, enough)) too_few = std::exchange(enough, 2 * enough);
  while (enough - too_few > 1) {
    const int64_t middle = (too_few + enough) / 2;
    (renders_with(source, middle) ? enough : too_few) = middle;
  }
  return enough;
}

int64_t allocations_of_parsing(const std::string& source) {
  const int64_t before = testing::n_allocations;
  const ChatTemplate parsed(source);
  return testing::n_allocations - before;
}

// part(0) part(1) … part(n - 1), with `between`.
template <class Part>
std::string joined(int n, const std::string& between, Part&& part) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : between) + part(std::to_string(i));
  return text;
}

// A step is 16 units; a parameter, a name and 128 bytes are a unit each.
constexpr int64_t kUnits = 16;
constexpr int kCalls = 20;

std::string in_loop(const std::string& body) {
  return "{% for i in range(" + std::to_string(kCalls) + ") %}" + body + "{% endfor %}";
}

std::string calls_of_macro(int n_parameters) {
  return "{% macro m(" + joined(n_parameters, ",", [](const auto& i) { return "a" + i; }) +
         ") %}{% endmacro %}" + in_loop("{{ m() }}");
}

TEST(ChatTemplateWork, ACallPaysForTheParametersOfItsMacro) {
  const int64_t steps = steps_of(calls_of_macro(200));
  EXPECT_GE(steps, kCalls * 200 / kUnits);
  EXPECT_LE(steps_of(calls_of_macro(400)), 2 * steps + kCalls);
}

TEST(ChatTemplateWork, AnIterationPaysForTheNamesOfItsBody) {
  const auto source = [](int n) {
    return in_loop("{% if true %}{% continue %}{% endif %}" +
                   joined(n, "", [](const auto& i) { return "{% set a" + i + " = 1 %}"; }));
  };
  const int64_t steps = steps_of(source(200));
  EXPECT_GE(steps, kCalls * 200 / kUnits);
  EXPECT_LE(steps_of(source(400)), 2 * steps + kCalls);
}

TEST(ChatTemplateWork, ABuiltinPaysForTheTextsThatItReads) {
  const std::string text = "{% set s = ' ' * 50000 %}";
  const int64_t once = 50000 / 128 / kUnits;
  for (const std::string body :
       {"{{ s.strip() }}", "{{ s|trim }}", "{{ s.lstrip(s) }}", "{{ s is in s }}", "{{ s|title }}",
        "{{ 'x'.strip(s) }}", "{{ s.split()|length }}", "{{ s|int }}"}) {
    EXPECT_GE(steps_of(text + in_loop(body)), kCalls * once) << body;
  }
}

TEST(ChatTemplateWork, BranchesAreNotCopiesOfTheirScope) {
  const auto source = [](int n) {
    return joined(n, "", [](const auto& i) { return "{% set a" + i + " = 1 %}"; }) +
           joined(n, "", [](const auto& i) {
             return "{% if a" + i + " %}{% set b" + i + " = 1 %}{% elif x %}{% endif %}";
           });
  };
  EXPECT_LE(allocations_of_parsing(source(200)), 3 * allocations_of_parsing(source(100)));
}

TEST(ChatTemplateWork, NamesOfBranchesAreFoundAsBefore) {
  // Expected texts are Jinja 3.1's.
  TemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::array();
  inputs.extra = {{"x", "outer"}, {"yes", true}};
  const auto text = [&](const std::string& source) { return ChatTemplate(source).render(inputs); };
  EXPECT_EQ(text("{% if yes %}{% set x = 'set' %}{% endif %}{{ x }}"), "set");
  EXPECT_EQ(text("{% if not yes %}{% set x = 'set' %}{% endif %}{{ x }}"), "outer");
  EXPECT_EQ(text("{% for i in [1] %}{% if yes %}{{ x }}{% else %}{% set x = 1 %}{% endif %}"
                 "{{ x }}{% endfor %}"),
            "outerouter");
  EXPECT_EQ(
      text("{% if not yes %}{% elif yes %}{% if yes %}{% set x = 'deep' %}{% endif %}{% endif %}"
           "{{ x }}"),
      "deep");
}

TEST(ChatTemplateWork, ManyNamesAreOneTemplate) {
  TemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::array();
  const int n = 5000;
  const auto number = [](const auto& i) { return "a" + i + "=" + i; };
  const std::string source =
      "{% macro m(" + joined(n, ",", number) + ") %}{{ a0 }} {{ a4999 }}{% endmacro %}" +
      "{{ m() }} {{ m(" + joined(n, ",", [](const auto& i) { return "a" + i + "=7"; }) + ") }} " +
      "{% set ns = namespace(" + joined(n, ",", number) + ") %}{{ ns.a4999 }}";
  EXPECT_EQ(ChatTemplate(source).render(inputs), "0 4999 7 7 4999");
  EXPECT_THROW(ChatTemplate("{% macro m(" + joined(n, ",", number) + ",a17) %}{% endmacro %}"),
               UnsupportedError);
  EXPECT_THROW(ChatTemplate("{{ m(" + joined(n, ",", number) + ",a17=1) }}"), UnsupportedError);
}

TEST(ChatTemplateWork, DeepMessagesEndInAnError) {
  TemplateInputs inputs;
  inputs.messages =
      nlohmann::ordered_json::parse(R"([{"role": "user", "content": )" + std::string(60'000, '[') +
                                    std::string(60'000, ']') + "}]");
  const ChatTemplate parsed("{{ messages|length }}");
  EXPECT_THROW(parsed.render(inputs), Error);
  inputs.tools = inputs.messages[0]["content"][0].is_array()
                     ? std::move(inputs.messages[0]["content"])
                     : nullptr;
  inputs.messages = nlohmann::ordered_json::array();
  EXPECT_THROW(parsed.render(inputs), Error);
}

}  // namespace
}  // namespace limpid
