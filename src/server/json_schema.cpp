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

#include <algorithm>
#include <map>
#include <set>

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
char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
whole ::= "-"? ("0" | [1-9] [0-9]{0,15})
integer ::= whole space
number ::= whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})? space
boolean ::= ("true" | "false") space
null ::= "null" space
)GBNF";

constexpr std::string_view kKnown[] = {
    "type", "const", "enum", "anyOf", "oneOf", "$ref", "required", "items", "minItems", "maxItems",
    "minLength", "properties", "maxLength", "additionalProperties", "prefixItems",
    // These describe.
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs",
    "definitions", "strict", "name"};

// "a\"b" -> "\"a\\\"b\"": a literal of GBNF.
std::string literal(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted += '"';
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const JsonField& root) : root_(root) {}

  std::string write() {
    const std::string body = expression(root_);
    std::string text = fmt::format("root ::= {}\n", body);
    for (const auto& [name, rule] : rules_) text += fmt::format("{} ::= {}\n", name, rule);
    return text.append(kValues);
  }

 private:
  // The expression of what fits `schema`; it may stand wherever an item of a sequence may.
  std::string expression(const JsonField& schema) {
    if (schema.json().is_boolean() && schema.boolean()) return "value";
    for (const JsonField& member : schema.members()) {
      if (std::ranges::find(kKnown, member.key()) == std::end(kKnown))
        member.fail("is not supported in a schema");
    }
    if (const auto reference = schema.find("$ref")) return referred(*reference);
    if (schema.json().contains("const")) return literal_of(schema.json()["const"]);
    if (const auto values = schema.find("enum"))
      return one_of(*values, "value",
                    [](const JsonField& each) { return literal_of(each.json()); });
    for (const char* choice : {"anyOf", "oneOf"}) {
      if (const auto schemas = schema.find(choice))
        return one_of(*schemas, "schema",
                      [this](const JsonField& each) { return expression(each); });
    }
    const auto type = schema.find("type");
    if (!type) return schema.find("properties") ? object(schema) : "value";
    if (!type->json().is_array()) return of_type(schema, *type);
    return one_of(*type, "type", [&](const JsonField& each) { return of_type(schema, each); });
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

  std::string of_type(const JsonField& schema, const JsonField& type) {
    const std::string& name = type.string();
    if (name == "object") return object(schema);
    if (name == "array") return array(schema);
    if (name == "string") return string(schema);
    if (name == "integer" || name == "number" || name == "boolean" || name == "null") return name;
    type.fail("'" + name + "' is not a type");
  }

  static std::string literal_of(const Json& value) { return literal(value.dump()) + " space"; }

  // "#/$defs/node" is a rule of its own, which may contain itself.
  std::string referred(const JsonField& reference) {
    const std::string& path = reference.string();
    const auto known = referred_.find(path);
    if (known != referred_.end()) return known->second;
    if (!path.starts_with('#')) reference.fail("must begin with #");
    std::string name = referred_[path] = new_name();
    const Json* target = nullptr;
    try {
      target = &root_.json().at(Json::json_pointer(path.substr(1)));
    } catch (const Json::exception&) {
      reference.fail("names nothing");
    }
    rules_[name] = expression(JsonField(*target, root_.name() + path.substr(1)));
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

  static int64_t count(const JsonField& schema, std::string_view key, int64_t otherwise) {
    const auto field = schema.find(key);
    return field ? field->integer(0, kMostCount) : otherwise;
  }
  // "{2,5}" or "{2,}"
  static std::string bounds(const JsonField& schema, std::string_view least_key,
                            std::string_view most_key, int64_t n_less) {
    const int64_t least = count(schema, least_key, 0);
    const int64_t most = count(schema, most_key, -1);
    if (most >= 0 && most < least) schema.find(most_key)->fail("is less than the least");
    const int64_t from = std::max<int64_t>(least - n_less, 0);
    return most < 0 ? fmt::format("{{{},}}", from)
                    : fmt::format("{{{},{}}}", from, std::max<int64_t>(most - n_less, 0));
  }

  static std::string string(const JsonField& schema) {
    if (!schema.find("minLength") && !schema.find("maxLength")) return "string";
    return fmt::format(R"("\"" char{} "\"" space)", bounds(schema, "minLength", "maxLength", 0));
  }

  std::string array(const JsonField& schema) {
    const auto tuple = schema.find("prefixItems");
    const auto items = schema.find("items");
    if (tuple || (items && items->json().is_array())) {
      std::string all;
      for (const JsonField& item : (tuple ? *tuple : *items).elements())
        all += (all.empty() ? "" : R"( "," space )") + expression(item);
      return fmt::format(R"("[" space {} "]" space)", all);
    }
    const std::string item = items ? new_rule(expression(*items)) : "value";
    if (count(schema, "maxItems", 1) == 0) return R"("[" space "]" space)";
    const std::string more = bounds(schema, "minItems", "maxItems", 1);
    const bool may_be_empty = count(schema, "minItems", 0) == 0;
    return fmt::format(R"("[" space ({} ("," space {}){}){} "]" space)", item, item, more,
                       may_be_empty ? "?" : "");
  }

  // Where some properties may be left out, what follows depends on whether one has come already,
  // because it needs a comma then. So each property has two rules: `first` for the case that none
  // has come, `next` for the other. The loop goes from the last property to the first, because a
  // rule refers to the rules of the properties after it. Example with a (optional) and b
  // (required):
  //   first of b  ::= b                       next of b  ::= "," b
  //   first of a  ::= a (next of b) | (first of b)
  std::string object(const JsonField& schema) {
    const auto properties = schema.find("properties");
    if (!properties || properties->json().empty()) return map(schema);
    const std::vector<JsonField> members = properties->members();
    if (members.size() > kMostRules) properties->fail("has too many members");
    std::set<std::string, std::less<>> keys, required;
    for (const JsonField& member : members) keys.emplace(member.key());
    if (const auto names = schema.find("required")) {
      for (const JsonField& name : names->elements()) {
        if (!keys.contains(name.string())) name.fail("is not among the properties");
        required.insert(name.string());
      }
    }
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

  std::string map(const JsonField& schema) {
    const auto values = schema.find("additionalProperties");
    if (!values || (values->json().is_boolean() && values->boolean())) return "object";
    if (values->json().is_boolean()) return R"("{" space "}" space)";
    const std::string pair = new_rule(fmt::format(R"(string ":" space {})", expression(*values)));
    return fmt::format(R"("{{" space ({} ("," space {})*)? "}}" space)", pair, pair);
  }

  const JsonField& root_;
  std::map<std::string, std::string> rules_, referred_;
  size_t n_names_ = 0;
};

}  // namespace

std::string grammar_of_schema(const JsonField& schema) { return SchemaWriter(schema).write(); }

std::string grammar_of_any_object() { return std::string("root ::= object\n").append(kValues); }

}  // namespace limpid
