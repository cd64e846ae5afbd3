// Filters, tests, methods and global functions by name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace limpid::jinja {

class Interpreter;

// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A builtin: `self` is the operand of a filter or a test, or the object of a method.
using Builtin = Value (*)(Interpreter&, const Value& self, const Arguments&);

struct FunctionObject : Object {
  FunctionObject(Budget* budget, std::string_view of_name, Builtin what, const Value& on)
      : Object(budget, 0, on.depth() + 1), name(of_name), function(what), self(on) {}
  const std::string_view name;
  const Builtin function;
  const Value self;
};

struct GroupObject : SequenceObject {  // a tuple whose parts are also called `grouper` and `list`
  using SequenceObject::SequenceObject;
};

// Arguments sorted by parameter. Throws Fault for too many, unknown, repeated or missing ones.
class Parameters {
 public:
  Parameters(const Arguments& arguments, std::initializer_list<std::string_view> names,
             size_t n_required = 0);
  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](size_t i) const { return *values_[i]; }  // only when has(i)
  int64_t integer(size_t i, int64_t otherwise) const;  // throws Fault when not an integer
  bool truth(size_t i, bool otherwise) const;

 private:
  static constexpr size_t kMost = 8;
  const Value* values_[kMost] = {};
};

struct NamedBuiltin {
  std::string_view name;
  Builtin function;
};

const NamedBuiltin* find_filter(std::string_view name);
const NamedBuiltin* find_test(std::string_view name);
const NamedBuiltin* find_global(std::string_view name);
const NamedBuiltin* find_string_method(std::string_view name);
const NamedBuiltin* find_dict_method(std::string_view name);
const NamedBuiltin* find_sequence_method(std::string_view name);  // of lists, tuples and ranges
const NamedBuiltin* find_loop_method(std::string_view name);
const NamedBuiltin* find_cycler_method(std::string_view name);
inline bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }
inline bool is_test(std::string_view name) { return find_test(name) != nullptr; }

// The groups that the tables are made of.
const NamedBuiltin* find_text_filter(std::string_view name);
const NamedBuiltin* find_number_filter(std::string_view name);
const NamedBuiltin* find_sequence_filter(std::string_view name);
const NamedBuiltin* find_selecting_filter(std::string_view name);

// json.dumps with the arguments that transformers' tojson passes on.
Value filter_tojson(Interpreter& interpreter, const Value& value, const Arguments& arguments);
// str.format
Value method_format(Interpreter& interpreter, const Value& self, const Arguments& arguments);

template <size_t n>
const NamedBuiltin* find_builtin(const NamedBuiltin (&table)[n], std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace limpid::jinja
