// A schema is translated rule by rule into a grammar in GBNF, the notation of llama.cpp. The
// sampler then allows only tokens that continue a text of that grammar, so the answer needs no
// repair:
//
//   {"enum": ["red", 7]}                      ("\"red\"" space | "7" space)
//   {"type": "array", "maxItems": 2,
//    "items": {"type": "integer"}}            "[" space (part-0 ("," space part-0){0,1})? "]" space
//
// A part of a schema that others refer to ("#/$defs/node") becomes a rule of its own. A rule may
// use itself, so trees and lists of any depth are possible.
#include "server/json_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "server/json_schema_branches.h"

namespace limpid {
namespace {

constexpr int64_t kMostCount = 1000;  // of items or characters
constexpr size_t kMostRules = 4000;

// Every value takes the space behind it.
constexpr std::string_view kValues = R"GBNF(
space ::= (" " | "\n"{1,2} [ \t]{0,20})?
value ::= object | array | string | number | boolean | null
object ::= "{" space (pair ("," space pair)*)? "}" space
pair ::= string ":" space value
array ::= "[" space (value ("," space value)*)? "]" space
string ::= "\"" char* "\"" space
char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F]{2})
whole ::= "-"? ("0" | [1-9] [0-9]{0,15})
integer ::= whole space
number ::= whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})? space
boolean ::= ("true" | "false") space
null ::= "null" space
)GBNF";

// These describe, and change no answer.
constexpr std::string_view kDescriptions[] = {
    "title", "description", "default",  "examples",  "example",      "$schema",
    "$id",   "$anchor",     "$comment", "$defs",     "definitions",  "strict",
    "name",  "deprecated",  "readOnly", "writeOnly", "discriminator"};
bool describes(const JsonField& word) {
  return std::ranges::count(kDescriptions, word.key()) > 0 || word.key().starts_with("x-") ||
         (word.key() == "uniqueItems" && word.json() == false);
}

// "a\"b" -> "\"a\\\"b\"": a literal of GBNF.
std::string literal(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted += '"';
}

// The words of a schema, of which each rule of the translation reads those that it honours. A word
// that none has read would change nothing, so it is refused. Example: in {"enum": ["a"],
// "minLength": 2} no rule reads minLength.
class SchemaWords {
 public:
  explicit SchemaWords(const JsonField& schema) : schema_(schema) {}

  const JsonField& schema() const { return schema_; }
  bool has(std::string_view word) const { return schema_.find(word).has_value(); }
  std::optional<JsonField> read(std::string_view word) {
    auto value = schema_.find(word);
    if (value) read_.emplace(word);
    return value;
  }
  // "const", whose value may be null.
  const Json* read_constant() {
    const auto found = schema_.json().find("const");
    if (found == schema_.json().end()) return nullptr;
    read_.emplace("const");
    return &*found;
  }

  void refuse_unread() const {
    for (const JsonField& member : schema_.members()) {
      if (member.json().is_null() || describes(member) || read_.contains(member.key())) continue;
      member.fail(read_.empty() ? "is not supported in a schema without a type"
                                : fmt::format("is not supported in a schema with '{}'",
                                              fmt::join(read_, "', '")));
    }
  }

 private:
  const JsonField& schema_;
  std::set<std::string, std::less<>> read_;
};

[[noreturn]] void fail_type(const JsonField& type) {
  type.fail("'" + type.string() + "' is not a type");
}

// Whether `value` has the type that is called so.
bool is_of_type(const Json& value, const JsonField& type) {
  const std::string& name = type.string();
  if (name == "integer")
    return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  constexpr std::string_view kNames[] = {"object", "array", "string", "boolean", "null", "number"};
  if (std::ranges::count(kNames, name) == 0) fail_type(type);
  return value.type_name() == name;
}

bool has_reference(const Json& part) {
  if (part.is_object() && part.contains("$ref")) return true;
  return part.is_structured() && std::any_of(part.begin(), part.end(), has_reference);
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const JsonField& root) : root_(root), branches_(root) {}

  std::string write() {
    const std::string body = expression(root_);
    while (!waiting_.empty()) {
      const auto [name, part] = std::move(waiting_.back());
      waiting_.pop_back();
      rules_[name] = expression(part);
    }
    std::string text = fmt::format("root ::= {}\n", body);
    for (const auto& [name, rule] : rules_) text += fmt::format("{} ::= {}\n", name, rule);
    return text.append(kValues);
  }

 private:
  // The expression of what fits `schema`; it may stand wherever an item of a sequence may.
  std::string expression(const JsonField& schema) {
    if (schema.json() == true) return "value";
    if (schema.json() == false) schema.fail("is false, which allows no value: leave it out");
    refuse_own_root(schema);
    SchemaWords words(schema);
    std::string text = expression(words);
    words.refuse_unread();
    return text;
  }

  std::string expression(SchemaWords& words) {
    if (const auto reference = words.read("$ref")) return referred(*reference);
    if (const Json* constant = words.read_constant()) return one_of_values(words, constant);
    if (words.has("enum")) return one_of_values(words, nullptr);
    if (const auto schemas = words.read("anyOf")) return any_of(*schemas);
    if (const auto schemas = words.read("oneOf")) {
      std::string text = any_of(*schemas);
      branches_.require_disjoint(*schemas);
      return text;
    }
    if (const auto type = words.read("type")) {
      if (!type->json().is_array()) return of_type(words, *type);
      // A type that came twice would double the text at each level, so 100 levels would never end.
      std::set<std::string, std::less<>> known;
      return one_of(*type, "type", [&](const JsonField& each) {
        if (!known.insert(each.string()).second) each.fail("is in the list twice");
        return of_type(words, each);
      });
    }
    // Words that only objects or only arrays have stand for their type, as in llama.cpp.
    if (words.has("properties") || words.has("additionalProperties")) return object(words);
    return words.has("items") || words.has("prefixItems") ? array(words) : "value";
  }

  std::string any_of(const JsonField& schemas) {
    return one_of(schemas, "schema", [this](const JsonField& each) { return expression(each); });
  }

  // The constant, or the values of "enum"; of these, what the other two words allow as well.
  static std::string one_of_values(SchemaWords& words, const Json* constant) {
    const auto list = words.read("enum");
    const auto type = words.read("type");
    const bool has_types = type && type->json().is_array();
    const std::vector<JsonField> types = has_types ? type->elements()
                                         : type    ? std::vector{*type}
                                                   : std::vector<JsonField>();
    if (list) list->elements();  // throws
    std::string alternatives;
    for (const Json& value : list ? list->json() : Json::array({*constant})) {
      const bool is_typed = !type || std::ranges::any_of(types, [&](const JsonField& each) {
        return is_of_type(value, each);
      });
      if (is_typed && (constant == nullptr || value == *constant))
        alternatives += (alternatives.empty() ? "(" : " | ") + literal_of(value);
    }
    if (!alternatives.empty()) return alternatives + ")";
    if (list) list->fail("has no value that fits the other words beside it");
    words.schema().fail("has a constant that is not of its type");
  }

  // "(a | b)", of what `write` makes of each element of `list`.
  template <typename Write>
  static std::string one_of(const JsonField& list, const char* what, Write write) {
    std::string alternatives;
    for (const JsonField& each : list.elements())
      alternatives += (alternatives.empty() ? "(" : " | ") + write(each);
    if (alternatives.empty()) list.fail(fmt::format("has no {}", what));
    return alternatives + ")";
  }

  std::string of_type(SchemaWords& words, const JsonField& type) {
    const std::string& name = type.string();
    if (name == "object") return object(words);
    if (name == "array") return array(words);
    if (name == "string") return string(words);
    if (name == "integer" || name == "number" || name == "boolean" || name == "null") return name;
    fail_type(type);
  }

  static std::string literal_of(const Json& value) { return literal(value.dump()) + " space"; }

  // A part with an "$id" is a schema of its own, and "#" in it means that part. In older schemas an
  // "$id" may also be no more than a name: "#node".
  void refuse_own_root(const JsonField& schema) const {
    const auto id = schema.find("$id");
    if (!id || &schema.json() == &root_.json() || !has_reference(schema.json())) return;
    if (!id->string().starts_with('#'))
      id->fail("changes what the references below it mean, which is not supported: leave it out");
  }

  // "#/$defs/node" is a rule of its own, which may contain itself. It is written later, not here: a
  // schema may have a chain of thousands of references, which must not become one of calls.
  std::string referred(const JsonField& reference) {
    const std::string& path = reference.string();
    const auto known = referred_.find(path);
    if (known != referred_.end()) return known->second;
    std::string name = referred_[path] = new_name();
    const Json* const target = referred_part(root_.json(), path);
    if (target == nullptr && !path.starts_with('#'))
      reference.fail("must begin with #, or with the $id of the whole schema");
    if (target == nullptr) reference.fail("names nothing");
    const size_t place = std::min(path.find('#'), path.size());
    waiting_.emplace_back(name, JsonField(*target, root_.name() + path.substr(place).erase(0, 1)));
    return name;
  }

  std::string new_name() {
    if (n_names_ == kMostRules) root_.fail("is too large");
    return fmt::format("part-{}", n_names_++);
  }
  std::string new_rule(std::string text) {
    std::string name = new_name();
    rules_[name] = std::move(text);
    return name;
  }

  // How many items or characters there may be. `most` is -1 for any number.
  struct Bounds {
    int64_t least, most;

    // For what follows the first one: "{2,5}" or "{2,}"
    std::string repeat(int64_t n_before) const {
      const int64_t from = std::max<int64_t>(least - n_before, 0);
      return most < 0 ? fmt::format("{{{},}}", from)
                      : fmt::format("{{{},{}}}", from, most - n_before);
    }
  };
  static Bounds bounds(SchemaWords& words, std::string_view least, std::string_view most) {
    const auto n_least = words.read(least);
    const auto n_most = words.read(most);
    const Bounds bounds{n_least ? n_least->integer(0, kMostCount) : 0,
                        n_most ? n_most->integer(0, kMostCount) : -1};
    if (n_most && bounds.most < bounds.least)
      n_most->fail(
          fmt::format("is {}, less than {}, which is {}", bounds.most, least, bounds.least));
    return bounds;
  }

  static std::string string(SchemaWords& words) {
    if (!words.has("minLength") && !words.has("maxLength")) return "string";
    const Bounds lengths = bounds(words, "minLength", "maxLength");
    return fmt::format(R"("\"" char{} "\"" space)", lengths.repeat(0));
  }

  std::string array(SchemaWords& words) {
    const auto items = words.read("items");
    const Bounds counts = bounds(words, "minItems", "maxItems");
    if (const auto parts = words.read("prefixItems")) return tuple(words, *parts, counts);
    if (items && items->json().is_array()) return tuple(words, *items, counts);
    const bool has_none = items && items->json() == false;
    if (has_none && counts.least > 0)
      items->fail(fmt::format("allows no item, and minItems is {}", counts.least));
    const std::string item = items && !has_none ? new_rule(expression(*items)) : "value";
    if (has_none || counts.most == 0) return R"("[" space "]" space)";
    return fmt::format(R"("[" space ({} ("," space {}){}){} "]" space)", item, item,
                       counts.repeat(1), counts.least == 0 ? "?" : "");
  }

  // Exactly these items. The schema also allows fewer items, and others after them; answers have
  // neither.
  std::string tuple(const SchemaWords& words, const JsonField& parts, const Bounds& counts) {
    const std::vector<JsonField> items = parts.elements();
    const int64_t n = std::ssize(items);
    if (counts.least > n)
      words.schema().required("minItems").fail(fmt::format("is more than the {} items", n));
    if (counts.most >= 0 && counts.most < n)
      words.schema().required("maxItems").fail(fmt::format("is less than the {} items", n));
    std::string all;
    for (const JsonField& item : items)
      all += (all.empty() ? "" : R"( "," space )") + expression(item);
    return fmt::format(R"("[" space {} "]" space)", all);
  }

  // Where some properties may be left out, what follows depends on whether one has come already,
  // because it needs a comma then. So each property has two rules: `first` for the case that none
  // has come, `next` for the other. The loop goes from the last property to the first, because a
  // rule refers to the rules of the properties after it. Example with a (optional) and b
  // (required):
  //   first of b  ::= b                       next of b  ::= "," b
  //   first of a  ::= a (next of b) | (first of b)
  std::string object(SchemaWords& words) {
    const auto properties = words.read("properties");
    const std::vector<JsonField> members =
        properties ? properties->members() : std::vector<JsonField>();
    if (members.size() > kMostRules) properties->fail("has too many members");
    const std::set<std::string, std::less<>> required = required_of(words, members);
    const auto others = words.read("additionalProperties");
    if (members.empty()) return map(others);
    std::string first = R"("")", next = R"("")";
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const std::string key(member->key());
      const std::string pair = new_rule(
          fmt::format(R"({} space ":" space {})", literal(Json(key).dump()), expression(*member)));
      const bool is_required = required.contains(key);
      const std::string with = fmt::format("{} {}", pair, next);
      const std::string more = fmt::format(R"("," space {})", with);
      first = new_rule(is_required ? with : fmt::format("{} | {}", with, first));
      next = new_rule(is_required ? more : fmt::format("{} | {}", more, next));
    }
    return fmt::format(R"("{{" space {} "}}" space)", first);
  }

  static std::set<std::string, std::less<>> required_of(SchemaWords& words,
                                                        const std::vector<JsonField>& members) {
    std::set<std::string, std::less<>> keys, required;
    for (const JsonField& member : members) keys.emplace(member.key());
    const auto names = words.read("required");
    if (!names) return required;
    for (const JsonField& name : names->elements()) {
      if (!keys.contains(name.string())) name.fail("is not among the properties");
      required.insert(name.string());
    }
    return required;
  }

  // An object with any keys.
  std::string map(const std::optional<JsonField>& values) {
    if (!values || (values->json().is_boolean() && values->boolean())) return "object";
    if (values->json().is_boolean()) return R"("{" space "}" space)";
    const std::string pair = new_rule(fmt::format(R"(string ":" space {})", expression(*values)));
    return fmt::format(R"("{{" space ({} ("," space {})*)? "}}" space)", pair, pair);
  }

  const JsonField& root_;
  BranchCheck branches_;
  std::map<std::string, std::string> rules_, referred_;
  std::vector<std::pair<std::string, JsonField>> waiting_;  // rules that are not written yet
  size_t n_names_ = 0;
};

}  // namespace

std::string grammar_of_schema(const JsonField& schema) { return SchemaWriter(schema).write(); }

std::string grammar_of_any_object() { return std::string("root ::= object\n").append(kValues); }

}  // namespace limpid
