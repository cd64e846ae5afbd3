#include "checkpoint/pickle_stack.h"

#include <algorithm>

#include "base/printable.h"
#include "checkpoint/pickle_opcodes.h"
#include "limpid/error.hpp"
#include "tensor/tensor.h"

namespace limpid {
namespace {

// Limits. A checkpoint of 405 billion parameters has about 1,200 tensors, each of some 60 values.
constexpr size_t kMostValues = size_t{1} << 21U;
constexpr size_t kMostOnStack = size_t{1} << 18U;
constexpr size_t kMostMarks = 1024;
constexpr size_t kMostMemo = size_t{1} << 21U;
constexpr uint16_t kDeepest = 64;

// Keys of storages are the names of records, "0", "1", …; nothing else can reach the archive.
bool is_digits(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

void PickleStack::push(PickleValue value) { push_index(add(std::move(value))); }

// Lists a new value and notes which instruction made it, for errors about the value later on.
uint32_t PickleStack::add(PickleValue value) {
  if (pickle_.values.size() >= kMostValues) place_.fail("creates value {}", kMostValues + 1);
  value.offset = place_.base + place_.start;
  pickle_.values.push_back(std::move(value));
  return static_cast<uint32_t>(pickle_.values.size() - 1);
}

void PickleStack::push_index(uint32_t index) {
  if (stack_.size() >= kMostOnStack)
    place_.fail("puts more than {} values on the stack", kMostOnStack);
  stack_.push_back(index);
}

void PickleStack::push_mark() {
  if (marks_.size() >= kMostMarks) place_.fail("nests deeper than {}", kMostMarks);
  marks_.push_back(stack_.size());
}

// Removes the top value. Values below the last mark cannot be reached: they belong to an outer
// container.
uint32_t PickleStack::pop() {
  const uint32_t index = top();
  stack_.pop_back();
  return index;
}

uint32_t PickleStack::top() const {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) place_.fail("no value on the stack");
  return stack_.back();
}

std::vector<uint32_t> PickleStack::take(size_t n) {
  std::vector<uint32_t> items(n);
  while (n-- > 0) items[n] = pop();
  return items;
}

std::vector<uint32_t> PickleStack::take_to_mark() {
  if (marks_.empty()) place_.fail("no MARK on the stack");
  std::vector<uint32_t> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

// Makes `items` part of the container `parent`. A value that is part of a container cannot change
// any more. So no container can be put into itself, not even through others, and code that walks
// through the values always ends.
void PickleStack::store(uint32_t parent, std::span<const uint32_t> items) {
  if (value(parent).stored) place_.fail("changes a container that is already part of another");
  for (const uint32_t item : items) {
    if (item == parent) place_.fail("puts a container into itself");
    value(item).stored = true;
    const auto depth = static_cast<uint16_t>(value(item).depth + 1);
    if (depth > kDeepest) place_.fail("nests deeper than {}", kDeepest);
    value(parent).depth = std::max(value(parent).depth, depth);
  }
  auto& held = value(parent).items;
  held.insert(held.end(), items.begin(), items.end());
}

void PickleStack::push_container(PickleKind kind, std::span<const uint32_t> items) {
  const uint32_t index = add({.kind = kind});
  store(index, items);
  push_index(index);
}

void PickleStack::append(std::span<const uint32_t> items) {
  if (!is(top(), PickleKind::kList)) place_.fail("appends to a value that is not a list");
  store(top(), items);
}

// Appends key, value, key, value, … to the dictionary below. StateReader finds repeated keys later.
void PickleStack::set_items(std::span<const uint32_t> items) {
  if (!is(top(), PickleKind::kDict))
    place_.fail("sets an item of a value that is not a dictionary");
  if (items.size() % 2 != 0) place_.fail("has a key without a value");
  for (size_t i = 0; i < items.size(); i += 2) {
    if (!is(items[i], PickleKind::kString) && !is(items[i], PickleKind::kInteger))
      place_.fail("has a key that is neither text nor an integer");
  }
  store(top(), items);
}

// The allowed calls are those that rebuild a state dictionary: OrderedDict(), which gives an empty
// dictionary; _rebuild_tensor_v2(…); and _rebuild_parameter(tensor, …), which gives its tensor.
void PickleStack::call() {
  const uint32_t arguments = pop();
  const uint32_t callable = pop();
  if (!is(callable, PickleKind::kGlobal) || !is(arguments, PickleKind::kTuple))
    place_.fail("calls a value that is not a name, or without a tuple of arguments");
  const std::string_view name = value(callable).text;
  const std::vector<uint32_t> items = value(arguments).items;
  if (name == kPickleOrderedDict) {
    if (!items.empty()) place_.fail("gives arguments to OrderedDict");
    push_container(PickleKind::kDict);
  } else if (name == kPickleRebuildTensor) {
    push_tensor(items);
  } else if (name == kPickleRebuildParameter) {
    const bool fits = items.size() == 3 && is(items[0], PickleKind::kTensor);
    if (!fits) place_.fail("_rebuild_parameter takes a tensor and two more arguments");
    push_index(items[0]);
  } else {
    place_.fail("calls {}", name);
  }
}

bool PickleStack::all_integers(uint32_t tuple) const {
  const std::vector<uint32_t>& items = pickle_.values[tuple].items;
  return is(tuple, PickleKind::kTuple) && items.size() <= Shape::kMaxRank &&
         std::ranges::all_of(items, [&](uint32_t item) { return is(item, PickleKind::kInteger); });
}

// _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks). The first four
// describe the tensor; the others do not matter for weights. torch_tensors.cpp checks them against
// the storage.
void PickleStack::push_tensor(const std::vector<uint32_t>& arguments) {
  if (arguments.size() != 6)
    place_.fail("_rebuild_tensor_v2 takes 6 arguments, not {}", arguments.size());
  if (!is(arguments[0], PickleKind::kStorage) || !is(arguments[1], PickleKind::kInteger) ||
      !all_integers(arguments[2]) || !all_integers(arguments[3])) {
    place_.fail(
        "_rebuild_tensor_v2 takes a storage, an integer, and tuples of up to 8 sizes and strides");
  }
  if (value(arguments[2]).items.size() != value(arguments[3]).items.size())
    place_.fail("a tensor has as many strides as sizes");
  push_container(PickleKind::kTensor, std::span(arguments).first(4));
}

// A storage is not part of the pickle: the pickle has only its id, which torch.load would pass to a
// function that loads the record. Here the id becomes a description of the storage.
void PickleStack::push_storage() {
  const uint32_t id = pop();
  const std::vector<uint32_t> items =
      is(id, PickleKind::kTuple) ? value(id).items : std::vector<uint32_t>{};
  const bool fits = items.size() == 5 && is(items[0], PickleKind::kString) &&
                    value(items[0]).text == "storage" && is(items[1], PickleKind::kGlobal) &&
                    is(items[2], PickleKind::kString) && is(items[3], PickleKind::kString) &&
                    is(items[4], PickleKind::kInteger);
  if (!fits) place_.fail("is not the id of a storage");
  const auto dtype = pickle_storage_dtype(value(items[1]).text);
  if (!dtype) place_.fail("{} is not a storage class", value(items[1]).text);
  const std::string_view key = value(items[2]).text;
  const int64_t n_elements = value(items[4]).integer;
  if (!is_digits(key)) place_.fail("the storage's key '{}' is not a number", printable(key));
  if (n_elements < 0) place_.fail("a storage of {} elements", n_elements);
  push({.kind = PickleKind::kStorage, .dtype = *dtype, .integer = n_elements, .text = key});
}

// torch.save writes the versions of modules in this way, as the attribute `_metadata` of an
// OrderedDict. Weights do not depend on them.
void PickleStack::build() {
  const uint32_t state = pop();
  if (!is(state, PickleKind::kDict) || !is(top(), PickleKind::kDict))
    place_.fail("sets attributes of a value that is not a dictionary");
}

void PickleStack::remember(uint32_t key) {
  const uint32_t index = top();
  if (memo_.size() >= kMostMemo) place_.fail("stores more than {} values in the memo", kMostMemo);
  if (!memo_.emplace(key, index).second)
    place_.fail("stores a second value as {} in the memo", key);
}

void PickleStack::recall(uint32_t key) {
  const auto it = memo_.find(key);
  if (it == memo_.end()) place_.fail("value {} is not in the memo", key);
  push_index(it->second);
}

Pickle PickleStack::finish() {
  if (stack_.size() != 1 || !marks_.empty())
    place_.fail("ends with {} values on the stack", stack_.size());
  pickle_.root = stack_.back();
  return std::move(pickle_);
}

}  // namespace limpid
