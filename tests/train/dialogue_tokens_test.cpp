// Which tokens of a dialogue are learned.
#include "train/dialogue_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/temp_file.h"
#include "data_paths.h"
#include "limpid/error.hpp"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer.h"
#include "train/simple_tokenizers.h"
#include "train/training_data.h"

namespace limpid {
namespace {

// The bytes of the tokens that are learned, those that follow one another as one text.
std::vector<std::string> learned_texts(const DocumentView& documents, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  bool open = false;
  for (size_t t = 0; t < documents.ids.size(); ++t) {
    if (documents.learned[t] != 0 && !open) texts.emplace_back();
    open = documents.learned[t] != 0;
    if (open) texts.back() += tokenizer.bytes_of(documents.ids[t], true);
  }
  return texts;
}

TEST(Dialogues, LearnTheAnswersOnly) {
  const Checkpoint model = open_model_files({testing::test_data_path("cli/tiny_chat.gguf")});
  const auto tokenizer = tokenizer_from(model);
  const ChatTemplate chat_template(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  const TempFolder folder;
  const std::string path = folder.write(
      "chats.jsonl",
      R"({"messages": [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "the mat"}, )"
      R"({"role": "user", "content": "a dog"}, {"role": "assistant", "content": "a log"}]})"
      "\n\n"
      R"({"text": "the end"})"
      "\n");
  const DocumentView documents = read_documents({&path, 1}, *tokenizer, &chat_template);
  EXPECT_EQ(documents.begins.size(), 2U);
  const std::vector<std::string> learned = learned_texts(documents, *tokenizer);
  ASSERT_EQ(learned.size(), 2U);  // the document follows the last answer without a gap
  EXPECT_EQ(learned[0], "the mat;");
  EXPECT_TRUE(learned[1].starts_with("a log;the end")) << learned[1];
}

// What is learned of the dialogues, one after another.
std::vector<std::string> learned_of(const std::string& chat_template, const std::string& lines) {
  const Checkpoint model = open_model_files({testing::test_data_path("cli/tiny_chat.gguf")});
  const auto tokenizer = tokenizer_from(model);
  const TempFolder folder;
  const std::string path = folder.write("chats.jsonl", lines);
  const ChatTemplate rendering(chat_template);
  return learned_texts(read_documents({&path, 1}, *tokenizer, &rendering), *tokenizer);
}

constexpr const char* kTwoAnswers =
    R"({"messages": [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "the mat"}, )"
    R"({"role": "user", "content": "a dog"}, {"role": "assistant", "content": "a log"}]})";

TEST(Dialogues, ShowTheirTools) {
  const std::string rendering =
      "{% if tools %}({{ tools[0].name }}){% endif %}"
      "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}";
  const Checkpoint model = open_model_files({testing::test_data_path("cli/tiny_chat.gguf")});
  const auto tokenizer = tokenizer_from(model);
  const TempFolder folder;
  const std::string messages =
      R"({"messages": [{"role": "user", "content": "the cat"}], "tools": )";
  const std::string path = folder.write("a.jsonl", messages + R"([{"name": "the"}]})");
  const ChatTemplate chat_template(rendering);
  const DocumentView documents = read_documents({&path, 1}, *tokenizer, &chat_template);
  EXPECT_EQ(tokenizer->decode(documents.ids), "(the)[user]the cat;");
  const std::string wrong = folder.write("b.jsonl", messages + "7}");
  EXPECT_THROW(read_documents({&wrong, 1}, *tokenizer, &chat_template), FormatError);
}

// As Qwen3's: the last answer only has thoughts before it.
TEST(Dialogues, LearnAnswersThatAreRenderedUnlikeTheLastOne) {
  const std::string rendering =
      "{% for m in messages %}[{{ m.role }}]"
      "{% if m.role == 'assistant' and loop.last %}<think></think>{% endif %}{{ m.content }};"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  EXPECT_EQ(learned_of(rendering, kTwoAnswers),
            (std::vector<std::string>{"the mat;", "<think></think>a log;"}));
}

// As Falcon 3's: the last answer has no end.
TEST(Dialogues, LearnTheEndOfAnswersThatHaveOne) {
  const std::string rendering =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
      "{% if m.role == 'user' or not loop.last %}<|im_end|>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  EXPECT_EQ(learned_of(rendering, kTwoAnswers),
            (std::vector<std::string>{"the mat<|im_end|>", "a log"}));
}

// A template may put a system message before the messages of a user only.
TEST(Dialogues, MayBeginWithAnAnswer) {
  const std::string rendering =
      "{% if messages and messages[0].role == 'assistant' %}{% else %}[system]be kind;{% endif %}"
      "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  const std::string line =
      R"({"messages": [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "a"}]})";
  EXPECT_EQ(learned_of(rendering, line), std::vector<std::string>{"hello;"});
}

// What is learned of a dialogue with the template of that name, each byte a token.
std::vector<std::string> learned_bytes(const std::string& chat_template,
                                       const std::string& messages, const std::string& more = "") {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const TempFolder folder;
  const std::string path =
      folder.write("chats.jsonl", "{\"messages\": [" + messages + "]" + more + "}\n");
  const auto source = MappedFile::open(
      testing::source_path("tests/tokenizer/templates/" + chat_template + ".jinja"));
  const ChatTemplate rendering{std::string(text_of(*source))};
  return learned_texts(read_documents({&path, 1}, *tokenizer, &rendering), *tokenizer);
}

constexpr const char* kSystemAndTwoAnswers =
    R"({"role": "system", "content": "S"}, {"role": "user", "content": "secret"}, )"
    R"({"role": "assistant", "content": "one two"}, {"role": "user", "content": "more"}, )"
    R"({"role": "assistant", "content": "three"})";

// Mistral's template writes the system message before the last message of a user only where that
// is the last message. So the prompt of an answer is not what the dialogue begins with.
TEST(Dialogues, LearnNothingThatTheUserWrote) {
  const std::vector<std::string> learned = learned_bytes("mistral_tools", kSystemAndTwoAnswers);
  ASSERT_EQ(learned.size(), 2U);
  EXPECT_EQ(learned[0], "one two<|endoftext|>");
  EXPECT_EQ(learned[1], "three<|endoftext|>");
}

// As Qwen3's, where "<think>" is many tokens, and the answer may begin as that does.
TEST(Dialogues, LearnAllOfAnAnswerThatIsRenderedUnlikeTheLastOne) {
  const std::string rendering =
      "{% for m in messages %}[{{ m.role }}]"
      "{% if m.role == 'assistant' and loop.last %}<think></think>{% endif %}"
      "{{ '<' + m.content }};{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const ChatTemplate chat_template(rendering);
  const TempFolder folder;
  for (const std::string content : {"the mat", "→", "\\u00b6", "\\u241f"}) {
    const std::string line = R"({"messages": [{"role": "user", "content": "a"}, )"
                             R"({"role": "assistant", "content": ")" +
                             content + R"("}, {"role": "user", "content": "b"}]})";
    const std::string path = folder.write("chats.jsonl", line);
    const auto learned =
        learned_texts(read_documents({&path, 1}, *tokenizer, &chat_template), *tokenizer);
    const std::string text = content == "\\u00b6"   ? "\u00b6"
                             : content == "\\u241f" ? "\u241f"
                                                    : content;
    EXPECT_EQ(learned, std::vector<std::string>{text + ";"}) << content;
  }
}

constexpr const char* kCall =
    R"({"role": "user", "content": "weather?"}, {"role": "assistant", "content": null, "tool_calls": )"
    R"([{"id": "abcdefghi", "type": "function", "function": {"name": "get_w", "arguments": {"c": "Paris"}}}]})";
constexpr const char* kAnswersAfterIt =
    R"(, {"role": "tool", "content": "sun", "tool_call_id": "abcdefghi", "name": "get_w"}, )"
    R"({"role": "assistant", "content": "It is sunny."}, {"role": "user", "content": "thanks"}, )"
    R"({"role": "assistant", "content": "you are welcome"})";
constexpr const char* kTools =
    R"(, "tools": [{"type": "function", "function": {"name": "get_w", "description": "d"}}])";

// Mistral's template writes the tools before the last message of a user only, and no content of a
// message that calls tools.
TEST(Dialogues, LearnCallsOfTools) {
  const std::string call =
      R"([TOOL_CALLS] [{"name": "get_w", "arguments": {"c": "Paris"}, "id": "abcdefghi"}]<|endoftext|>)";
  const std::string messages = std::string(kCall) + kAnswersAfterIt;
  EXPECT_EQ(learned_bytes("mistral_tools", messages, kTools),
            (std::vector<std::string>{call, " It is sunny.<|endoftext|>",
                                      " you are welcome<|endoftext|>"}));
  const std::string system = R"({"role": "system", "content": "S"}, )";
  EXPECT_EQ(learned_bytes("mistral_tools", system + kCall, kTools), std::vector<std::string>{call});
}

// As gpt-oss's, which has no prompt's end before thoughts.
TEST(Dialogues, LearnThoughtsBeforeAnAnswer) {
  const std::string rendering =
      "{% for m in messages %}{% if m.thinking %}(thought){{ m.thinking }};{% endif %}"
      "[{{ m.role }}]{{ m.content }};{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  const std::string line =
      R"({"messages": [{"role": "user", "content": "a"}, )"
      R"({"role": "assistant", "thinking": "the cat", "content": "the mat"}]})";
  EXPECT_EQ(learned_of(rendering, line),
            std::vector<std::string>{"(thought)the cat;[assistant]the mat;"});
}

// Some templates repeat the name of the call before its result.
TEST(Dialogues, LearnNoResultsOfTools) {
  const std::string rendering =
      "{% for m in messages %}{% if m.role == 'tool' %}<{{ messages[1].tool_calls[0].function.name "
      "}}>{{ m.content }};{% elif m.tool_calls %}[call]{% if loop.last %}!{% endif %}"
      "{{ m.tool_calls[0].function.name }};{% else %}[{{ m.role }}]{{ m.content }};{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const ChatTemplate chat_template(rendering);
  const TempFolder folder;
  const std::string path = folder.write(
      "chats.jsonl", "{\"messages\": [" + std::string(kCall) + kAnswersAfterIt + "]}\n");
  const auto learned =
      learned_texts(read_documents({&path, 1}, *tokenizer, &chat_template), *tokenizer);
  EXPECT_EQ(learned, (std::vector<std::string>{"get_w;", "It is sunny.;", "you are welcome;"}));
}

TEST(Dialogues, AreRefusedWithoutTheirAnswer) {
  EXPECT_THROW(learned_of("{{ messages[0].content }}", kTwoAnswers), FormatError);
}

// Else the model would learn to answer nothing.
TEST(Dialogues, AreRefusedWithoutTheirContent) {
  const std::string texts_only =
      "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% endif %};"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const std::string parts =
      "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
      "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %};"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const std::string line =
      R"({"messages": [{"role": "user", "content": "a"}, )"
      R"({"role": "assistant", "content": [{"type": "text", "text": "the mat"}]}]})";
  EXPECT_THROW(learned_of(texts_only, line), FormatError);
  EXPECT_EQ(learned_of(parts, line), std::vector<std::string>{"the mat;"});
  const std::string nothing =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null}]})";
  EXPECT_NO_THROW(learned_of(texts_only, nothing));
}

}  // namespace
}  // namespace limpid
