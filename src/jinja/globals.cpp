// Functions that every template sees, and the methods of dict and `loop`.
#include <ctime>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

using Entries = std::vector<std::pair<Value, Value>>;

// range(stop) or range(start, stop, step).
Value global_range(BuiltinCall& call) {
  for (size_t i = 0; i < 3; ++i) {
    if (call.has(i) && !call.has_value(i)) fail("range needs integers");
  }
  const int64_t first = call.integer(0, 0);
  const int64_t start = call.has(1) ? first : 0;
  const int64_t stop = call.has(1) ? call.integer(1, 0) : first;
  return {Kind::kRange,
          std::make_shared<RangeObject>(&call.budget, start, stop, call.integer(2, 1))};
}

// The entries of dict(…) and namespace(…): a mapping or pairs, then the keywords. A key that is
// given twice gets the last value.
Entries dict_entries(BuiltinCall& call) {
  Entries entries;
  if (call.arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!call.arguments.positional.empty()) {
    const Value& source = call.arguments.positional[0];
    if (source.is(Kind::kDict)) {
      entries = source.as<DictObject>().entries;
    } else {
      for (const auto& pair : to_vector(call.budget, source)) {
        auto parts = to_vector(call.budget, pair);
        if (parts.size() != 2) fail("dictionary update sequence element is not a pair");
        entries.emplace_back(std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (const auto& [name, value] : call.arguments.named) {
    entries.emplace_back(make_string(call.budget, TracedView(name, Origin::kData)), value);
  }
  return entries;
}

Value global_dict(BuiltinCall& call) { return make_dict(call.budget, dict_entries(call)); }

// A namespace can be changed from inside of loops and macros: {% set ns.found = true %}.
Value global_namespace(BuiltinCall& call) {
  auto space = std::make_shared<NamespaceObject>(&call.budget);
  call.interpreter.keep_namespace(space);
  for (auto& [key, value] : dict_entries(call)) {
    if (!key.is_string()) fail("a namespace needs names as keys");
    call.budget.spend(1);
    space->set(key.text(), std::move(value));
  }
  return {Kind::kNamespace, std::move(space)};
}

// The template refuses the messages, with its own text. The caller gets a TemplateRefusal.
Value global_raise_exception(BuiltinCall& call) {
  throw Fault(to_str(call.budget, call[0]).bytes(), Fault::Kind::kRaised);
}

// datetime.now().strftime: no zone, so %z and %Z are empty; the clock here counts whole seconds.
// The clock gives local time. A time that the caller gives is UTC, so its text is the same
// everywhere.
Value global_strftime_now(BuiltinCall& call) {
  const std::string_view given = call.string(0);
  std::string format;
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = given[i] == '%' && i + 1 < given.size() ? given[i + 1] : '\0';
    if (next == 'f') format += "000000";
    if (next != 'f' && next != 'z' && next != 'Z') format += given.substr(i, next == '\0' ? 1 : 2);
    if (next != '\0') ++i;
  }
  if (format.empty()) return make_string(call.budget, TracedText());
  const std::optional<int64_t> given_time = call.interpreter.now();
  const time_t now = given_time ? static_cast<time_t>(*given_time) : std::time(nullptr);
  std::tm date{};
  if ((given_time ? gmtime_r(&now, &date) : localtime_r(&now, &date)) == nullptr)
    fail("the time cannot be written as a date");
  const size_t most = 256 * format.size();
  call.budget.pay_for_buffer(most);
  std::string text(most, '\0');
  text.resize(std::strftime(text.data(), most, format.c_str(), &date));
  return make_string(call.budget, TracedText(std::move(text), call[0].traced().origin()));
}

enum class Part : uint8_t { kKeys, kValues, kItems };

// keys(), values() and items(). A view is made of the entries at the call, which nothing can
// change.
template <Part part>
Value dict_view(BuiltinCall& call) {
  constexpr std::string_view kTypes[] = {"dict_keys", "dict_values", "dict_items"};
  const Entries& entries = call.self.as<DictObject>().entries;
  call.budget.check_room(entries.size() * sizeof(Value));
  std::vector<Value> items;
  for (const auto& [key, value] : entries) {
    call.budget.spend(1);
    items.push_back(part == Part::kKeys     ? key
                    : part == Part::kValues ? value
                                            : make_tuple(call.budget, {key, value}));
  }
  return {Kind::kDictView, std::make_shared<DictViewObject>(&call.budget, std::move(items),
                                                            kTypes[static_cast<size_t>(part)])};
}

// d.get(key, default) with none as the default's default.
Value dict_get(BuiltinCall& call) {
  const Value* found = call.self.as<DictObject>().find(call.budget, call[0]);
  return found != nullptr ? *found : call.value_or(1, Value());
}

// loop.cycle('odd', 'even') returns its arguments in turn.
Value loop_cycle(BuiltinCall& call) {
  const auto& items = call.arguments.positional;
  if (items.empty()) fail("no items for cycling given");
  return items[static_cast<size_t>(call.self.as<LoopObject>().index0) % items.size()];
}

constexpr auto kByPosition = Builtin::Passing::kByPosition;
constexpr auto kAny = Builtin::Passing::kAny;
constexpr Builtin kGlobalTable[] = {
    {"dict", global_dict, {}, 0, kAny},
    {"namespace", global_namespace, {}, 0, kAny},
    {"raise_exception", global_raise_exception, {"message"}, 1},
    {"range", global_range, {"start", "stop", "step"}, 1, kByPosition},
    {"strftime_now", global_strftime_now, {"format"}, 1},
};
constexpr Builtin kDictTable[] = {
    {"get", dict_get, {"key", "default"}, 1, kByPosition},
    {"items", dict_view<Part::kItems>},
    {"keys", dict_view<Part::kKeys>},
    {"values", dict_view<Part::kValues>},
};
constexpr Builtin kLoopTable[] = {{"cycle", loop_cycle, {}, 0, kAny}};

}  // namespace

const std::span<const Builtin> kGlobals = kGlobalTable;
const std::span<const Builtin> kDictMethods = kDictTable;
const std::span<const Builtin> kLoopMethods = kLoopTable;

}  // namespace limpid::jinja
