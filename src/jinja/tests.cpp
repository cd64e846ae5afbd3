// The tests, which may follow `is`. A test gets the operand as its value and returns true or false;
// the parser handles the `not` of `x is not defined`. Comparisons are tests too, because select and
// selectattr take the name of a test: selectattr('role', 'equalto', 'user').
#include "jinja/builtins.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

using Predicate = bool (*)(const Value&);

// A test without arguments.
template <Predicate holds>
Value simple(BuiltinCall& call) {
  return Value(holds(call.self));
}

template <Comparison how>
Value comparing(BuiltinCall& call) {
  return Value(compare(call.budget, how, call.self, call[0]));
}

// even and odd.
template <int64_t wanted>
Value remainder_of_two(BuiltinCall& call) {
  const Value rest = binary(call.budget, BinaryOperator::kMod, call.self, Value(int64_t{2}));
  return Value(rest.is_number() && rest.real() == static_cast<double>(wanted));
}

// Whether Python could take its length and its items by index: texts and dicts count.
constexpr Predicate kIsSequence = [](const Value& v) {
  return v.is_string() || (v.is_sequence() && !v.is(Kind::kDictView)) || v.is(Kind::kDict) ||
         v.is_undefined();
};

constexpr Builtin kTable[] = {
    {"boolean", simple<[](const Value& v) { return v.is(Kind::kBool); }>},
    {"defined", simple<[](const Value& v) { return !v.is_undefined(); }>},
    {"even", remainder_of_two<0>},
    {"false", simple<[](const Value& v) { return v.is(Kind::kBool) && v.integer() == 0; }>},
    {"float", simple<[](const Value& v) { return v.is(Kind::kFloat); }>},
    {"integer", simple<[](const Value& v) { return v.is(Kind::kInt); }>},
    {"iterable", simple<[](const Value& v) { return is_iterable(v) || v.is(Kind::kLoop); }>},
    {"mapping", simple<[](const Value& v) { return v.is(Kind::kDict); }>},
    {"none", simple<[](const Value& v) { return v.is(Kind::kNone); }>},
    {"number", simple<[](const Value& v) { return v.is_number(); }>},
    {"odd", remainder_of_two<1>},
    {"sequence", simple<kIsSequence>},
    {"string", simple<[](const Value& v) { return v.is_string(); }>},
    {"true", simple<[](const Value& v) { return v.is(Kind::kBool) && v.integer() != 0; }>},
    {"undefined", simple<[](const Value& v) { return v.is_undefined(); }>},

    {"!=", comparing<Comparison::kNe>, {"other"}, 1},
    {"<", comparing<Comparison::kLt>, {"other"}, 1},
    {"<=", comparing<Comparison::kLe>, {"other"}, 1},
    {"==", comparing<Comparison::kEq>, {"other"}, 1},
    {">", comparing<Comparison::kGt>, {"other"}, 1},
    {">=", comparing<Comparison::kGe>, {"other"}, 1},
    {"eq", comparing<Comparison::kEq>, {"other"}, 1},
    {"equalto", comparing<Comparison::kEq>, {"other"}, 1},
    {"ge", comparing<Comparison::kGe>, {"other"}, 1},
    {"greaterthan", comparing<Comparison::kGt>, {"other"}, 1},
    {"gt", comparing<Comparison::kGt>, {"other"}, 1},
    {"in", comparing<Comparison::kIn>, {"seq"}, 1},
    {"le", comparing<Comparison::kLe>, {"other"}, 1},
    {"lessthan", comparing<Comparison::kLt>, {"other"}, 1},
    {"lt", comparing<Comparison::kLt>, {"other"}, 1},
    {"ne", comparing<Comparison::kNe>, {"other"}, 1},
};

}  // namespace

const std::span<const Builtin> kTests = kTable;

}  // namespace limpid::jinja
