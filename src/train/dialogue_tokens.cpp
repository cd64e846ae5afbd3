// An answer is what follows the prompt of the messages before it, up to where the rendered dialogue
// goes on differently than it would if the answer were its end.
//
//   [user "Hi", assistant "Yes?"] renders as      <u>Hi</u><a>Yes?</a>
//   [user "Hi"] and a generation prompt:          <u>Hi</u><a>             the answer begins here
//   both, as if nothing followed:                 <u>Hi</u><a>Yes?</a>     and ends here
//
// So the model learns "Yes?</a>": the answer, and to end it. The comparison of tokens works for
// every template, and needs no knowledge of its marks.
//
// It needs two renderings that the whole one begins with. Some templates have none: Qwen3's writes
// "<think></think>" only before the last answer, and Mistral's writes the system message and the
// tools only before the last message of a user. And no prompt precedes a first message. There the
// answer is found as what changes when the message changes:
//
//   the dialogue:                          <u>Hi</u><a>Yes?</a><u>…    "Yes?" changes
//   as if nothing followed:                <u>be kind. Hi</u><a>Yes?</a>
//   its prompt:                            <u>be kind. Hi</u><a>       so "Yes?" begins the answer,
//                                                                      and "</a>" ends it
#include "train/dialogue_tokens.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "generate/chat_prompt.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<TokenId>;

// What strftime_now tells the templates: noon on 1 January 2025, UTC. So a run has the same tokens
// on every day.
constexpr int64_t kNow = 1'735'732'800;

// Unlike any answer. An answer may begin or end with the bytes of one of them, but not of both.
constexpr const char* kOtherContents[] = {"\u241f", "\u00b6"};

// What a message may have besides its content. Templates write it before the content.
constexpr const char* kThoughts[] = {"thinking", "reasoning_content", "reasoning"};

size_t n_equal(const Tokens& a, const Tokens& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Whether `ids` begin with `begin`, of which the last token may merge with what follows it.
bool begins_with(const Tokens& ids, const Tokens& begin) {
  return n_equal(ids, begin) + 1 >= begin.size();
}

struct TokenRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// The part of `ids` in which `others` differ.
TokenRange difference(const Tokens& ids, const Tokens& others) {
  const size_t begin = n_equal(ids, others);
  size_t n_after = 0;
  while (n_after < std::min(ids.size(), others.size()) - begin &&
         ids[ids.size() - 1 - n_after] == others[others.size() - 1 - n_after])
    ++n_after;
  return {begin, ids.size() - n_after};
}

// Gives every tool call of the message another name. Returns whether there is one.
bool rename_calls(Json& message, const char* name) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return false;
  bool renamed = false;
  for (Json& call : *calls) {
    if (!call.is_object()) continue;
    const auto function = call.find("function");
    Json& named = function != call.end() && function->is_object() ? *function : call;
    if (!named.contains("name")) continue;
    named["name"] = name;
    renamed = true;
  }
  return renamed;
}

// Finds the answers in one rendered dialogue.
class Answers {
 public:
  Answers(const Json& messages, const Json& tools, const Tokenizer& tokenizer,
          const ChatTemplate& chat_template)
      : messages_(messages), tokenizer_(tokenizer), chat_template_(chat_template) {
    inputs_.tools = tools;
    inputs_.now = kNow;
    ids_ = ids_of(messages);
  }

  const Tokens& ids() const { return ids_; }

  // Whether the template writes nothing of the content of messages[i].
  bool loses_content(size_t i) {
    Json others = messages_;
    others[i]["content"] = "";
    return ids_of(std::move(others)) == ids_;
  }

  // Returns the answer messages[i] in ids(); an empty range if it is not there.
  TokenRange find(size_t i) {
    const Tokens as_last = ids_of(first(i + 1));
    const Tokens prompt = i > 0 ? ids_of(first(i), true) : Tokens{};
    TokenRange answer{n_equal(ids_, prompt), n_equal(ids_, as_last)};
    const bool is_plain = i > 0 && begins_with(ids_, prompt) && begins_with_answer(as_last);
    if (!is_plain || answer.begin >= answer.end) answer = changing(i, prompt, as_last);
    // Where only the last answer lacks its end token.
    const bool goes_on = answer.end > answer.begin && answer.end < ids_.size();
    if (goes_on && !tokenizer_.is_stop(ids_[answer.end - 1]) &&
        tokenizer_.is_stop(ids_[answer.end]))
      ++answer.end;
    return answer;
  }

 private:
  Tokens ids_of(Json messages, bool add_generation_prompt = false) {
    inputs_.messages = std::move(messages);
    inputs_.add_generation_prompt = add_generation_prompt;
    return encode_chat(tokenizer_, chat_template_, inputs_);
  }

  Json first(size_t n_messages) const {
    return Json(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(n_messages));
  }

  // Whether the dialogue begins with `as_last`. Only a last answer may have a token that ends all.
  bool begins_with_answer(Tokens as_last) const {
    if (n_equal(ids_, as_last) == as_last.size()) return true;
    while (!as_last.empty() && tokenizer_.is_stop(as_last.back())) as_last.pop_back();
    return begins_with(ids_, as_last);
  }

  // The variants of a message: with another content, with other thoughts, and with other names of
  // its tool calls, because a template may write only some of these.
  static std::vector<Json> variants_of(const Json& message) {
    std::vector<Json> variants;
    for (const char* other : kOtherContents) {
      variants.push_back(message);
      variants.back()["content"] = other;
      for (const char* thoughts : kThoughts) {
        if (!message.contains(thoughts)) continue;
        variants.push_back(message);
        variants.back()[thoughts] = other;
      }
      Json renamed = message;
      if (rename_calls(renamed, other)) variants.push_back(std::move(renamed));
    }
    return variants;
  }

  // The part of `ids`, rendered from the first messages, that changes with the variants of
  // messages[i]; nothing if no variant makes a difference.
  std::optional<TokenRange> change(size_t n_messages, size_t i, const Tokens& ids) {
    std::optional<TokenRange> all;
    for (Json& variant : variants_of(messages_[i])) {
      Json others = first(n_messages);
      others[i] = std::move(variant);
      const Tokens changed = ids_of(std::move(others));
      if (changed == ids) continue;
      const TokenRange part = difference(ids, changed);
      all = all ? TokenRange{std::min(all->begin, part.begin), std::max(all->end, part.end)} : part;
    }
    return all;
  }

  // Where the answer messages[i] begins in `as_last`, of which the part from `changed` on changes.
  // A template may write a mark before tool calls or thoughts that no prompt shows; then an answer
  // without them does.
  size_t begin_in(const Tokens& as_last, size_t i, const Tokens& prompt, size_t changed) {
    if (!prompt.empty() && begins_with(as_last, prompt)) return n_equal(as_last, prompt);
    Json plain = first(i + 1);
    size_t n_erased = plain[i].erase("tool_calls");
    for (const char* thoughts : kThoughts) n_erased += plain[i].erase(thoughts);
    if (n_erased == 0) return changed;
    plain[i]["content"] = kOtherContents[0];
    return n_equal(as_last, ids_of(std::move(plain)));
  }

  // The answer as what changes with the message. What precedes and follows the changing part is the
  // answer's too where it is the same as if the answer were the last.
  TokenRange changing(size_t i, const Tokens& prompt, const Tokens& as_last) {
    const auto here = change(messages_.size(), i, ids_);
    const auto last = change(i + 1, i, as_last);
    if (!here || !last) return {};
    TokenRange answer = *here;
    const auto same = [&](size_t begin, size_t begin_in_last, size_t n) {
      return begin + n <= ids_.size() &&
             std::equal(ids_.begin() + static_cast<ptrdiff_t>(begin),
                        ids_.begin() + static_cast<ptrdiff_t>(begin + n),
                        as_last.begin() + static_cast<ptrdiff_t>(begin_in_last));
    };
    // The result of a tool may repeat the name of the call, and is not of the answer.
    if (last->size() > 0 && same(here->begin, last->begin, last->size()))
      answer.end = here->begin + last->size();
    for (size_t next = last->end;
         answer.end < ids_.size() && next < as_last.size() && ids_[answer.end] == as_last[next];
         ++next)
      ++answer.end;
    const size_t begin = begin_in(as_last, i, prompt, last->begin);
    const size_t n_before = last->begin - std::min(begin, last->begin);
    if (n_before <= here->begin && same(here->begin - n_before, last->begin - n_before, n_before))
      answer.begin = here->begin - n_before;
    return answer;
  }

  const Json& messages_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_template_;
  TemplateInputs inputs_;
  Tokens ids_;
};

}  // namespace

void append_dialogue(TokenDocuments& documents, const Json& messages, const Json& tools,
                     const Tokenizer& tokenizer, const ChatTemplate& chat_template) {
  Answers answers(messages, tools, tokenizer, chat_template);
  const Tokens& ids = answers.ids();
  std::vector<uint8_t> learned(ids.size(), 0);
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json content = messages[i].value("content", Json());
    // Many templates write texts only, and pass over a list of parts.
    LIMPID_CHECK(ArgumentError, content.is_string() || content.empty() || !answers.loses_content(i),
                 "the chat template writes nothing of the content of messages[{}], which is not a "
                 "text but JSON of the type {}; give it as a text",
                 i, content.type_name());
    if (messages[i].value("role", "") != "assistant") continue;
    const TokenRange answer = answers.find(i);
    LIMPID_CHECK(ArgumentError, answer.begin < answer.end,
                 "the answer of messages[{}] is not in what the chat template renders", i);
    std::fill_n(learned.begin() + static_cast<std::ptrdiff_t>(answer.begin), answer.size(), 1);
  }
  documents.begins.push_back(documents.n_tokens());
  documents.learned.resize(documents.ids.size(), 1);
  documents.ids.insert(documents.ids.end(), ids.begin(), ids.end());
  documents.learned.insert(documents.learned.end(), learned.begin(), learned.end());
}

}  // namespace limpid
