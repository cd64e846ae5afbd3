#include "jinja/builtins.h"

#include <algorithm>

#include "base/parse_number.h"
#include "jinja/interpreter.h"

namespace limpid::jinja {
namespace {

// Tables have at most a few dozen rows, so they are searched in order.
const Builtin* find(std::span<const Builtin> table, std::string_view name) {
  const auto row = std::ranges::find(table, name, &Builtin::name);
  return row == table.end() ? nullptr : &*row;
}

// Methods of Python that no known chat template uses (docs/adr/0007-what-chat-templates-use.md).
// They are errors by name; without this list a template would find these attributes undefined.
bool is_left_out(const Value& of, std::string_view name) {
  constexpr std::string_view kOfStrings[] = {
      "casefold", "center",       "count",        "encode",    "expandtabs",   "find",
      "index",    "isalnum",      "isalpha",      "isascii",   "isdecimal",    "isdigit",
      "islower",  "isidentifier", "isnumeric",    "isspace",   "isprintable",  "istitle",
      "isupper",  "ljust",        "format_map",   "maketrans", "partition",    "rfind",
      "rindex",   "rjust",        "rpartition",   "rsplit",    "removeprefix", "splitlines",
      "swapcase", "translate",    "removesuffix", "zfill"};
  constexpr std::string_view kOfDicts[] = {"copy", "fromkeys"};
  constexpr std::string_view kOfSequences[] = {"copy", "count", "index"};
  constexpr std::string_view kOfRanges[] = {"count", "index", "start", "stop", "step"};
  constexpr std::string_view kOfLoops[] = {"changed"};
  const std::span<const std::string_view> names =
      of.is_string()        ? std::span<const std::string_view>(kOfStrings)
      : of.is(Kind::kDict)  ? std::span<const std::string_view>(kOfDicts)
      : of.is(Kind::kLoop)  ? std::span<const std::string_view>(kOfLoops)
      : of.is(Kind::kRange) ? std::span<const std::string_view>(kOfRanges)
      : of.is_sequence()    ? std::span<const std::string_view>(kOfSequences)
                            : std::span<const std::string_view>();
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

// Filters lie in two tables, by what they make.
const Builtin* find_filter(std::string_view name) {
  const Builtin* filter = find(kTextFilters, name);
  return filter != nullptr ? filter : find(kSequenceFilters, name);
}

const Builtin* find_test(std::string_view name) { return find(kTests, name); }

const Builtin* find_global(std::string_view name) {
  if (name == "cycler" || name == "joiner" || name == "lipsum") refuse("the function '{}'", name);
  return find(kGlobals, name);
}

// Only strings, dicts and loops have methods that templates use.
const Builtin* find_method(const Value& of, std::string_view name) {
  if (is_left_out(of, name)) refuse("the method '{}' of {}", name, python_type_name(of));
  if (of.is_string()) return find(kStringMethods, name);
  if (of.is(Kind::kDict)) return find(kDictMethods, name);
  return of.is(Kind::kLoop) ? find(kLoopMethods, name) : nullptr;
}

std::optional<int64_t> index_of(std::string_view text) {
  return text.size() < 10 ? parse_number<uint32_t>(text) : std::nullopt;
}

// Positional arguments fill the parameters from the left, named ones find theirs by name, and the
// required parameters must then be full. replace('a', new='b') binds old = 'a', new = 'b'.
BuiltinCall::BuiltinCall(Interpreter& caller, const Builtin& builtin, const Value& on,
                         const Arguments& given)
    : interpreter(caller), budget(caller.budget()), self(on), arguments(given) {
  if (builtin.passing == Builtin::Passing::kAny) return;
  const auto& names = builtin.parameters;
  const size_t n_parameters = static_cast<size_t>(std::ranges::find(names, "") - names.begin());
  if (given.positional.size() > n_parameters) {
    fail("{} takes at most {} arguments, not {}", builtin.name, n_parameters,
         given.positional.size());
  }
  if (builtin.passing == Builtin::Passing::kByPosition && !given.named.empty()) {
    fail("{} takes no keyword arguments", builtin.name);
  }
  for (size_t i = 0; i < given.positional.size(); ++i) bound_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto place = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    if (name.empty() || place >= n_parameters) {
      fail("{} takes no argument '{}'", builtin.name, name);
    }
    if (has(place)) fail("the argument '{}' of {} is repeated", name, builtin.name);
    bound_[place] = &value;
  }
  for (size_t i = 0; i < builtin.n_required; ++i) {
    if (!has(i)) fail("the argument '{}' of {} is missing", names[i], builtin.name);
  }
}

// As Python's index(): true and false count as 1 and 0, a float does not count.
int64_t BuiltinCall::integer(size_t i, int64_t otherwise) const {
  if (!has_value(i)) return otherwise;
  require_defined(*bound_[i]);
  if (!bound_[i]->is_integral()) {
    fail("'{}' object cannot be interpreted as an integer", python_type_name(*bound_[i]));
  }
  return bound_[i]->integer();
}

bool BuiltinCall::truth(size_t i, bool otherwise) const {
  return has(i) ? is_true(*bound_[i]) : otherwise;
}

std::string_view BuiltinCall::string(size_t i) const {
  require_defined(*bound_[i]);
  if (!bound_[i]->is_string()) fail("must be str, not {}", python_type_name(*bound_[i]));
  return bound_[i]->text();
}

Value BuiltinCall::text(TracedText text) const {
  return make_string(budget, std::move(text), self.as<StringObject>().is_markup);
}

Value BuiltinCall::part(std::string_view cut) const {
  return make_string(budget, self.traced().part(cut), self.as<StringObject>().is_markup);
}

}  // namespace limpid::jinja
