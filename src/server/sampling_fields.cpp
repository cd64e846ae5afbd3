// Reads the fields that shape how the next token is chosen.
//
// A logit is the model's score of a token before the softmax. A bias is added to it, so a bias of
// ln 2 = 0.69 doubles the odds of a token against every other token, and a bias of minus infinity
// bans the token. JSON has no infinity; OpenAI writes -100, and llama-server writes `false`.
//
//   {"logit_bias": {"15043": -100}}                   token 15043 is banned
//   {"logit_bias": [[15043, 1.5], ["Paris", 0.7]]}    a text stands for each of its tokens
//
// A grammar acts in the same way: before each token it bans all tokens that would leave the
// grammar (generate/grammar_sampler.h). A JSON schema becomes a grammar first (json_schema.h).
#include "server/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/error_text.h"
#include "generate/grammar_sampler.h"
#include "server/json_schema.h"

namespace limpid {
namespace {

constexpr double kAny = 1e30;  // beyond any logit, and still a finite float
constexpr size_t kMostStops = 64;
constexpr size_t kMostStopBytes = 16 << 10;  // of all of them: each choice has copies
constexpr size_t kMostBiases = 16 << 10;     // likewise

// A number or `false`. -100 and less ban the token, as `false` does.
float read_bias(const JsonField& bias) {
  constexpr float kBan = -std::numeric_limits<float>::infinity();
  if (bias.json() == false) return kBan;
  const auto value = static_cast<float>(bias.number(-kAny, kAny));
  return value <= -100 ? kBan : value;
}

void add_text(const JsonField& field, std::string_view text, float bias, FieldTarget target) {
  if (target.tokenizer == nullptr) field.fail("names a text, and the model has no tokenizer");
  auto& biases = target.settings.generation.sampler.logit_bias;
  for (const TokenId id : target.tokenizer->encode(text, {.add_special = false}))
    biases.push_back({id, bias});
}

// A name in the form of an object: a token id, or in llama-server also a text.
void add_named(const JsonField& field, const std::string& name, float bias, FieldTarget target) {
  const bool is_id = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
  if (!is_id) return add_text(field, name, bias, target);
  if (name.size() > 9) field.fail("names a token that is not in the vocabulary");
  target.settings.generation.sampler.logit_bias.push_back(
      {static_cast<TokenId>(std::stol(name)), bias});
}

}  // namespace

void read_stop(const JsonField& field, FieldTarget target) {
  std::vector<std::string>& stop = target.settings.generation.stop;
  stop.clear();
  if (field.json().is_string()) {
    stop.push_back(field.string());
  } else {
    for (const JsonField& entry : field.elements("a string or an array"))
      stop.push_back(entry.string());
  }
  if (stop.size() > kMostStops) field.fail(fmt::format("has more than {} texts", kMostStops));
  size_t n_bytes = 0;
  for (const std::string& text : stop) n_bytes += text.size();
  if (n_bytes > kMostStopBytes) field.fail(fmt::format("has more than {} bytes", kMostStopBytes));
  std::erase(stop, "");
}

void read_logit_bias(const JsonField& field, FieldTarget target) {
  auto& biases = target.settings.generation.sampler.logit_bias;
  biases.clear();
  if (field.json().is_object()) {
    for (const JsonField& bias : field.members())
      add_named(bias, std::string(bias.key()), read_bias(bias), target);
  } else {
    for (const JsonField& entry : field.elements("an object or an array")) {
      const std::vector<JsonField> pair = entry.elements("[token, bias]");
      if (pair.size() != 2) entry.fail("must be [token, bias]");
      const JsonField& token = pair[0];
      const float bias = read_bias(pair[1]);
      // A string is a text here even if it has only digits; an id is a number.
      if (token.json().is_string()) {
        add_text(token, token.string(), bias, target);
      } else {
        const int64_t id = token.integer(0, std::numeric_limits<TokenId>::max());
        biases.push_back({static_cast<TokenId>(id), bias});
      }
    }
  }
  if (biases.size() > kMostBiases) field.fail(fmt::format("has more than {} tokens", kMostBiases));
  const auto& vocabulary = target.tokenizer;
  for (const LogitBias& bias : biases) {
    if (vocabulary != nullptr && bias.id >= vocabulary->vocab_size())
      field.fail(fmt::format("names token {}, which is not in the vocabulary", bias.id));
  }
}

// The samplers form a chain, and each narrows what the one before has left. So the order matters:
// "top_k;temperature" draws from the k best tokens of the plain scores, and "temperature;top_p"
// cuts probabilities that the temperature has changed already.
void read_samplers(const JsonField& field, FieldTarget target) {
  static const std::map<char, std::string> by_letter = {
      {'e', "penalties"}, {'s', "top_n_sigma"}, {'k', "top_k"}, {'y', "typ_p"},
      {'p', "top_p"},     {'m', "min_p"},       {'x', "xtc"},   {'t', "temperature"}};
  std::string order;
  const auto add = [&](const std::string& name) {
    if (name == "dry") return;  // DRY does nothing: a dry_multiplier other than 0 is refused
    const bool is_known =
        std::ranges::any_of(by_letter, [&](const auto& letter) { return letter.second == name; });
    if (!is_known) field.fail(fmt::format("has an unknown sampler '{}'", name));
    order += (order.empty() ? "" : ";") + name;
  };
  if (field.json().is_string()) {
    for (const char letter : field.string()) {
      const auto found = by_letter.find(letter);
      if (letter != 'd') add(found == by_letter.end() ? std::string(1, letter) : found->second);
    }
  } else {
    for (const JsonField& entry : field.elements("a string or an array"))
      add(entry.string() == "typical_p" ? "typ_p" : entry.string());
  }
  target.settings.generation.sampler.order = order;
}

namespace {

// Makes the answer follow `grammar`. One request has one grammar: two grammars could contradict
// each other, and then no token would be left.
void follow(const JsonField& field, const std::string& grammar, FieldTarget target) {
  if (target.tokenizer == nullptr) field.fail("needs a tokenizer, and this model has none");
  std::vector<std::shared_ptr<Sampler>>& custom = target.settings.generation.sampler.custom;
  if (!custom.empty()) field.fail("cannot be beside another grammar or schema");
  try {
    custom.push_back(make_grammar_sampler(grammar, *target.tokenizer));
    target.settings.grammar = grammar;
  } catch (const ArgumentError& error) {
    field.fail("is not valid: " + without_part(error));
  }
}

}  // namespace

void read_grammar(const JsonField& field, FieldTarget target) {
  if (!field.string().empty()) follow(field, field.string(), target);
}

void read_schema(const JsonField& field, FieldTarget target) {
  follow(field, grammar_of_schema(field), target);
}

void read_response_format(const JsonField& field, FieldTarget target) {
  field.allow_only({"type", "json_schema", "schema", "name", "description", "strict"});
  const JsonField type = field.required("type");
  const std::string& name = type.string();
  const auto inner = field.find("json_schema");
  if (inner) inner->allow_only({"name", "description", "strict", "schema"});
  auto schema = inner ? std::optional(inner->required("schema")) : field.find("schema");
  if (inner && field.find("schema")) inner->fail("cannot be beside another schema");
  if (name == "text" && schema) schema->fail("needs the type json_schema");
  if (name == "text") return;
  if (name != "json_object" && name != "json_schema")
    type.must_be(R"("text", "json_object" or "json_schema")");
  if (schema) return read_schema(*schema, target);
  if (name == "json_schema") field.fail("needs a schema");
  follow(field, grammar_of_any_object(), target);
}

void read_format(const JsonField& field, FieldTarget target) {
  if (field.is_empty()) return;
  if (field.json().is_object()) return read_schema(field, target);
  if (field.string("a string or an object") != "json") field.must_be("\"json\" or a JSON schema");
  follow(field, grammar_of_any_object(), target);
}

}  // namespace limpid
