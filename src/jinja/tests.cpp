// What may follow `is`.
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// A test without arguments.
template <bool (*check)(const Value&)>
Value simple(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(check(self));
}

template <Comparison how>
Value comparing(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"other"}, 1);
  return Value(compare(interpreter.budget(), how, self, parameters[0]));
}

bool is_callable(const Value& v) {
  return v.is(Kind::kFunction) || v.is(Kind::kMacro) || v.is(Kind::kLoop) || v.is(Kind::kJoiner) ||
         v.is_undefined();
}

bool is_sequence(const Value& v) {
  return v.is_string() || v.is(Kind::kList) || v.is(Kind::kTuple) || v.is(Kind::kDict) ||
         v.is(Kind::kRange) || v.is_undefined();
}

int64_t remainder_of(Interpreter& interpreter, const Value& self, int64_t by) {
  const Value rest = binary(interpreter.budget(), BinaryOperator::kMod, self, Value(by));
  if (!rest.is_number()) return -1;
  if (rest.is(Kind::kFloat)) return rest.real() == 0 ? 0 : rest.real() == 1 ? 1 : -1;
  return rest.integer();
}

Value test_even(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(remainder_of(interpreter, self, 2) == 0);
}

Value test_odd(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(remainder_of(interpreter, self, 2) == 1);
}

Value test_divisibleby(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"num"}, 1);
  const Value rest = binary(interpreter.budget(), BinaryOperator::kMod, self, parameters[0]);
  return Value(rest.is_number() && rest.real() == 0);
}

Value test_in(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"seq"}, 1);
  return Value(contains(interpreter.budget(), parameters[0], self));
}

Value test_sameas(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"other"}, 1);
  return Value(is_same_object(self, parameters[0]));
}

Value test_filter(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(self.is_string() && is_filter(self.text()));
}

Value test_test(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(self.is_string() && is_test(self.text()));
}

// str(value).islower() and .isupper()
template <bool lower>
Value test_case(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const TracedText traced = to_str(interpreter.budget(), self);
  const std::string& text = traced.bytes();
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_cased(c)) continue;
    if (!(lower ? is_lowercase(c) : is_uppercase(c))) return Value(false);
    any = true;
  }
  return Value(any);
}

constexpr NamedBuiltin kTests[] = {
    {"defined", simple<[](const Value& v) { return !v.is_undefined(); }>},
    {"undefined", simple<[](const Value& v) { return v.is_undefined(); }>},
    {"none", simple<[](const Value& v) { return v.is(Kind::kNone); }>},
    {"boolean", simple<[](const Value& v) { return v.is(Kind::kBool); }>},
    {"true", simple<[](const Value& v) { return v.is(Kind::kBool) && v.integer() != 0; }>},
    {"false", simple<[](const Value& v) { return v.is(Kind::kBool) && v.integer() == 0; }>},
    {"integer", simple<[](const Value& v) { return v.is(Kind::kInt); }>},
    {"float", simple<[](const Value& v) { return v.is(Kind::kFloat); }>},
    {"number", simple<[](const Value& v) { return v.is_number(); }>},
    {"string", simple<[](const Value& v) { return v.is_string(); }>},
    {"mapping", simple<[](const Value& v) { return v.is(Kind::kDict); }>},
    {"sequence", simple<is_sequence>},
    {"iterable", simple<[](const Value& v) { return is_iterable(v) || v.is(Kind::kLoop); }>},
    {"callable", simple<is_callable>},
    {"escaped",
     simple<[](const Value& v) { return v.is_string() && v.as<StringObject>().is_markup; }>},
    {"odd", test_odd},
    {"even", test_even},
    {"divisibleby", test_divisibleby},
    {"lower", test_case<true>},
    {"upper", test_case<false>},
    {"filter", test_filter},
    {"test", test_test},
    {"sameas", test_sameas},
    {"in", test_in},
    {"==", comparing<Comparison::kEq>},
    {"eq", comparing<Comparison::kEq>},
    {"equalto", comparing<Comparison::kEq>},
    {"!=", comparing<Comparison::kNe>},
    {"ne", comparing<Comparison::kNe>},
    {">", comparing<Comparison::kGt>},
    {"gt", comparing<Comparison::kGt>},
    {"greaterthan", comparing<Comparison::kGt>},
    {">=", comparing<Comparison::kGe>},
    {"ge", comparing<Comparison::kGe>},
    {"<", comparing<Comparison::kLt>},
    {"lt", comparing<Comparison::kLt>},
    {"lessthan", comparing<Comparison::kLt>},
    {"<=", comparing<Comparison::kLe>},
    {"le", comparing<Comparison::kLe>},
};

}  // namespace

const NamedBuiltin* find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace limpid::jinja
