// len(), iter(), reversed() and list().
#include <algorithm>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// Walks a sequence that it keeps alive; `count` and `at(i)` come from the caller.
template <typename At>
class IndexedIterator : public IteratorObject {
 public:
  IndexedIterator(Budget& budget, const Value& source, int64_t count, At at)
      : IteratorObject(&budget, 0, source.depth() + 1),
        budget_(budget),
        source_(source),
        count_(count),
        at_(std::move(at)) {}

  bool next(Value& out) override {
    if (index_ >= count_) return false;
    budget_.spend(1);
    out = at_(index_++);
    return true;
  }

 private:
  Budget& budget_;
  const Value source_;
  const int64_t count_;
  int64_t index_ = 0;
  At at_;
};

template <typename At>
std::shared_ptr<IteratorObject> indexed(Budget& budget, const Value& source, size_t count, At at) {
  return std::make_shared<IndexedIterator<At>>(budget, source, static_cast<int64_t>(count),
                                               std::move(at));
}

class StringIterator : public IteratorObject {
 public:
  StringIterator(Budget& budget, const Value& text)
      : IteratorObject(&budget, 0, 2), budget_(budget), text_(text) {}

  bool next(Value& out) override {
    const std::string_view text = text_.text();
    if (at_ >= text.size()) return false;
    const size_t begin = at_;
    next_code_point(text, at_);
    out = make_string(budget_, text_.traced().part(text.substr(begin, at_ - begin)));
    return true;
  }

 private:
  Budget& budget_;
  const Value text_;
  size_t at_ = 0;
};

class EmptyIterator : public IteratorObject {
 public:
  explicit EmptyIterator(Budget& budget) : IteratorObject(&budget, 0) {}
  bool next(Value&) override { return false; }
};

Value view_item(Budget& budget, const DictViewObject& view, size_t i) {
  const auto& [key, value] = view.dict.as<DictObject>().entries[i];
  switch (view.part) {
    case DictViewObject::Part::kKeys:
      return key;
    case DictViewObject::Part::kValues:
      return value;
    case DictViewObject::Part::kItems:
      return make_tuple(budget, {key, value});
  }
  return {};
}

}  // namespace

std::optional<int64_t> length_of(const Value& value) {
  const auto count = [](size_t n) { return static_cast<int64_t>(n); };
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.as<StringObject>().length;
    case Kind::kList:
    case Kind::kTuple:
      return count(value.as<SequenceObject>().items.size());
    case Kind::kDict:
      return count(value.as<DictObject>().entries.size());
    case Kind::kDictView:
      return count(value.as<DictViewObject>().dict.as<DictObject>().entries.size());
    case Kind::kRange:
      return value.as<RangeObject>().length;
    default:
      return std::nullopt;
  }
}

bool is_iterable(const Value& value) {
  return value.is(Kind::kIterator) || length_of(value).has_value();
}

std::shared_ptr<IteratorObject> iterate(Budget& budget, const Value& value) {
  switch (value.kind()) {
    case Kind::kIterator:
      return std::static_pointer_cast<IteratorObject>(value.shared());
    case Kind::kUndefined:
      return std::make_shared<EmptyIterator>(budget);
    case Kind::kString:
      return std::make_shared<StringIterator>(budget, value);
    case Kind::kList:
    case Kind::kTuple: {
      const auto& items = value.as<SequenceObject>().items;
      return indexed(budget, value, items.size(),
                     [&items](int64_t i) { return items[static_cast<size_t>(i)]; });
    }
    case Kind::kDict: {
      const auto& entries = value.as<DictObject>().entries;
      return indexed(budget, value, entries.size(),
                     [&entries](int64_t i) { return entries[static_cast<size_t>(i)].first; });
    }
    case Kind::kDictView: {
      const auto& view = value.as<DictViewObject>();
      return indexed(
          budget, value, static_cast<size_t>(*length_of(value)),
          [&budget, &view](int64_t i) { return view_item(budget, view, static_cast<size_t>(i)); });
    }
    case Kind::kRange: {
      const auto& range = value.as<RangeObject>();
      return indexed(budget, value, static_cast<size_t>(range.length),
                     [&range](int64_t i) { return Value(range.at(i)); });
    }
    default:
      break;
  }
  throw Fault("'" + std::string(python_type_name(value)) + "' object is not iterable");
}

std::vector<Value> to_vector(Budget& budget, const Value& value) {
  if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
    const auto& items = value.as<SequenceObject>().items;
    budget.check_room(items.size() * sizeof(Value));
    budget.spend_bytes(items.size() * sizeof(Value));
    return items;
  }
  std::vector<Value> items;
  const auto iterator = iterate(budget, value);
  for (Value item; iterator->next(item);) {
    // The items may be shared, so the vector itself has to be watched while it grows.
    if (items.size() == items.capacity()) budget.check_room(2 * items.size() * sizeof(Value));
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Value> dict_view_items(Budget& budget, const Value& view) {
  return to_vector(budget, view);
}

std::optional<std::vector<Value>> reversed_items(Budget& budget, const Value& value) {
  if (value.is(Kind::kIterator) || !length_of(value)) return std::nullopt;
  auto items = to_vector(budget, value);
  std::reverse(items.begin(), items.end());
  return items;
}

Value make_iterator(Budget& budget, std::vector<Value> items) {
  return {Kind::kIterator, iterate(budget, make_tuple(budget, std::move(items)))};
}

}  // namespace limpid::jinja
