// map, select, reject, selectattr, rejectattr: generators, computed item by item.
#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/item_lookup.h"
#include "jinja/operators.h"

namespace limpid::jinja {
namespace {

int depth_of(const Arguments& arguments) {
  int depth = 0;
  for (const auto& value : arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, value.depth());
  return depth;
}

// A generator: opens its source and looks at its arguments when the first item is asked for.
class LazyIterator : public IteratorObject {
 public:
  LazyIterator(Interpreter& interpreter, const Value& source, const Arguments& arguments)
      : IteratorObject(&interpreter.budget(), 0, std::max(source.depth(), depth_of(arguments)) + 1),
        interpreter_(interpreter),
        source_(source),
        arguments_(arguments) {}

  bool next(Value& out) final {
    if (!started_) {
      started_ = true;
      if (is_true(source_)) {
        prepare();
        items_ = iterate(interpreter_.budget(), source_);
      }
    }
    while (items_ && items_->next(out)) {
      interpreter_.budget().spend_step();
      if (accept(out)) return true;
    }
    items_.reset();
    return false;
  }

 protected:
  virtual void prepare() = 0;
  virtual bool accept(Value& item) = 0;  // may replace the item

  Interpreter& interpreter_;
  const Value source_;
  Arguments arguments_;

 private:
  bool started_ = false;
  std::shared_ptr<IteratorObject> items_;
};

std::string name_argument(const Value& value) {
  if (!value.is_string()) throw Fault("the name of a filter or test must be a string");
  return std::string(value.text());
}

class MapIterator : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  void prepare() override {
    const bool by_attribute = arguments_.positional.empty() &&
                              std::any_of(arguments_.named.begin(), arguments_.named.end(),
                                          [](const auto& e) { return e.first == "attribute"; });
    if (by_attribute) {
      const Parameters parameters(arguments_, {"attribute", "default"});
      lookup_.emplace(interpreter_, parameters[0], false,
                      parameters.has(1) ? parameters[1] : Value());
      return;
    }
    if (arguments_.positional.empty()) throw Fault("map requires a filter argument");
    filter_ = name_argument(arguments_.positional[0]);
    arguments_.positional.erase(arguments_.positional.begin());
  }
  bool accept(Value& item) override {
    item = lookup_ ? (*lookup_)(item) : interpreter_.call_filter(filter_, item, arguments_);
    return true;
  }

  std::optional<ItemLookup> lookup_;
  std::string filter_;
};

class SelectIterator : public LazyIterator {
 public:
  SelectIterator(Interpreter& interpreter, const Value& source, const Arguments& arguments,
                 bool by_attribute, bool wanted)
      : LazyIterator(interpreter, source, arguments),
        by_attribute_(by_attribute),
        wanted_(wanted) {}

 private:
  void prepare() override {
    auto& positional = arguments_.positional;
    if (by_attribute_) {
      if (positional.empty()) throw Fault("missing parameter for attribute name");
      lookup_.emplace(interpreter_, positional[0]);
      positional.erase(positional.begin());
    }
    if (positional.empty()) return;
    test_ = name_argument(positional[0]);
    positional.erase(positional.begin());
  }
  bool accept(Value& item) override {
    const Value tested = lookup_ ? (*lookup_)(item) : item;
    const bool holds =
        test_.empty() ? is_true(tested) : interpreter_.call_test(test_, tested, arguments_);
    return holds == wanted_;
  }

  bool by_attribute_;
  bool wanted_;
  std::optional<ItemLookup> lookup_;
  std::string test_;
};

Value filter_map(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return {Kind::kIterator, std::make_shared<MapIterator>(interpreter, self, arguments)};
}

template <bool by_attribute, bool wanted>
Value selecting(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return {Kind::kIterator,
          std::make_shared<SelectIterator>(interpreter, self, arguments, by_attribute, wanted)};
}

constexpr NamedBuiltin kFilters[] = {
    {"map", filter_map},
    {"select", selecting<false, true>},
    {"reject", selecting<false, false>},
    {"selectattr", selecting<true, true>},
    {"rejectattr", selecting<true, false>},
};

}  // namespace

const NamedBuiltin* find_selecting_filter(std::string_view name) {
  return find_builtin(kFilters, name);
}

}  // namespace limpid::jinja
