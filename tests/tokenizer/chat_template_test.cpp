#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "data_paths.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using nlohmann::ordered_json;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ordered_json read_golden(const std::string& name) {
  return ordered_json::parse(read_text(testing::test_data_path(name)));
}

TemplateInputs inputs_of(const ordered_json& c) {
  TemplateInputs inputs;
  inputs.messages = c.value("messages", ordered_json::array());
  inputs.tools = c.value("tools", ordered_json());
  inputs.extra = c.value("extra", ordered_json());
  inputs.bos_token = c.value("bos_token", "");
  inputs.eos_token = c.value("eos_token", "");
  inputs.add_generation_prompt = c.value("add_generation_prompt", false);
  inputs.now = c.value("now", int64_t{0});
  return inputs;
}

// The text, "error", or "refused: " and the words of an UnsupportedError that says so.
std::string outcome(const std::string& source, const TemplateInputs& inputs) {
  try {
    return ChatTemplate(source).render(inputs);
  } catch (const Error& error) {
    const std::string words = error.what();
    EXPECT_NE(words.find("line "), std::string::npos) << words;
    const size_t end = words.find(" is not supported in chat templates");
    const bool is_refusal = dynamic_cast<const UnsupportedError*>(&error) != nullptr;
    if (is_refusal && end != std::string::npos) return "refused: " + words.substr(0, end);
    return "error";
  }
}

class ChatTemplateTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {  // strftime_now shows local time; the goldens are in UTC
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(ChatTemplateTest, SnippetsGiveWhatJinjaGives) {
  const ordered_json golden = read_golden("template_expressions_golden.json");
  TemplateInputs inputs;
  inputs.messages = ordered_json::array();
  inputs.extra = golden["variables"];
  inputs.add_generation_prompt = false;
  inputs.now = golden["now"].get<int64_t>();
  const auto& cases = golden["cases"];
  ASSERT_EQ(cases.size(), 722u);
  ASSERT_GT(
      std::count_if(cases.begin(), cases.end(), [](const auto& c) { return c.contains("text"); }),
      400);
  for (const auto& c : golden["cases"]) {
    const auto source = c["template"].get<std::string>();
    const std::string got = outcome(source, inputs);
    if (c.contains("refused")) {
      EXPECT_EQ(got.find("refused: " + c["refused"].get<std::string>()), 0u) << source << "\n"
                                                                             << got;
    } else if (c.contains("error")) {
      EXPECT_TRUE(got == "error" || got.starts_with("refused: ")) << source << "\n" << got;
    } else {
      EXPECT_EQ(got, c["text"].get<std::string>()) << source;
    }
  }
}

TEST_F(ChatTemplateTest, TemplatesInTheShapeOfReleasedOnes) {
  const ordered_json golden = read_golden("chat_templates_golden.json");
  const std::string folder = testing::source_path("tests/tokenizer/templates/");
  ASSERT_GT(golden["cases"].size(), 100u);
  for (const auto& c : golden["cases"]) {
    const auto name = c["template"].get<std::string>();
    const std::string source = read_text(folder + name + ".jinja");
    ASSERT_FALSE(source.empty()) << name;
    const auto& conversation = golden["conversations"][c["case"].get<std::string>()];
    EXPECT_EQ(outcome(source, inputs_of(conversation)), c.value("text", "error"))
        << name << ", " << c["case"];
  }
}

TEST_F(ChatTemplateTest, MiniMindsOwnTemplate) {
  const std::string path =
      testing::shared_data_path("models/minimind2-small/tokenizer_config.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto source = ordered_json::parse(read_text(path))["chat_template"].get<std::string>();
  TemplateInputs inputs;
  inputs.messages = ordered_json::parse(
      R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])");
  EXPECT_EQ(outcome(source, inputs),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(ChatTemplateTest, ErrorsSayWhere) {
  TemplateInputs inputs;
  inputs.messages = ordered_json::array();
  const auto message_of = [&](const std::string& source) -> std::string {
    try {
      ChatTemplate(source).render(inputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of("a\n  {{ raise_exception('Roles must alternate') }}"),
            "Roles must alternate (chat template, line 2, column 22)");
  EXPECT_NE(message_of("x\ny {% nonsense %}").find("line 2, column 6"), std::string::npos);
  EXPECT_EQ(
      message_of("a\n{{ messages|xmlattr }}"),
      "filter 'xmlattr' is not supported in chat templates (chat template, line 2, column 13)");
  EXPECT_EQ(message_of("{% if true %}{{ 'a'.zfill(3) }}{% endif %}"),
            "the method 'zfill' of str is not supported in chat templates (chat template, line 1, "
            "column 17)");
  EXPECT_EQ(message_of("{% with %}{% endwith %}"),
            "tag 'with' is not supported in chat templates (chat template, line 1, column 4)");
  EXPECT_THROW(ChatTemplate("{% if x %}"), UnsupportedError);
  EXPECT_THROW(ChatTemplate("{{ x|no_such_filter }}"), UnsupportedError);
  EXPECT_THROW(ChatTemplate("{{ 'a'|pprint }}").render(inputs), UnsupportedError);
}

TEST_F(ChatTemplateTest, WrongInputsAreRefused) {
  const ChatTemplate parsed("{{ messages|length }}");
  TemplateInputs inputs;
  EXPECT_THROW(parsed.render(inputs), ArgumentError);
  inputs.messages = ordered_json::parse("[1]");
  EXPECT_THROW(parsed.render(inputs), ArgumentError);
  inputs.messages = ordered_json::array();
  inputs.extra = ordered_json::parse(R"({"tools": 1})");
  EXPECT_THROW(parsed.render(inputs), ArgumentError);
  inputs.extra = ordered_json::parse("[1]");
  EXPECT_THROW(parsed.render(inputs), ArgumentError);
}

void expect_bomb_ends(const std::string& source) {
  TemplateInputs inputs;
  inputs.messages = ordered_json::array();
  const std::clock_t begin = std::clock();
  EXPECT_THROW(ChatTemplate(source).render(inputs), Error) << source.substr(0, 200);
  // Processor time, with room for sanitizers; without a limit it would be hours.
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 120) << source.substr(0, 200);
}

TEST_F(ChatTemplateTest, BombsEndInAnError) {
  const std::string in_loop = "{% set ns = namespace(v=[1], s='ab') %}{% for i in range(99999) %}";
  for (const std::string source : {
           "{% for i in range(1000000000) %}x{% endfor %}",
           "{{ 'a' * 1000000000 }}",
           "{{ [1] * 10000000000 }}",
           "{{ 1000000000 * 10000000000 }}",
           "{{ 9223372036854775807 + 1 }}",
           "{{ -9223372036854775807 - 2 }}",
           "{{ 'a\nb'|indent(10000000000) }}",
           "{{ [1]|tojson(indent=10000000000) }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
           "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
           "{% set s = 'a' * 9000000 %}{% for i in range(99999) %}{{ s }}{% endfor %}",
           "{{ ('a' * 99999)|replace('a', 'b' * 99999) }}",
           "{{ ('a' * 99999).replace('', 'b' * 99999) }}",
           "{{ ('a' * 99999)|list|join('b' * 99999) }}",
           "{{ ('b' * 99999).join(('a' * 99999)|list) }}",
       }) {
    expect_bomb_ends(source);
  }
  for (const std::string body : {
           "{% set x = range(100000)|list %}",
           "{% set ns.s = ns.s ~ ns.s %}",
           "{% set ns.v = ns.v + ns.v %}",
           "{% set ns.v = [ns.v] %}",
           "{% set ns.v = ns.v|map('list') %}",
           "{% set ns.v = ns.v + ['a' * 9999999 ~ i] %}",
           "{% set ns.s = 'a' * 9999999 %}{% if ns.s ~ i == ns.s ~ 0 %}{% endif %}",
       }) {
    expect_bomb_ends(in_loop + body + "{% endfor %}");
  }
  const std::string dag =
      "{% set ns = namespace(v=(1,)) %}{% for i in range(99) %}"
      "{% set ns.v = (ns.v, ns.v) %}{% endfor %}";
  expect_bomb_ends(dag + "{{ ns.v }}");
  expect_bomb_ends(dag + "{{ ns.v|tojson }}");
}

TEST_F(ChatTemplateTest, DeepNestingEndsInAnError) {
  const auto repeated = [](const std::string& part) {
    std::string out;
    for (int i = 0; i < 20000; ++i) out += part;
    return out;
  };
  for (const auto& [before, middle, after] : std::vector<std::array<std::string, 3>>{
           {"{{ (", "1", ") }}"},
           {"{% if 1 %}", "x", "{% endif %}"},
           {"{% for x in [1] %}", "x", "{% endfor %}"},
       }) {
    expect_bomb_ends(repeated(before) + middle + repeated(after));
  }
  for (const std::string part : {"(", "[", "{1:", "not ", "- ", "1 if 1 else ", "x is in ("}) {
    expect_bomb_ends("{{ " + repeated(part) + "1 }}");
  }
  for (const std::string part : {" + 1", ".a", "[0]", "|string", " if 1", " and 1", " ~ 1"}) {
    expect_bomb_ends("{{ 1" + repeated(part) + " }}");
  }
}

TEST_F(ChatTemplateTest, LimitsAreTheCallers) {
  TemplateInputs inputs;
  inputs.messages = ordered_json::array();
  const std::string source = "{% for i in range(100) %}abcdefghij{% endfor %}";
  EXPECT_EQ(ChatTemplate(source).render(inputs).size(), 1000u);
  TemplateLimits limits;
  limits.max_output_bytes = 999;
  EXPECT_THROW(ChatTemplate(source, limits).render(inputs), Error);
  limits = {};
  limits.max_steps = 150;
  EXPECT_THROW(ChatTemplate(source, limits).render(inputs), Error);
  limits = {};
  limits.max_depth = 2;
  EXPECT_THROW(
      ChatTemplate("{% if 1 %}{% if 1 %}{% if 1 %}{% endif %}{% endif %}{% endif %}", limits),
      UnsupportedError);
}

TEST_F(ChatTemplateTest, EqualItemsNeedNoOrderAndSafeTextsEscape) {
  TemplateInputs inputs;
  inputs.messages = ordered_json::array();
  EXPECT_EQ(outcome("{{ [none, none]|sort }}", inputs), "[None, None]");
  EXPECT_EQ(outcome("{{ '\\x7f'|tojson(ensure_ascii=true) }}", inputs), "\"\\u007f\"");
  EXPECT_EQ(outcome("{{ ('%s'|safe) % '<b>' }}", inputs), "&lt;b&gt;");
  EXPECT_EQ(outcome("{{ ('%s'|safe)|format('<b>') }}", inputs), "&lt;b&gt;");
  EXPECT_EQ(outcome("{{ ('<'|safe).join(['a', '>']) }}", inputs), "a<&gt;");
}

}  // namespace
}  // namespace limpid
