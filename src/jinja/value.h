// The values that a template computes with. They behave as Python's values, because templates are
// written for Python: `1 == true`; a dict keeps the order of its keys; a missing name is a value
// too (undefined), which only some uses refuse. Unlike in Python, an integer has 64 bits, and a
// larger one is an error.
//
// A Value is 32 bytes: a kind, a number or nothing, and a shared pointer to an Object for
// everything else. Values never change, so copying one shares its object. The one exception is a
// namespace, which exists in Jinja to be changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jinja/budget.h"
#include "jinja/traced_text.h"

namespace limpid::jinja {

// In the order of the names in python_type_name().
enum class Kind : uint8_t {
  kNone,
  kUndefined,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kNamespace,
  kGenerator,
  kLoop,
  kFunction,
  kMacro,
};

// What a value refers to. An object counts its bytes in the budget while it exists. It also knows
// how deeply values are nested in it, and its constructor fails beyond a limit. So functions that
// recurse over values (printing, comparing, destroying) need no guard against deep recursion.
class Object {
 public:
  virtual ~Object() {
    if (budget_ != nullptr) budget_->release(bytes_held_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int depth() const { return depth_; }

 protected:
  // `budget` null: a constant of the template, which outlives the render and is not accounted.
  Object(Budget* budget, size_t bytes, int depth = 1);
  void hold_more(size_t bytes);

 private:
  Budget* budget_;
  int64_t bytes_held_ = 0;
  int depth_;
};

// `kind` says which of these may be called: integer() for booleans and integers, real() for all
// numbers, as<T>() for kinds with an object. Nothing is checked here; callers look at the kind
// first.
class Value {
 public:
  Value() = default;  // none
  explicit Value(bool b) : kind_(Kind::kBool), integer_(b) {}
  explicit Value(int64_t i) : kind_(Kind::kInt), integer_(i) {}
  explicit Value(double d) : kind_(Kind::kFloat), real_(d) {}
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_sequence() const {  // as<SequenceObject>() is allowed
    return kind_ == Kind::kList || kind_ == Kind::kTuple || kind_ == Kind::kDictView ||
           kind_ == Kind::kRange;
  }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }

  int64_t integer() const { return integer_; }  // kInt, kBool
  double real() const { return kind_ == Kind::kFloat ? real_ : static_cast<double>(integer_); }
  std::string_view text() const;  // kString
  TracedView traced() const;      // kString: the text with its origins
  Object* object() const { return object_.get(); }
  template <typename T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  int depth() const { return object_ ? object_->depth() : 0; }

 private:
  Kind kind_ = Kind::kNone;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

// A text with its origins. Its length in characters is counted once, because indices, slices and
// `length` ask for it often.
struct StringObject : Object {
  StringObject(Budget* budget, TracedText traced, bool markup);
  const TracedText text;
  const int64_t length;  // code points
  const bool is_markup;  // already escaped for HTML (markupsafe.Markup)
};

// The value of a name or an attribute that does not exist. Tests and `default` accept it, and it
// prints as nothing. Other uses throw `message`, which names what is missing.
struct UndefinedObject : Object {
  UndefinedObject(Budget* budget, std::string text)
      : Object(budget, text.size()), message(std::move(text)) {}
  const std::string message;  // what using it says
};

struct SequenceObject : Object {  // kList, kTuple; with more facts kDictView, kRange
  SequenceObject(Budget* budget, std::vector<Value> values);
  const std::vector<Value> items;
  mutable std::optional<size_t> hash;  // of a tuple, once asked: shared parts are not hashed again
};

struct DictViewObject : SequenceObject {  // what keys(), values() and items() return
  DictViewObject(Budget* budget, std::vector<Value> values, std::string_view type)
      : SequenceObject(budget, std::move(values)), type_name(type) {}
  const std::string_view type_name;
};

// range(start, stop, step), which prints as it was made.
struct RangeObject : SequenceObject {
  RangeObject(Budget* budget, int64_t from, int64_t to, int64_t by);
  const int64_t start, stop, step;
};

// A Python generator: it computes its items when the first one is needed, and returns each item
// once. So a template may apply a filter to none, as long as it does not read the result.
class GeneratorObject : public Object {
 public:
  using Compute = std::function<std::vector<Value>()>;
  GeneratorObject(Budget* budget, Compute compute, int depth)
      : Object(budget, 0, depth), compute_(std::move(compute)) {}
  bool next(Value& out);  // false at the end

 private:
  Compute compute_;  // empty once it ran
  std::vector<Value> items_;
  size_t n_taken_ = 0;
};

// Keys in the order of insertion. Any hashable value is a key; 1, 1.0 and true are the same.
struct DictObject : Object {
  using Entries = std::vector<std::pair<Value, Value>>;
  using Index = std::unordered_multimap<size_t, size_t>;  // hash -> position
  // `unique`: without keys that are equal; see make_dict.
  DictObject(Budget* budget, Entries unique, Index index, int depth)
      : Object(budget, unique.size() * 4 * sizeof(Value), depth),
        entries(std::move(unique)),
        index_(std::move(index)) {}
  // Return null for an unknown key. The second function is for keys that are text, and needs no
  // Value.
  const Value* find(Budget& budget, const Value& key) const;  // throws Fault: not hashable
  const Value* find(std::string_view key) const;

  const Entries entries;

 private:
  template <typename Matches>
  const Value* find_entry(size_t hash, Matches&& matches) const;
  const Index index_;
};

// The only value that a template can change. So every cycle of references goes through a namespace
// (or a scope that a macro keeps); the interpreter empties them at its end, and no memory leaks.
struct NamespaceObject : Object {
  explicit NamespaceObject(Budget* budget) : Object(budget, 0) {}
  void set(std::string_view name, Value value);
  std::map<std::string, Value, std::less<>> attributes;
};

// Create values that have an object. The object counts in the budget; throw Fault when the budget
// has no room for it.
Value make_string(Budget& budget, TracedText text, bool is_markup = false);
Value make_string(Budget& budget, TracedView part, bool is_markup = false);
// A string literal of the template.
Value make_literal_string(std::string text);
Value make_undefined(Budget& budget, std::string message);
Value make_list(Budget& budget, std::vector<Value> items);
Value make_tuple(Budget& budget, std::vector<Value> items);
Value make_generator(Budget& budget, std::vector<Value> items);
// `depth`: of the values that `compute` refers to.
Value make_generator(Budget& budget, GeneratorObject::Compute compute, int depth);
Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries);  // later keys win

// JSON as values. Numbers keep their kind: 1 is an integer and 1.0 a float, which templates print
// apart. Throws Fault for integers beyond 64 bits and for nesting beyond the limit.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);  // json_values.cpp

std::string_view python_type_name(const Value& value);  // "str", "dict", "NoneType", …
// Throws Fault for lists, dicts and tuples that hold one.
size_t hash_of(const Value& value);

}  // namespace limpid::jinja
