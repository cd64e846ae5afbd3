#include "server/json_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generate/grammar.h"

namespace limpid::testing {
namespace {

bool fits(const std::string& schema, std::string_view text) {
  const Json json = Json::parse(schema);
  const Grammar grammar = parse_grammar(grammar_of_schema(JsonField(json, "schema")));
  GrammarMatcher matcher(grammar);
  GrammarMatcher::State state = matcher.begin();
  for (const char c : text) state = matcher.advance(state, static_cast<uint8_t>(c));
  return GrammarMatcher::is_complete(state);
}

std::string blamed(const std::string& schema) {
  try {
    fits(schema, "");
  } catch (const ApiError& error) {
    return error.param();
  }
  return "nothing";
}

TEST(JsonSchema, ValuesOfATypeFit) {
  struct Case {
    const char* schema;
    std::vector<const char*> good, bad;
  };
  for (const Case& c : {
           Case{R"({"type": "integer"})", {"0", "-12", "7 "}, {"01", "1.5", "\"1\"", "", "1e2"}},
           Case{R"({"type": "number"})", {"0", "-1.25", "1e-5", "2.0E+3"}, {".5", "1.", "--1"}},
           Case{
               R"({"type": ["boolean", "null"]})", {"true", "false", "null"}, {"True", "0", "nul"}},
           Case{R"({"type": "string"})",
                {R"("")", R"("é \n \u00e9 \ud7ff \uE000 \"")"},
                {R"(")", R"("\x")", "\"\n\"", "'a'", R"("\ud800")", R"("\uDEAD")"}},
           Case{R"({"type": "string", "minLength": 2, "maxLength": 3})",
                {R"("éé")", R"("abc")"},
                {R"("a")", R"("abcd")"}},
           Case{R"({"const": {"a": [1, "\"x\""]}})", {R"({"a":[1,"\"x\""]})"}, {"{}", "1"}},
           Case{R"({"enum": ["a", 2, null]})", {"\"a\"", "2", "null"}, {"a", "3"}},
           Case{R"({"anyOf": [{"type": "integer"}, {"const": "none"}]})",
                {"5", "\"none\""},
                {"none"}},
           Case{R"({})", {"1", "[1, {\"a\": []}]", "\"x\""}, {"x", "[1,]", "{\"a\"}"}},
       }) {
    for (const char* text : c.good) EXPECT_TRUE(fits(c.schema, text)) << c.schema << " " << text;
    for (const char* text : c.bad) EXPECT_FALSE(fits(c.schema, text)) << c.schema << " " << text;
  }
}

TEST(JsonSchema, ArraysHaveTheirItems) {
  const char* three = R"({"type": "array", "items": {"type": "integer"}, "maxItems": 3})";
  for (const char* text : {"[]", "[1]", "[ 1,2 , 3 ]"}) EXPECT_TRUE(fits(three, text)) << text;
  for (const char* text : {"[1,2,3,4]", "[\"a\"]", "[1,]", "[1 2]"})
    EXPECT_FALSE(fits(three, text)) << text;
  const char* some = R"({"type": "array", "minItems": 2})";
  EXPECT_FALSE(fits(some, "[1]"));
  EXPECT_TRUE(fits(some, "[1, \"a\", []]"));
  const char* pair = R"({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "b"}]})";
  EXPECT_TRUE(fits(pair, "[1,\"b\"]"));
  EXPECT_FALSE(fits(pair, "[1]"));
  EXPECT_TRUE(fits(R"({"type": "array", "maxItems": 0})", "[]"));
  EXPECT_TRUE(fits(R"({"items": false})", "[ ]"));
  EXPECT_FALSE(fits(R"({"items": false})", "[1]"));
}

TEST(JsonSchema, ObjectsHaveTheirProperties) {
  const char* person = R"({"type": "object", "title": "Person", "required": ["b", "d"],
      "properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
                     "c": {"type": "integer"}, "d": {"type": "integer"}},
      "additionalProperties": false})";
  for (const char* text :
       {R"({"b":1,"d":2})", R"({"a":0,"b":1,"c":2,"d":3})", R"({ "b" : 1 , "c" : 2, "d" : 3 })"})
    EXPECT_TRUE(fits(person, text)) << text;
  for (const char* text : {"{}", R"({"b":1})", R"({"d":2,"b":1})", R"({"a":1,"d":2})",
                           R"({"b":1,,"d":2})", R"({"b":1,"d":2,})", R"({"b":1,"d":2,"e":3})"})
    EXPECT_FALSE(fits(person, text)) << text;
  const char* optional = R"({"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}})";
  for (const char* text : {"{}", R"({"a":1})", R"({"b":null})", R"({"a":1,"b":null})"})
    EXPECT_TRUE(fits(optional, text)) << text;
  EXPECT_FALSE(fits(optional, R"({,"b":null})"));
  const char* counts = R"({"type": "object", "additionalProperties": {"type": "integer"}})";
  EXPECT_TRUE(fits(counts, R"({"x": 1, "y": 2})"));
  EXPECT_FALSE(fits(counts, R"({"x": "1"})"));
  EXPECT_TRUE(fits(R"({"type": "object"})", R"({"x": [null]})"));
}

TEST(JsonSchema, PartsMayContainThemselves) {
  const char* tree = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
      "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}})";
  EXPECT_TRUE(fits(tree, R"({"kids": [{}, {"kids": [{"kids": []}]}]})"));
  EXPECT_FALSE(fits(tree, R"({"kids": [1]})"));
}

TEST(JsonSchema, ReferencesAreWrittenAsInUrls) {
  const char* schema = R"({"anyOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#/$defs/c~1d~0%25"}],
      "$defs": {"a b": {"const": 1}, "c/d~%": {"const": 2}}})";
  for (const char* text : {"1", "2"}) EXPECT_TRUE(fits(schema, text)) << text;
  EXPECT_FALSE(fits(schema, "3"));
  for (const char* wrong : {R"({"$ref": "#/$defs/a%2", "$defs": {"a%2": {}}})",
                            R"({"$ref": "#/$defs/a b%20", "$defs": {"a b": {}}})"})
    EXPECT_EQ(blamed(wrong), "schema.$ref") << wrong;
}

TEST(JsonSchema, AnIdNamesTheWholeSchemaOnly) {
  const char* tree = R"({"$id": "https://a.example/tree#", "type": "object", "properties": {
      "kids": {"items": {"$ref": "https://a.example/tree"}},
      "n": {"$id": "#n", "$ref": "https://a.example/tree#/$defs/n"}}, "$defs": {"n": {"const": 1}}})";
  EXPECT_TRUE(fits(tree, R"({"kids": [{"n": 1}, {}], "n": 1})"));
  EXPECT_FALSE(fits(tree, R"({"kids": [1]})"));
  EXPECT_FALSE(fits(tree, R"({"n": 2})"));
  // "#/$defs/b" would be the inner one.
  const char* inner = R"({"properties": {"a": {"$id": "a", "items": {"$ref": "#/$defs/b"},
      "$defs": {"b": {"const": 1}}}}, "$defs": {"b": {"const": 2}}})";
  EXPECT_EQ(blamed(inner), "schema.properties.a.$id");
  EXPECT_EQ(blamed(R"({"items": {"$id": "a", "type": "null"}})"), "nothing");
  EXPECT_EQ(blamed(R"({"$id": "a", "$ref": "ab"})"), "schema.$ref");
}

// Exactly one branch may fit, and a grammar can only say that at least one does.
TEST(JsonSchema, OneOfTakesBranchesThatExcludeEachOther) {
  for (const char* schema : {
           R"({"oneOf": [{}]})",
           R"({"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": ["null", "array"]}]})",
           R"({"oneOf": [{"const": "a"}, {"enum": ["b", 1]}, {"const": null}, {"const": [1]}]})",
           R"({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/a"}],
               "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "object"}}})",
           R"({"oneOf": [{"required": ["a", "k"], "properties": {"a": {}, "k": {"const": 1}}},
                         {"required": ["k"], "properties": {"k": {"enum": [2, 3]}}}]})",
           R"({"oneOf": [{"required": ["k"], "properties": {"k": {"const": 1}}},
                         {"type": "object", "required": ["k"],
                          "properties": {"k": {"const": 2}}}]})",
           R"({"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
               "$defs": {"k": {"enum": ["x"], "type": "string"},
                 "a": {"type": "object", "required": ["k"],
                       "properties": {"k": {"$ref": "#/$defs/k"}}},
                 "b": {"type": "object", "required": ["k"],
                       "properties": {"k": {"const": "y"}, "z": {"$ref": "#/$defs/b"}}}}})",
       })
    EXPECT_EQ(blamed(schema), "nothing") << schema;
  const char* shapes = R"({"oneOf": [
      {"required": ["k"], "properties": {"k": {"const": "a"}, "n": {"type": "integer"}}},
      {"required": ["k"], "properties": {"k": {"const": "b"}}}]})";
  EXPECT_TRUE(fits(shapes, R"({"k":"a","n":1})"));
  EXPECT_TRUE(fits(shapes, R"({"k":"b"})"));
  EXPECT_FALSE(fits(shapes, R"({"k":"b","n":1})"));
}

TEST(JsonSchema, OneOfRefusesBranchesThatMayBothFit) {
  for (
      const char* schema : {
          R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
          R"({"oneOf": [{"type": "string"}, {}]})",
          R"({"oneOf": [{"type": "string"}, {"const": "a"}]})",
          R"({"oneOf": [{"type": ["string", "null"]}, {"type": ["object", "null"]}]})",
          R"({"oneOf": [{"const": 1}, {"enum": [2, 1.0]}]})",
          R"({"oneOf": [{"const": 0}, {"const": -0.0}]})",
          R"({"oneOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})",
          R"({"oneOf": [{"type": "object"}, {"properties": {"a": {}}}]})",
          R"({"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k"]},
                         {"properties": {"k": {"const": 2}}}]})",
          R"({"oneOf": [{"properties": {"k": {"enum": [1, 2]}}, "required": ["k"]},
                         {"properties": {"k": {"enum": [2, 3]}}, "required": ["k"]}]})",
          R"({"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k"]},
                         {"properties": {"l": {"const": 2}}, "required": ["l"]}]})",
          R"({"oneOf": [{"$ref": "#"}, {"$ref": "#"}]})",
          R"({"oneOf": [{"type": "string"}, {"properties": {"a": {"type": "integer"}}}]})",
          R"({"oneOf": [{"properties": {"a": {}}}, {"type": "null"}]})",
          R"({"oneOf": [{"const": 1}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {}}}})",
          R"({"oneOf": [{"additionalProperties": false}, {"type": "array"}]})",
          R"({"oneOf": [{"properties": {"k": {"properties": {}}}, "required": ["k"]},
                         {"properties": {"k": {"const": "a"}}, "required": ["k"]}]})",
      })
    EXPECT_EQ(blamed(schema), "schema.oneOf") << schema;
  const Json json = Json::parse(R"({"oneOf": [{}, {}]})");
  try {
    grammar_of_schema(JsonField(json, "schema"));
    FAIL() << "no error";
  } catch (const ApiError& error) {
    EXPECT_NE(std::string(error.what()).find("anyOf"), std::string::npos);
  }
}

TEST(JsonSchema, OneOfWithManyBranchesEndsSoon) {
  std::string list = "0";
  for (int i = 1; i < 2000; ++i) list += fmt::format(",{}", i);
  std::string branches = R"({"type": "null"})";
  for (int i = 0; i < 200; ++i) branches += R"(, {"$ref": "#/$defs/a"})";
  EXPECT_EQ(blamed(fmt::format(R"({{"oneOf": [{}], "$defs": {{"a": {{"enum": [{}]}}}}}})", branches,
                               list)),
            "schema.oneOf");
  std::string parts;
  for (int i = 0; i < 300; ++i) {
    parts += i == 0 ? "" : ", ";
    parts += R"({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]})";
  }
  EXPECT_EQ(blamed(fmt::format(R"({{"prefixItems": [{}], "$defs": {{"a": {{"enum": [{}]}}}}}})",
                               parts, list)),
            "schema");
  std::string many = R"({"const": 0})";
  for (int i = 1; i < 300; ++i) many += fmt::format(R"(, {{"const": {}}})", i);
  EXPECT_EQ(blamed(R"({"oneOf": [)" + many + "]}"), "schema.oneOf");
}

// Every answer that fits must fit all words of the schema.
TEST(JsonSchema, NoWordIsWithoutEffect) {
  struct Case {
    const char* schema;
    const char* param;
  };
  for (const Case& c : {
           Case{R"({"type": "object", "required": ["zebra"]})", "schema.required[0]"},
           Case{R"({"type": "array", "prefixItems": [{}], "maxItems": 0})", "schema.maxItems"},
           Case{R"({"type": "array", "prefixItems": [{}], "minItems": 2})", "schema.minItems"},
           Case{R"({"items": [{}], "minItems": 2})", "schema.minItems"},
           Case{R"({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"type": "string"}}})",
                "schema.maxLength"},
           Case{R"({"required": ["a"]})", "schema.required"},
           Case{R"({"type": ["array", "array"], "prefixItems": [{}]})", "schema.type[1]"},
           Case{R"({"maxLength": 3})", "schema.maxLength"},
           Case{R"({"type": "array", "uniqueItems": true})", "schema.uniqueItems"},
           Case{R"({"type": "array", "items": false, "minItems": 1})", "schema.items"},
           Case{R"({"minItems": 3})", "schema.minItems"},
           Case{R"({"anyOf": [{}], "properties": {"a": {}}})", "schema.properties"},
           Case{R"({"anyOf": [{}], "required": ["a"]})", "schema.required"},
           Case{R"({"anyOf": [{}], "oneOf": [{}]})", "schema.oneOf"},
           Case{R"({"anyOf": [{}], "type": "string"})", "schema.type"},
           Case{R"({"enum": ["a"], "minLength": 2})", "schema.minLength"},
           Case{R"({"const": "a", "minLength": 2})", "schema.minLength"},
           Case{R"({"enum": ["a"], "type": "integer"})", "schema.enum"},
           Case{R"({"enum": ["a"], "const": "b"})", "schema.enum"},
           Case{R"({"const": "a", "type": "null"})", "schema"},
           Case{R"({"type": "string", "properties": {}})", "schema.properties"},
           Case{R"({"properties": {}, "items": {}})", "schema.items"},
           Case{R"({"type": "array", "minItems": 1, "maxItems": 0})", "schema.maxItems"},
           Case{R"({"items": {"type": "integer", "required": []}})", "schema.items.required"},
       })
    EXPECT_EQ(blamed(c.schema), c.param) << c.schema;
  for (const char* schema :
       {R"({"$ref": "#/$defs/a", "title": "A", "$defs": {"a": {"type": "string"}}})",
        R"({"type": ["string", "null"], "maxLength": 3, "description": "", "default": null})",
        R"({"type": "object", "properties": {}, "required": [], "additionalProperties": false})",
        R"({"type": "array", "prefixItems": [{}], "items": false, "minItems": 1, "maxItems": 1})",
        R"({"type": "string", "pattern": null, "$comment": "", "examples": ["a"]})",
        R"({"type": "string", "deprecated": true, "readOnly": true, "writeOnly": false})",
        R"({"type": "array", "uniqueItems": false, "$anchor": "a", "example": [1], "x-order": 2})",
        R"({"oneOf": [{"const": 1}], "discriminator": {"propertyName": "kind"}})"})
    EXPECT_EQ(blamed(schema), "nothing") << schema;
}

TEST(JsonSchema, WordsBesideEachOtherAllCount) {
  const char* known = R"({"enum": ["a", 2, null], "type": ["string", "null"]})";
  for (const char* text : {"\"a\"", "null"}) EXPECT_TRUE(fits(known, text)) << text;
  EXPECT_FALSE(fits(known, "2"));
  EXPECT_TRUE(fits(R"({"const": 2.0, "type": "integer"})", "2.0"));
  const char* constant = R"({"const": null, "enum": ["a", null]})";
  EXPECT_TRUE(fits(constant, "null"));
  EXPECT_FALSE(fits(constant, "\"a\""));
  const char* inferred = R"({"items": {"type": "integer"}, "maxItems": 1})";
  EXPECT_TRUE(fits(inferred, "[1]"));
  EXPECT_FALSE(fits(inferred, "[1,2]"));
  EXPECT_FALSE(fits(inferred, "\"a\""));
  EXPECT_TRUE(fits(R"({"additionalProperties": false})", "{}"));
  EXPECT_FALSE(fits(R"({"additionalProperties": false})", R"({"a":1})"));
}

TEST(JsonSchema, ChainsOfReferencesTakeNoStack) {
  std::string parts;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"items":)";
  for (int i = 0; i < 1000; ++i) {
    parts +=
        fmt::format(R"("{}":{}{{"$ref":"#/$defs/{}"}}{},)", i, deep, i + 1, std::string(100, '}'));
  }
  EXPECT_EQ(blamed(R"({"$ref":"#/$defs/0","$defs":{)" + parts + R"("1000":{}}})"), "schema");
}

TEST(JsonSchema, SaysWhichPartIsWrong) {
  EXPECT_EQ(blamed("5"), "schema");
  EXPECT_EQ(blamed("false"), "schema");
  EXPECT_EQ(blamed(R"({"properties": {"a": false}})"), "schema.properties.a");
  EXPECT_EQ(blamed(R"({"type": 5})"), "schema.type");
  EXPECT_EQ(blamed(R"({"type": "hiccup"})"), "schema.type");
  EXPECT_EQ(blamed(R"({"properties": {"a": {"pattern": "x"}}})"), "schema.properties.a.pattern");
  EXPECT_EQ(blamed(R"({"$ref": "#/nowhere"})"), "schema.$ref");
  EXPECT_EQ(blamed(R"({"$ref": "other.json"})"), "schema.$ref");
  EXPECT_EQ(blamed(R"({"properties": {"a": {}}, "required": ["b"]})"), "schema.required[0]");
  EXPECT_EQ(blamed(R"({"type": "array", "minItems": 3, "maxItems": 2})"), "schema.maxItems");
  EXPECT_EQ(blamed(R"({"enum": []})"), "schema.enum");
}

}  // namespace
}  // namespace limpid::testing
