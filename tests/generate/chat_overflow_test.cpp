// What a Chat does when the context is full, and when an answer does not end by itself.
#include <gtest/gtest.h>

#include "generate/tiny_model.h"
#include "limpid/chat.hpp"

namespace limpid {
namespace {

using testing::open_tiny;
using testing::saying;

constexpr int64_t kContext = 128;
constexpr int64_t kRoom = kContext / 4;

ChatOptions options_with(ContextPolicy overflow) {
  ChatOptions options;
  options.system = "Be kind.";
  options.session.n_ctx = kContext;
  options.overflow = overflow;
  return options;
}

// The prompt of these messages without those from `first` to `end`.
std::vector<TokenId> prompt_without(const LanguageModel& model, std::vector<Message> messages,
                                    size_t first, size_t end) {
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(first),
                 messages.begin() + static_cast<std::ptrdiff_t>(end));
  ChatOptions options;
  options.overflow = ContextPolicy::kError;
  Chat chat(model, options);
  chat.assign(std::move(messages));
  return chat.prompt_ids();
}

std::vector<TokenId> evaluated(Chat& chat) {
  return {chat.session().tokens().begin(), chat.session().tokens().end()};
}

TEST(ChatOverflow, TheOldestTurnsLeaveThePromptAndNoMoreThanNeeded) {
  const LanguageModel model = open_tiny();
  Chat chat(model, options_with(ContextPolicy::kDropOldestTurns));
  size_t n_dropped = 0;
  for (int turn = 0; turn < 12; ++turn) {
    chat.generation() = saying("good");
    TextStream stream = chat.ask("hi " + std::to_string(turn));
    // Turns are two messages each after the system message; the fewest are dropped that leave room.
    const std::vector<Message> messages = chat.messages();
    while (std::ssize(prompt_without(model, messages, 1, 1 + n_dropped)) + kRoom > kContext) {
      n_dropped += 2;
    }
    EXPECT_EQ(chat.prompt_ids(), prompt_without(model, messages, 1, 1 + n_dropped));
    EXPECT_EQ(stream.result().text, "good");
    EXPECT_EQ(stream.result().n_dropped_messages, static_cast<int64_t>(n_dropped));
    EXPECT_EQ(chat.messages().size(), 1U + 2U * static_cast<size_t>(turn + 1));
  }
  EXPECT_GT(n_dropped, 10U);
  chat.clear();
  chat.generation() = saying("good");
  EXPECT_EQ(chat.ask("hi").result().n_dropped_messages, 0);
}

TEST(ChatOverflow, ManyTurnsThatCameTogetherAreDroppedTogether) {
  const LanguageModel model = open_tiny();
  Chat chat(model, options_with(ContextPolicy::kDropOldestTurns));
  for (int turn = 0; turn < 100; ++turn) {
    chat.add({"user", "q" + std::to_string(turn)});
    chat.add({"assistant", "a"});
    if (turn % 3 == 0) chat.add({"tool", "t"});
  }
  chat.add({"user", "last"});
  size_t end = 1;
  while (std::ssize(prompt_without(model, chat.messages(), 1, end)) + kRoom > kContext) {
    do {
      ++end;
    } while (chat.messages()[end].role != "user");
  }
  EXPECT_EQ(chat.prompt_ids(), prompt_without(model, chat.messages(), 1, end));
  chat.generation() = saying("ok");
  EXPECT_EQ(chat.reply().result().n_dropped_messages, static_cast<int64_t>(end) - 1);
}

TEST(ChatOverflow, TheRoomIsThatOfAShortAnswer) {
  const LanguageModel model = open_tiny();
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  options.generation.n_predict = 2;
  Chat chat(model, options);
  chat.add({"user", "hi"});
  chat.add({"assistant", "x"});
  chat.add({"user", ""});
  const auto n_tokens = std::ssize(prompt_without(model, chat.messages(), 1, 1));
  auto messages = chat.messages();
  messages.back().content = std::string(static_cast<size_t>(kContext - 2 - n_tokens), 'x');
  chat.assign(messages);
  EXPECT_EQ(std::ssize(chat.prompt_ids()), kContext - 2);
  messages.back().content += 'x';
  chat.assign(messages);
  EXPECT_EQ(chat.prompt_ids(), prompt_without(model, messages, 1, 3));
}

// An answer outgrows the context: what it goes on from is, token by token, a shorter prompt and the
// answer so far.
TEST(ChatOverflow, AnAnswerGoesOnWithoutTheOldestTurns) {
  const LanguageModel model = open_tiny();
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  options.generation.n_predict = 80;
  options.generation.sampler.temperature = 0;
  options.generation.sampler.ignore_eos = true;
  options.generation.stop_at_repetition = false;
  Chat chat(model, options);
  for (const char* text : {"one", "two", "three"}) {
    chat.add({"user", text});
    chat.add({"assistant", text});
  }
  chat.add({"user", "go"});
  const std::vector<Message> messages = chat.messages();
  const GenerationResult result = chat.reply().result();
  ASSERT_EQ(result.ids.size(), 80U);
  EXPECT_EQ(result.stop_reason, StopReason::kLength);

  size_t end = 1;  // of the messages left out
  const auto prompt = [&] { return prompt_without(model, messages, 1, end); };
  while (std::ssize(prompt()) + kRoom > kContext) end += 2;
  const size_t end_at_first = end;
  for (size_t n = 0; n < result.ids.size(); ++n) {
    const auto n_sampled = static_cast<int64_t>(n);
    if (std::ssize(prompt()) + n_sampled > kContext) {
      const int64_t room = std::min<int64_t>(kRoom, 80 - n_sampled);
      do {
        end += 2;
      } while (end < 7 && std::ssize(prompt()) + n_sampled + room > kContext);
    }
    std::vector<TokenId> tokens = prompt();
    tokens.insert(tokens.end(), result.ids.begin(), result.ids.begin() + n_sampled);
    Session fresh(model);
    fresh.append(tokens);
    std::vector<float> logits(fresh.logits().begin(), fresh.logits().end());
    logits[testing::kTurnEnd] = logits[testing::kEndOfText] = -1e9F;
    ASSERT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), result.ids[n]) << n;
  }
  EXPECT_GT(end, end_at_first);
  EXPECT_EQ(result.n_dropped_messages, static_cast<int64_t>(end) - 1);
}

TEST(ChatOverflow, TheLastQuestionAndItsAnswerAreNeverDropped) {
  const LanguageModel model = open_tiny();
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  options.generation.sampler.ignore_eos = true;
  options.generation.stop_at_repetition = false;
  Chat chat(model, options);
  chat.add({"user", "one"});
  chat.add({"assistant", "two"});
  const GenerationResult result = chat.ask("hi").result();
  EXPECT_EQ(result.stop_reason, StopReason::kLength);
  EXPECT_EQ(result.n_dropped_messages, 2);
  auto expected = prompt_without(model, {{"system", "Be kind."}, {"user", "hi"}}, 0, 0);
  EXPECT_EQ(std::ssize(expected) + std::ssize(result.ids), kContext + 1);
  expected.insert(expected.end(), result.ids.begin(), result.ids.end() - 1);
  EXPECT_EQ(evaluated(chat), expected);

  options.overflow = ContextPolicy::kError;
  Chat strict(model, options);
  TextStream stream = strict.ask("hi");
  EXPECT_THROW(stream.result(), ContextOverflowError);
  EXPECT_EQ(strict.messages().back().content, stream.so_far().text);
}

TEST(ChatOverflow, CancelsWhileTheShorterPromptIsEvaluated) {
  const LanguageModel model = open_tiny({.n_batch = 1});
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  options.generation.sampler.ignore_eos = true;
  options.generation.sampler.temperature = 0;
  options.generation.stop_at_repetition = false;
  Chat chat(model, options);
  chat.add({"user", "one"});
  chat.add({"assistant", "two"});
  TextStream stream = chat.ask("hi");
  while (std::ssize(chat.session().tokens()) < kContext) ASSERT_TRUE(stream.next());
  options.generation.cancel.cancel();  // a copy of the options has the same token
  EXPECT_EQ(stream.result().stop_reason, StopReason::kCancelled);
}

TEST(ChatOverflow, WhatCanNeverFitTellsWhatWould) {
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  for (const int64_t n_predict : {int64_t{30}, GenerationOptions::kUnlimited}) {
    options.generation.n_predict = n_predict;
    options.session.n_ctx = kContext;
    Chat chat(open_tiny(), options);
    const std::string question(kContext, 'x');
    try {
      chat.ask(question);
      FAIL() << "no overflow";
    } catch (const ContextOverflowError& error) {
      EXPECT_EQ(error.n_ctx(), kContext);
      const std::string what = error.what();
      EXPECT_NE(what.find(std::to_string(error.n_tokens()) + " tokens"), std::string::npos) << what;
      EXPECT_NE(what.find("holds " + std::to_string(kContext)), std::string::npos) << what;
      EXPECT_EQ(what.find(" -"), std::string::npos) << what;
      // The advice works: with that context there is room for the whole answer.
      options.session.n_ctx = error.n_needed();
    }
    Chat larger(open_tiny(), options);
    EXPECT_GT(larger.session().n_ctx(), kContext);
    larger.generation() = saying(std::string(29, 'y'));
    larger.generation().n_predict = n_predict;
    EXPECT_EQ(larger.ask(question).text(), std::string(29, 'y'));
  }
}

std::string repeated(std::string_view text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(ChatRepetition, AnAnswerThatRepeatsItselfEnds) {
  const LanguageModel model = open_tiny();
  Chat chat(model);
  chat.generation() = saying("No: " + repeated("abc.", 60));  // options made without a Chat in mind
  const GenerationResult ended = chat.ask("hi").result();
  EXPECT_EQ(ended.stop_reason, StopReason::kRepetition);
  EXPECT_STREQ(to_string(ended.stop_reason), "repetition");
  EXPECT_EQ(ended.text, "No: " + repeated("abc.", 24));
  EXPECT_EQ(chat.messages().back().content, ended.text);

  chat.clear();
  chat.generation() = saying(repeated("ha ", 20));
  EXPECT_EQ(chat.ask("hi").result().stop_reason, StopReason::kEndOfText);

  chat.clear();
  chat.generation() = saying(repeated("abc.", 30));
  chat.generation().stop_at_repetition = false;
  EXPECT_EQ(chat.ask("hi").text(), repeated("abc.", 30));
}

TEST(ChatRepetition, ASessionGoesOnUnlessAsked) {
  Session session(open_tiny());
  auto options = saying(repeated("abc.", 30));
  EXPECT_EQ(session.generate("x", options).text(), repeated("abc.", 30));
  options = saying(repeated("abc.", 30));
  options.stop_at_repetition = true;
  EXPECT_EQ(session.generate("x", options).text(), repeated("abc.", 24));
}

TEST(ChatOverflow, ALimitBeyondTheContextEndsTheAnswerThere) {
  ChatOptions options = options_with(ContextPolicy::kDropOldestTurns);
  options.generation.n_predict = 2 * kContext;
  options.generation.sampler.ignore_eos = true;
  options.generation.stop_at_repetition = false;
  Chat chat(open_tiny(), options);
  EXPECT_EQ(chat.ask("hi").result().stop_reason, StopReason::kLength);
}

}  // namespace
}  // namespace limpid
