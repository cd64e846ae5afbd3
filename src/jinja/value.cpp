#include "jinja/value.h"

#include <algorithm>

#include "base/utf8.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

constexpr size_t kObjectBytes = 128;  // an object's own size and its share of the allocator
constexpr int kMaxValueDepth = 200;

// The depth of a value that holds `items`.
int depth_over(const std::vector<Value>& items) {
  int depth = 0;
  for (const auto& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

// A range holds its items, as a list does. The sandbox of transformers allows 100,000, so that is
// affordable, and loops, slices and filters need no case for ranges.
std::vector<Value> range_items(Budget* budget, int64_t start, int64_t stop, int64_t step) {
  if (step == 0) fail("range() arg 3 must not be zero");
  constexpr uint64_t kMaxRange = 100000;  // the sandbox's
  std::vector<Value> items;
  if (step > 0 ? start >= stop : start <= stop) return items;
  // Unsigned, because the distance between two integers may not fit in a signed one.
  const auto from = static_cast<uint64_t>(start);
  const auto to = static_cast<uint64_t>(stop);
  const auto by = static_cast<uint64_t>(step);
  const uint64_t n_items = step > 0 ? (to - from - 1) / by + 1 : (from - to - 1) / (0 - by) + 1;
  if (n_items > kMaxRange) fail("range too big: the sandbox allows 100000 items");
  budget->spend(static_cast<int64_t>(n_items));
  budget->check_room(n_items * sizeof(Value));
  items.reserve(n_items);
  for (uint64_t i = 0; i < n_items; ++i) items.emplace_back(static_cast<int64_t>(from + i * by));
  return items;
}

}  // namespace

Object::Object(Budget* budget, size_t bytes, int depth) : budget_(budget), depth_(depth) {
  if (depth > kMaxValueDepth) {
    budget_ = nullptr;
    throw Fault("values are nested too deeply");
  }
  if (budget != nullptr) {
    budget->hold(static_cast<int64_t>(bytes + kObjectBytes));
    bytes_held_ = static_cast<int64_t>(bytes + kObjectBytes);
  }
}

// For objects that grow: scopes, namespaces and generators.
void Object::hold_more(size_t bytes) {
  if (budget_ == nullptr) return;
  budget_->hold(static_cast<int64_t>(bytes));
  bytes_held_ += static_cast<int64_t>(bytes);
}

std::string_view Value::text() const { return as<StringObject>().text.bytes(); }
TracedView Value::traced() const { return as<StringObject>().text; }

StringObject::StringObject(Budget* budget, TracedText traced, bool markup)
    : Object(budget, traced.memory()),
      text(std::move(traced)),
      length(static_cast<int64_t>(unicode::n_characters(text.bytes()))),
      is_markup(markup) {}

SequenceObject::SequenceObject(Budget* budget, std::vector<Value> values)
    : Object(budget, values.size() * sizeof(Value), depth_over(values)), items(std::move(values)) {}

RangeObject::RangeObject(Budget* budget, int64_t from, int64_t to, int64_t by)
    : SequenceObject(budget, range_items(budget, from, to, by)), start(from), stop(to), step(by) {}

// The items move out: each is given once.
bool GeneratorObject::next(Value& out) {
  if (compute_) {
    items_ = std::exchange(compute_, nullptr)();
    hold_more(items_.size() * sizeof(Value));
  }
  if (n_taken_ == items_.size()) return false;
  out = std::move(items_[n_taken_++]);
  return true;
}

// As in Python, a key that comes again keeps its place and gets the new value.
Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries) {
  DictObject::Entries unique;
  DictObject::Index index;
  int depth = 0;
  for (auto& [key, value] : entries) {
    budget.spend(1);
    const size_t hash = hash_of(key);
    depth = std::max({depth, key.depth(), value.depth()});
    const auto [first, last] = index.equal_range(hash);
    auto same = first;
    while (same != last && !equals(budget, unique[same->second].first, key)) ++same;
    if (same != last) {
      unique[same->second].second = std::move(value);
    } else {
      index.emplace(hash, unique.size());
      unique.emplace_back(std::move(key), std::move(value));
    }
  }
  return {Kind::kDict,
          std::make_shared<DictObject>(&budget, std::move(unique), std::move(index), depth + 1)};
}

// The value of the entry whose hash is `hash` and whose key `matches`, or null.
template <typename Matches>
const Value* DictObject::find_entry(size_t hash, Matches&& matches) const {
  const auto [first, last] = index_.equal_range(hash);
  for (auto row = first; row != last; ++row) {
    const auto& [key, value] = entries[row->second];
    if (matches(key)) return &value;
  }
  return nullptr;
}

const Value* DictObject::find(Budget& budget, const Value& key) const {
  if (key.is_string()) return find(key.text());
  return find_entry(hash_of(key), [&](const Value& other) {
    return !other.is_string() && equals(budget, other, key);
  });
}

const Value* DictObject::find(std::string_view key) const {
  return find_entry(std::hash<std::string_view>{}(key),
                    [&](const Value& other) { return other.is_string() && other.text() == key; });
}

// Names with an underscore are refused as the sandbox of transformers refuses them.
void NamespaceObject::set(std::string_view name, Value value) {
  if (name.starts_with('_')) fail("attributes of a namespace cannot begin with an underscore");
  const auto [place, is_new] = attributes.insert_or_assign(std::string(name), std::move(value));
  if (is_new) hold_more(sizeof(*place) + 6 * sizeof(void*) + name.size());
}

Value make_string(Budget& budget, TracedText text, bool is_markup) {
  budget.spend_bytes(text.size());
  return {Kind::kString, std::make_shared<StringObject>(&budget, std::move(text), is_markup)};
}

Value make_string(Budget& budget, TracedView part, bool is_markup) {
  budget.check_room(part.memory());
  return make_string(budget, TracedText(part), is_markup);
}

Value make_literal_string(std::string text) {
  return {Kind::kString, std::make_shared<StringObject>(
                             nullptr, TracedText(std::move(text), Origin::kTemplate), false)};
}

// The message may quote names of the template, so it is paid for.
Value make_undefined(Budget& budget, std::string message) {
  budget.spend_bytes(message.size());
  return {Kind::kUndefined, std::make_shared<UndefinedObject>(&budget, std::move(message))};
}

Value make_list(Budget& budget, std::vector<Value> items) {
  return {Kind::kList, std::make_shared<SequenceObject>(&budget, std::move(items))};
}

Value make_tuple(Budget& budget, std::vector<Value> items) {
  return {Kind::kTuple, std::make_shared<SequenceObject>(&budget, std::move(items))};
}

Value make_generator(Budget& budget, std::vector<Value> items) {
  const Value kept = make_tuple(budget, std::move(items));
  return make_generator(
      budget, [kept] { return kept.as<SequenceObject>().items; }, kept.depth());
}

Value make_generator(Budget& budget, GeneratorObject::Compute compute, int depth) {
  return {Kind::kGenerator,
          std::make_shared<GeneratorObject>(&budget, std::move(compute), depth + 1)};
}

std::string_view python_type_name(const Value& value) {
  if (value.is_string() && value.as<StringObject>().is_markup) return "Markup";
  if (value.is(Kind::kDictView)) return value.as<DictViewObject>().type_name;
  constexpr std::string_view kNames[] = {"NoneType",  "Undefined",   "bool",
                                         "int",       "float",       "str",
                                         "list",      "tuple",       "dict",
                                         "dict_view", "range",       "TemplateNamespace",
                                         "generator", "LoopContext", "builtin_function_or_method",
                                         "Macro"};
  return kNames[static_cast<size_t>(value.kind())];
}

// Equal values must have equal hashes: 1, 1.0 and true are one key, so all numbers hash as doubles.
size_t hash_of(const Value& value) {
  if (value.is(Kind::kNone)) return 1;
  if (value.is_undefined()) return 2;
  if (value.is_number()) return std::hash<double>{}(value.real());
  if (value.is_string()) return std::hash<std::string_view>{}(value.text());
  if (value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kDictView)) {
    fail("unhashable type: '{}'", python_type_name(value));
  }
  if (!value.is(Kind::kTuple)) return std::hash<Object*>{}(value.object());
  const auto& tuple = value.as<SequenceObject>();
  if (!tuple.hash) {
    size_t hash = 3;
    for (const auto& item : tuple.items) hash = hash * 31 + hash_of(item);
    tuple.hash = hash;
  }
  return *tuple.hash;
}

}  // namespace limpid::jinja
