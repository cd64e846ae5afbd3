// Functions that every template sees, and the methods of what they make.
#include <ctime>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

Value global_range(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (!arguments.named.empty() || given.empty() || given.size() > 3) {
    throw Fault("range expects 1 to 3 integers");
  }
  int64_t bounds[] = {0, 0, 1};
  for (size_t i = 0; i < given.size(); ++i) {
    require_defined(given[i]);
    if (!given[i].is_integral()) {
      throw Fault("'" + std::string(python_type_name(given[i])) +
                  "' object cannot be interpreted as an integer");
    }
    bounds[given.size() == 1 ? 1 : i] = given[i].integer();
  }
  return {Kind::kRange,
          std::make_shared<RangeObject>(&interpreter.budget(), bounds[0], bounds[1], bounds[2])};
}

// The entries of dict(…): a mapping or pairs, then the keywords.
std::vector<std::pair<Value, Value>> dict_entries(Interpreter& interpreter,
                                                  const Arguments& arguments) {
  Budget& budget = interpreter.budget();
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) throw Fault("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kDict)) {
      entries = source.as<DictObject>().entries;
    } else {
      for (const auto& pair : to_vector(budget, source)) {
        auto parts = to_vector(budget, pair);
        if (parts.size() != 2) throw Fault("dictionary update sequence element is not a pair");
        entries.emplace_back(std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(make_string(budget, TracedView(name, Origin::kData)), value);
  }
  return entries;
}

Value global_dict(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  return make_dict(interpreter.budget(), dict_entries(interpreter, arguments));
}

Value global_namespace(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  auto space = std::make_shared<NamespaceObject>(&interpreter.budget());
  interpreter.keep_namespace(space);
  for (auto& [key, value] : dict_entries(interpreter, arguments)) {
    if (!key.is_string()) throw Fault("a namespace needs names as keys");
    if (!key.text().empty() && key.text()[0] == '_') {
      throw Fault("attributes of a namespace cannot begin with an underscore");
    }
    interpreter.budget().spend(1);
    space->set(key.text(), std::move(value));
  }
  return {Kind::kNamespace, std::move(space)};
}

Value global_cycler(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  if (!arguments.named.empty()) throw Fault("cycler takes no keyword arguments");
  if (arguments.positional.empty()) throw Fault("at least one item has to be provided");
  return {Kind::kCycler,
          std::make_shared<CyclerObject>(&interpreter.budget(), arguments.positional)};
}

Value global_joiner(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const Parameters parameters(arguments, {"sep"});
  const Value separator = parameters.has(0)
                              ? parameters[0]
                              : make_string(interpreter.budget(), TracedText(", ", Origin::kData));
  return {Kind::kJoiner, std::make_shared<JoinerObject>(&interpreter.budget(), separator)};
}

Value global_raise_exception(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const Parameters parameters(arguments, {"message"}, 1);
  throw Fault(to_str(interpreter.budget(), parameters[0]).bytes(), Fault::Kind::kRaised);
}

// datetime.now().strftime: no zone, so %z and %Z are empty; the clock here counts whole seconds.
Value global_strftime_now(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const Parameters parameters(arguments, {"format"}, 1);
  if (!parameters[0].is_string()) throw Fault("strftime_now needs a format string");
  std::string format;
  const std::string_view given = parameters[0].text();
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = given[i] == '%' && i + 1 < given.size() ? given[i + 1] : '\0';
    if (next == 'z' || next == 'Z') {
      ++i;
    } else if (next == 'f') {
      format += "000000";
      ++i;
    } else {
      format += given[i];
      if (next != '\0') format += given[++i];
    }
  }
  if (format.empty()) return make_string(interpreter.budget(), TracedText());
  const auto now = static_cast<time_t>(interpreter.now());
  std::tm local{};
  if (localtime_r(&now, &local) == nullptr) throw Fault("the time cannot be written as a date");
  interpreter.budget().check_room(256 * format.size());
  interpreter.budget().spend_bytes(256 * format.size());
  std::string text(256 * format.size(), '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
  return make_string(interpreter.budget(),
                     TracedText(std::move(text), parameters[0].traced().origin()));
}

Value cycler_next(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  auto& cycler = self.as<CyclerObject>();
  Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Value cycler_reset(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  self.as<CyclerObject>().position = 0;
  return {};
}

Value loop_cycle(Interpreter&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) throw Fault("no items for cycling given");
  const auto index = static_cast<size_t>(self.as<LoopObject>().index0);
  return arguments.positional[index % arguments.positional.size()];
}

Value loop_changed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  auto& loop = self.as<LoopObject>();
  const auto& now = arguments.positional;
  bool same = loop.has_changed_value && loop.last_changed.size() == now.size();
  for (size_t i = 0; same && i < now.size(); ++i) {
    same = equals(interpreter.budget(), loop.last_changed[i], now[i]);
  }
  if (same) return Value(false);
  loop.has_changed_value = true;
  loop.last_changed = now;
  return Value(true);
}

constexpr NamedBuiltin kGlobals[] = {
    {"range", global_range},
    {"dict", global_dict},
    {"cycler", global_cycler},
    {"joiner", global_joiner},
    {"namespace", global_namespace},
    {"raise_exception", global_raise_exception},
    {"strftime_now", global_strftime_now},
};
constexpr NamedBuiltin kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};
constexpr NamedBuiltin kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

}  // namespace

const NamedBuiltin* find_global(std::string_view name) { return find_builtin(kGlobals, name); }
const NamedBuiltin* find_cycler_method(std::string_view name) {
  return find_builtin(kCyclerMethods, name);
}
const NamedBuiltin* find_loop_method(std::string_view name) {
  return find_builtin(kLoopMethods, name);
}

Parameters::Parameters(const Arguments& arguments, std::initializer_list<std::string_view> names,
                       size_t n_required) {
  if (arguments.positional.size() > names.size()) {
    throw Fault("a call passes " + std::to_string(arguments.positional.size()) +
                " arguments where at most " + std::to_string(names.size()) + " are taken");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t place = 0;
    while (place < names.size() && names.begin()[place] != name) ++place;
    if (place == names.size()) throw Fault("unexpected keyword argument '" + name + "'");
    if (values_[place] != nullptr) throw Fault("argument '" + name + "' is given twice");
    values_[place] = &value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (values_[i] == nullptr) {
      throw Fault("the argument '" + std::string(names.begin()[i]) + "' is missing");
    }
  }
}

int64_t Parameters::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(*values_[i]);
  if (!values_[i]->is_integral()) {
    throw Fault("'" + std::string(python_type_name(*values_[i])) +
                "' object cannot be interpreted as an integer");
  }
  return values_[i]->integer();
}

bool Parameters::truth(size_t i, bool otherwise) const {
  return has(i) ? is_true(*values_[i]) : otherwise;
}

}  // namespace limpid::jinja
