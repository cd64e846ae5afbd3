// The commonest "oneOf" is a list of objects that a constant tells apart (a discriminated union):
//
//   {"oneOf": [{"properties": {"kind": {"const": "circle"}, …}, "required": ["kind"]},
//              {"properties": {"kind": {"const": "square"}, …}, "required": ["kind"]}]}
//
// A branch is known by two sets: the values that may fit it, and those that the grammar makes of
// it, which are fewer. "properties" without "type" fits each string and number as well, and the
// grammar makes objects of it. What is known is always too much rather than too little. Two
// branches exclude each other where what is made of each fits the other in no case. Others may do
// so too, for a reason that is not looked at; they are refused.
#include "server/json_schema_branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "server/http_text.h"

namespace limpid {
namespace {

// Each pair of branches is compared, and each reference is followed anew, so both are bounded.
constexpr size_t kMostBranches = 256;
constexpr size_t kMostSeen = 100'000;
constexpr int kMostReferences = 32;  // in a chain

// One bit for each type of JSON. An integer is a number, and 1.0 is an integer.
constexpr std::pair<std::string_view, unsigned> kTypes[] = {
    {"null", 1U},   {"boolean", 2U}, {"number", 4U}, {"integer", 4U},
    {"string", 8U}, {"array", 16U},  {"object", 32U}};
constexpr unsigned kObject = 32, kAnyType = 63;

unsigned type_called(std::string_view name) {
  const auto* const found =
      std::ranges::find(kTypes, name, &std::pair<std::string_view, unsigned>::first);
  return found == std::end(kTypes) ? kAnyType : found->second;
}

// Equal values have equal texts: 1 and 1.0 have. Nothing for objects, whose members may come in any
// order, and for arrays, which may hold such.
using Constants = std::set<std::string, std::less<>>;
std::optional<std::string> text_of(const Json& value) {
  if (value.is_structured()) return std::nullopt;
  return value.is_number() ? fmt::format("{}", value.get<double>() + 0.0) : value.dump();
}

bool has(const Json& schema, std::string_view word) {
  const auto found = schema.find(word);
  return found != schema.end() && !found->is_null();
}

// The types that the words of a schema without constants allow.
unsigned allowed_types(const Json& schema) {
  if (!has(schema, "type")) return kAnyType;
  const auto type = schema.find("type");
  unsigned types = 0;
  for (const Json& name : type->is_array() ? *type : Json::array({*type}))
    types |= name.is_string() ? type_called(name.get_ref<const std::string&>()) : kAnyType;
  return types;
}

// The types of what the grammar makes of such a schema, in which a word of objects alone stands for
// their type.
unsigned made_types(const Json& schema) {
  const bool is_object = has(schema, "properties") || has(schema, "additionalProperties");
  return is_object && !has(schema, "type") ? kObject : allowed_types(schema);
}

bool are_apart(const Constants& a, const Constants& b) {
  const bool a_is_smaller = a.size() < b.size();
  const Constants& few = a_is_smaller ? a : b;
  const Constants& many = a_is_smaller ? b : a;
  return std::ranges::none_of(few, [&](const std::string& text) { return many.contains(text); });
}

}  // namespace

// The types of the values that may fit a schema, those of the values that are made of it, and the
// texts of both if there are constants.
struct BranchCheck::Known {
  unsigned types = kAnyType;
  unsigned made = kAnyType;
  std::optional<Constants> constants;

  // Whether no value that is made of this fits `other`.
  bool avoids(const Known& other) const {
    return (made & other.types) == 0 ||
           (constants && other.constants && are_apart(*constants, *other.constants));
  }
};

struct BranchCheck::Branch {
  Known value;
  std::map<std::string, Known> required;  // properties

  bool excludes(const Branch& other) const { return avoids(other) && other.avoids(*this); }
  bool avoids(const Branch& other) const {
    if (value.avoids(other.value)) return true;
    if ((value.made & other.value.types) != kObject) return false;
    return std::ranges::any_of(required, [&](const auto& property) {
      const auto same = other.required.find(property.first);
      return same != other.required.end() && property.second.avoids(same->second);
    });
  }
};

const Json* referred_part(const Json& root, std::string_view reference) {
  const auto id = root.find("$id");
  if (id != root.end() && id->is_string()) {
    std::string_view name = id->get_ref<const std::string&>();
    if (name.ends_with('#')) name.remove_suffix(1);
    if (reference == name) return &root;
    if (reference.starts_with(name)) reference.remove_prefix(name.size());
  }
  if (!reference.starts_with('#')) return nullptr;
  const auto path = percent_decoded(reference.substr(1));
  if (!path) return nullptr;
  try {
    return &root.at(Json::json_pointer(*path));
  } catch (const Json::exception&) {
    return nullptr;
  }
}

void BranchCheck::count(size_t n) {
  n_seen_ += n;
  if (n_seen_ > kMostSeen) root_.fail("has too many schemas in oneOf to compare: use anyOf");
}

// The schema that `schema` refers to, or itself. Null where nothing is known: for a schema that is
// true, and for references that go on for long.
const Json* BranchCheck::resolved(const Json& schema) const {
  const Json* part = &schema;
  for (int i = 0; i < kMostReferences; ++i) {
    if (part == nullptr || !part->is_object()) return nullptr;
    const auto reference = part->find("$ref");
    if (reference == part->end() || !reference->is_string()) return part;
    part = referred_part(root_.json(), reference->get_ref<const std::string&>());
  }
  return nullptr;
}

BranchCheck::Known BranchCheck::known_values(const Json& schema) {
  const Json* const part = resolved(schema);
  if (part == nullptr) return {};
  count(part->size());
  const auto constant = part->find("const");
  const auto list = part->find("enum");
  const bool has_list = list != part->end() && list->is_array();
  if (constant == part->end() && !has_list)
    return {allowed_types(*part), made_types(*part), std::nullopt};
  Known known{0, 0, Constants()};
  for (const Json& value : constant != part->end() ? Json::array({*constant}) : *list) {
    count(1);
    known.types |= type_called(value.type_name());
    const auto text = text_of(value);
    if (text && known.constants) known.constants->insert(*text);
    if (!text) known.constants.reset();
  }
  known.made = known.types;
  return known;
}

BranchCheck::Branch BranchCheck::branch_of(const Json& schema) {
  Branch branch{known_values(schema), {}};
  const Json* const part = resolved(schema);
  if (part == nullptr) return branch;
  const auto properties = part->find("properties");
  const auto required = part->find("required");
  if (properties == part->end() || !properties->is_object() || required == part->end())
    return branch;
  count(properties->size() + required->size());
  const std::set<Json> names(required->begin(), required->end());
  for (const auto& [name, property] : properties->items()) {
    if (names.contains(Json(name))) branch.required.emplace(name, known_values(property));
  }
  return branch;
}

void BranchCheck::require_disjoint(const JsonField& one_of) {
  const std::vector<JsonField> schemas = one_of.elements();
  if (schemas.size() > kMostBranches)
    one_of.fail(fmt::format("has more than {} schemas: use anyOf", kMostBranches));
  std::vector<Branch> branches;
  for (size_t i = 0; i < schemas.size(); ++i) {
    count(1);
    branches.push_back(branch_of(schemas[i].json()));
    for (size_t k = 0; k < i; ++k) {
      if (!branches[k].excludes(branches[i]))
        one_of.fail(fmt::format(
            "cannot be honoured: a value may fit both [{}] and [{}]. Use anyOf, a 'type' "
            "in each, or a property that both require and whose constants differ",
            k, i));
    }
  }
}

}  // namespace limpid
