// Filters, tests, methods and global functions by name.
//
// A builtin is a row of a table: its name, its function and its parameters. Interpreter binds the
// arguments of a call to the parameters before the function runs, so no function checks names,
// counts or repetitions by hand; it asks its BuiltinCall for what it needs. To add one, write the
// function and its row.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/operators.h"

namespace limpid::jinja {

class Interpreter;
struct Builtin;

// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A call of a builtin, with the arguments bound to its parameters.
// For example filter_default in text_filters.cpp, with the row
//
//   {"default", filter_default, {"default_value", "boolean"}},
//
// reads call.self, call.truth(1, false) for `boolean` and call.value_or(0, …) for `default_value`.
// Three ways of passing exist, because Python has them: most builtins take arguments by name or by
// position, methods of str by position only, and a few (namespace, map, select) take any.
class BuiltinCall {
 public:
  // Throws Fault for arguments that are missing, repeated, unknown or too many.
  BuiltinCall(Interpreter& caller, const Builtin& builtin, const Value& on, const Arguments& given);
  // The same call on another operand.
  BuiltinCall(const BuiltinCall& other, const Value& on)
      : interpreter(other.interpreter),
        budget(other.budget),
        self(on),
        arguments(other.arguments),
        bound_(other.bound_) {}

  Interpreter& interpreter;
  Budget& budget;
  const Value& self;           // the operand of a filter or a test, or the object of a method
  const Arguments& arguments;  // as given, for builtins that take any

  // For the optional parameter i: whether it was given, and whether it was given and is not none.
  bool has(size_t i) const { return bound_[i] != nullptr; }
  bool has_value(size_t i) const { return has(i) && !bound_[i]->is(Kind::kNone); }
  const Value& operator[](size_t i) const { return *bound_[i]; }  // only when has(i)
  Value value_or(size_t i, const Value& otherwise) const { return has(i) ? *bound_[i] : otherwise; }
  // Parameter i as this type. Throws a Fault when the argument has another type.
  int64_t integer(size_t i, int64_t otherwise) const;  // `otherwise` also for none
  bool truth(size_t i, bool otherwise) const;
  std::string_view string(size_t i) const;

  // A string that stays marked as safe when `self` is.
  Value text(TracedText text) const;
  Value part(std::string_view cut) const;  // `cut` shows a part of the text of `self`

 private:
  std::array<const Value*, 4> bound_ = {};
};

struct Builtin {
  enum class Passing : uint8_t { kByName, kByPosition, kAny };  // kAny: not bound

  std::string_view name;
  Value (*run)(BuiltinCall&);
  std::array<std::string_view, 4> parameters = {};
  size_t n_required = 0;
  Passing passing = Passing::kByName;
};

// A builtin as a value: a global function, or a method with the object that it belongs to.
struct FunctionObject : Object {
  FunctionObject(Budget* budget, const Builtin& what, const Value& on)
      : Object(budget, 0, on.depth() + 1), builtin(what), self(on) {}
  const Builtin& builtin;
  const Value self;
};

// Return null for an unknown name. For a method of str, dict or loop that Jinja has and this
// interpreter lacks, throw a Fault that names it.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_method(const Value& of, std::string_view name);

// The tables, in the files of these names.
extern const std::span<const Builtin> kTextFilters, kSequenceFilters, kTests, kGlobals,
    kStringMethods, kDictMethods, kLoopMethods;

// A string with its letters in another case.
template <TracedText (*map)(TracedView)>
Value in_case(BuiltinCall& call) {
  call.budget.check_room(4 * call.self.traced().memory());  // a letter may become three
  return call.text(map(call.self.traced()));
}

Value filter_tojson(BuiltinCall& call);  // json_values.cpp
Value method_format(BuiltinCall& call);  // string_methods.cpp
Value method_strip(BuiltinCall& call);   // string_methods.cpp
// The index that one to nine digits spell; nothing for another text.
std::optional<int64_t> index_of(std::string_view text);
// `real` without its fraction. Throws Fault for integers beyond 64 bits, infinity and NaN.
int64_t truncated(double real);
// Parameter i of `indent` and `tojson`: a string, or a number of spaces.
TracedText indentation(const BuiltinCall& call, size_t i, int64_t otherwise);

}  // namespace limpid::jinja
