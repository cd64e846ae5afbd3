#include "checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "checkpoint/byte_reader.h"
#include "checkpoint/pickle_opcodes.h"
#include "limpid/error.hpp"
#include "tensor/tensor.h"

namespace limpid {
namespace {

// Caps. A checkpoint of 405 billion parameters has some 1,200 tensors, each about 60 values.
constexpr uint64_t kLargestPickle = uint64_t{1} << 26U;
constexpr size_t kMostValues = size_t{1} << 21U;
constexpr size_t kMostOnStack = size_t{1} << 18U;
constexpr size_t kMostMarks = 1024;
constexpr size_t kMostMemo = size_t{1} << 21U;
constexpr uint16_t kDeepest = 64;

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class Machine {
 public:
  Machine(std::string_view path, std::string_view name, uint64_t offset,
          std::span<const std::byte> bytes)
      : path_(path), name_(name), base_(offset), reader_(path, bytes) {}

  Pickle run() {
    if (reader_.size() > kLargestPickle)
      fail(fmt::format("has {} bytes; at most {} are read", reader_.size(), kLargestPickle));
    read_protocol();
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty())
      fail(fmt::format("ends with {} values on the stack", stack_.size()));
    if (reader_.remaining() != 0) fail(fmt::format("is followed by {} bytes", reader_.remaining()));
    pickle_.root = stack_.back();
    return std::move(pickle_);
  }

 private:
  // ---- errors -----------------------------------------------------------------------------------

  std::string field() const { return fmt::format("{}: {}", name_, pickle_opcode_name(opcode_)); }

  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(std::string(path_), base_ + start_, field(), problem);
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    throw UnsupportedError(
        fmt::format("{}: at byte {}: {}: {}", path_, base_ + start_, field(), problem));
  }

  // ---- the program ------------------------------------------------------------------------------

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view take(uint64_t n) {
    if (n > reader_.remaining())
      fail(fmt::format("needs {} bytes, {} are left", n, reader_.remaining()));
    return reader_.take(n, name_);
  }

  std::string_view line() {
    const uint64_t begin = reader_.offset();
    while (number<char>() != '\n') {
    }
    const uint64_t n = reader_.offset() - begin;
    reader_.seek(begin, name_);
    return reader_.take(n, name_).substr(0, n - 1);
  }

  void read_protocol() {
    start_ = reader_.offset();
    opcode_ = number<uint8_t>();
    if (opcode_ != static_cast<uint8_t>(PickleOpcode::kProto)) fail("a pickle begins with PROTO");
    const auto protocol = number<uint8_t>();
    if (protocol < 2 || protocol > 5) refuse(fmt::format("protocol {}", protocol));
  }

  // ---- the stack --------------------------------------------------------------------------------

  uint32_t push(PickleValue value) {
    if (pickle_.values.size() >= kMostValues) fail(fmt::format("makes value {}", kMostValues + 1));
    value.offset = base_ + start_;
    const auto index = static_cast<uint32_t>(pickle_.values.size());
    pickle_.values.push_back(std::move(value));
    push_index(index);
    return index;
  }

  void push_index(uint32_t index) {
    if (stack_.size() >= kMostOnStack)
      fail(fmt::format("puts more than {} values on the stack", kMostOnStack));
    stack_.push_back(index);
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  // Everything above the mark is out of reach of what came before it.
  uint32_t pop() {
    if (stack_.size() <= floor()) fail("finds nothing on the stack");
    const uint32_t index = stack_.back();
    stack_.pop_back();
    return index;
  }

  uint32_t top() const {
    if (stack_.size() <= floor()) fail("finds nothing on the stack");
    return stack_.back();
  }

  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) fail("finds no MARK");
    std::vector<uint32_t> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()),
                                stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  PickleValue& value(uint32_t index) { return pickle_.values[index]; }

  // ---- containers -------------------------------------------------------------------------------

  // Makes `items` part of the container `parent`. What is part of something does not change any
  // more, so nothing becomes part of itself.
  void store(uint32_t parent, std::span<const uint32_t> items) {
    if (value(parent).stored) fail("changes a container that is already part of another");
    for (const uint32_t item : items) {
      if (item == parent) fail("puts a container into itself");
      value(item).stored = true;
      const auto depth = static_cast<uint16_t>(value(item).depth + 1);
      if (depth > kDeepest) fail(fmt::format("nests deeper than {}", kDeepest));
      value(parent).depth = std::max(value(parent).depth, depth);
    }
    auto& held = value(parent).items;
    held.insert(held.end(), items.begin(), items.end());
  }

  void push_container(PickleKind kind, std::span<const uint32_t> items) {
    PickleValue container;
    container.kind = kind;
    store(push(std::move(container)), items);
  }

  void push_small_tuple(size_t n) {
    std::array<uint32_t, 3> items{};
    for (size_t i = n; i-- > 0;) items[i] = pop();
    push_container(PickleKind::kTuple, {items.data(), n});
  }

  void append(std::span<const uint32_t> items) {
    const uint32_t list = top();
    if (value(list).kind != PickleKind::kList) fail("appends to what is no list");
    store(list, items);
  }

  void set_items(std::span<const uint32_t> items) {
    const uint32_t dict = top();
    if (value(dict).kind != PickleKind::kDict) fail("sets an item of what is no dictionary");
    if (items.size() % 2 != 0) fail("has a key without a value");
    for (size_t i = 0; i < items.size(); i += 2) {
      const PickleKind kind = value(items[i]).kind;
      if (kind != PickleKind::kString && kind != PickleKind::kInteger)
        fail("has a key that is neither text nor an integer");
    }
    store(dict, items);
  }

  // ---- names, and what stands for calls ---------------------------------------------------------

  void push_global() {
    const std::string_view module = line();
    const std::string_view name = line();
    PickleValue global;
    global.kind = PickleKind::kGlobal;
    global.text = known_pickle_global(module, name);
    if (global.text.empty()) {
      refuse(
          fmt::format("the name {}.{} is not on the list of what a checkpoint may refer to; "
                      "save only the state dictionary, with plain numbers and text beside it",
                      printable(module), printable(name)));
    }
    push(std::move(global));
  }

  bool is(uint32_t index, PickleKind kind) { return value(index).kind == kind; }

  void reduce() {
    const uint32_t arguments = pop();
    const uint32_t callable = pop();
    if (!is(callable, PickleKind::kGlobal) || !is(arguments, PickleKind::kTuple))
      fail("calls what is no name, or without a tuple of arguments");
    const std::string_view name = value(callable).text;
    const std::vector<uint32_t> items = value(arguments).items;
    if (name == kPickleOrderedDict) {
      if (!items.empty()) fail("gives arguments to OrderedDict");
      push_container(PickleKind::kDict, {});
    } else if (name == kPickleRebuildTensor) {
      push_tensor(items);
    } else if (name == kPickleRebuildParameter) {
      const bool fits = items.size() == 3 && is(items[0], PickleKind::kTensor);
      if (!fits) fail("_rebuild_parameter takes a tensor and two more");
      push_index(items[0]);
    } else {
      fail(fmt::format("calls {}", name));
    }
  }

  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)
  void push_tensor(const std::vector<uint32_t>& items) {
    const auto all_integers = [&](uint32_t tuple) {
      return is(tuple, PickleKind::kTuple) && value(tuple).items.size() <= Shape::kMaxRank &&
             std::ranges::all_of(value(tuple).items,
                                 [&](uint32_t item) { return is(item, PickleKind::kInteger); });
    };
    if (items.size() != 6)
      fail(fmt::format("_rebuild_tensor_v2 takes 6 arguments, not {}", items.size()));
    if (!is(items[0], PickleKind::kStorage) || !is(items[1], PickleKind::kInteger) ||
        !all_integers(items[2]) || !all_integers(items[3])) {
      fail(
          "_rebuild_tensor_v2 takes a storage, an integer, and tuples of up to 8 sizes and "
          "strides");
    }
    if (value(items[2]).items.size() != value(items[3]).items.size())
      fail("a tensor has as many strides as sizes");
    push_container(PickleKind::kTensor, std::span(items).first(4));
  }

  // ("storage", class, key, device, number of elements)
  void push_storage() {
    const uint32_t id = pop();
    const std::vector<uint32_t> items =
        is(id, PickleKind::kTuple) ? value(id).items : std::vector<uint32_t>{};
    const bool fits = items.size() == 5 && is(items[0], PickleKind::kString) &&
                      value(items[0]).text == "storage" && is(items[1], PickleKind::kGlobal) &&
                      is(items[2], PickleKind::kString) && is(items[3], PickleKind::kString) &&
                      is(items[4], PickleKind::kInteger);
    if (!fits) fail("is not the id of a storage");
    const auto dtype = pickle_storage_dtype(value(items[1]).text);
    if (!dtype) fail(fmt::format("{} is no storage", value(items[1]).text));
    PickleValue storage;
    storage.kind = PickleKind::kStorage;
    storage.dtype = *dtype;
    storage.text = value(items[2]).text;
    storage.integer = value(items[4]).integer;
    if (!is_digits(storage.text))
      fail(fmt::format("the storage's key '{}' is no number", printable(storage.text)));
    if (storage.integer < 0) fail(fmt::format("a storage of {} elements", storage.integer));
    push(std::move(storage));
  }

  // The attributes of an OrderedDict (torch.save writes versions of modules, `_metadata`): read,
  // and dropped.
  void build() {
    const uint32_t state = pop();
    if (!is(state, PickleKind::kDict) || !is(top(), PickleKind::kDict))
      fail("sets attributes of what is no dictionary");
  }

  // ---- memo -------------------------------------------------------------------------------------

  void put(uint32_t key) {
    const uint32_t index = top();
    if (memo_.size() >= kMostMemo) fail(fmt::format("remembers more than {} values", kMostMemo));
    if (!memo_.emplace(key, index).second) fail(fmt::format("remembers a second value {}", key));
  }

  void get(uint32_t key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) fail(fmt::format("value {} was never remembered", key));
    push_index(it->second);
  }

  // ---- scalars ----------------------------------------------------------------------------------

  void push_integer(int64_t integer, PickleKind kind = PickleKind::kInteger) {
    PickleValue scalar;
    scalar.kind = kind;
    scalar.integer = integer;
    push(std::move(scalar));
  }

  // Two's complement, little-endian, as few bytes as hold it.
  void push_long() {
    const auto n = number<uint8_t>();
    if (n > sizeof(int64_t)) refuse(fmt::format("an integer of {} bytes", n));
    const std::string_view bytes = take(n);
    uint64_t bits = n > 0 && (static_cast<uint8_t>(bytes.back()) & 0x80U) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&bits, bytes.data(), n);
    push_integer(static_cast<int64_t>(bits));
  }

  void push_real() {
    const uint64_t bits = __builtin_bswap64(number<uint64_t>());  // big-endian, alone of them all
    PickleValue scalar;
    scalar.kind = PickleKind::kReal;
    scalar.real = std::bit_cast<double>(bits);
    push(std::move(scalar));
  }

  void push_string() {
    PickleValue text;
    text.kind = PickleKind::kString;
    text.text = take(number<uint32_t>());
    push(std::move(text));
  }

  bool step() {
    start_ = reader_.offset();
    opcode_ = 0;
    if (reader_.remaining() == 0) fail("the pickle ends without STOP");
    opcode_ = number<uint8_t>();
    switch (static_cast<PickleOpcode>(opcode_)) {
      case PickleOpcode::kStop:
        return false;
      case PickleOpcode::kMark:
        if (marks_.size() >= kMostMarks) fail(fmt::format("nests deeper than {}", kMostMarks));
        marks_.push_back(stack_.size());
        return true;
      case PickleOpcode::kEmptyTuple:
        push_container(PickleKind::kTuple, {});
        return true;
      case PickleOpcode::kEmptyList:
        push_container(PickleKind::kList, {});
        return true;
      case PickleOpcode::kEmptyDict:
        push_container(PickleKind::kDict, {});
        return true;
      case PickleOpcode::kTuple:
        push_container(PickleKind::kTuple, pop_to_mark());
        return true;
      case PickleOpcode::kTuple1:
      case PickleOpcode::kTuple2:
      case PickleOpcode::kTuple3:
        push_small_tuple(opcode_ - static_cast<uint8_t>(PickleOpcode::kTuple1) + 1U);
        return true;
      default:
        return step_on_values() || step_on_scalars();
    }
  }

  bool step_on_values() {
    switch (static_cast<PickleOpcode>(opcode_)) {
      case PickleOpcode::kAppend: {
        const uint32_t item = pop();
        append({&item, 1});
        return true;
      }
      case PickleOpcode::kAppends:
        append(pop_to_mark());
        return true;
      case PickleOpcode::kSetItem: {
        const uint32_t item = pop();
        const std::array pair = {pop(), item};
        set_items(pair);
        return true;
      }
      case PickleOpcode::kSetItems:
        set_items(pop_to_mark());
        return true;
      case PickleOpcode::kBuild:
        build();
        return true;
      case PickleOpcode::kGlobal:
        push_global();
        return true;
      case PickleOpcode::kReduce:
        reduce();
        return true;
      case PickleOpcode::kBinPersId:
        push_storage();
        return true;
      case PickleOpcode::kBinGet:
        get(number<uint8_t>());
        return true;
      case PickleOpcode::kLongBinGet:
        get(number<uint32_t>());
        return true;
      case PickleOpcode::kBinPut:
        put(number<uint8_t>());
        return true;
      case PickleOpcode::kLongBinPut:
        put(number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  bool step_on_scalars() {
    switch (static_cast<PickleOpcode>(opcode_)) {
      case PickleOpcode::kNone:
        push_integer(0, PickleKind::kNone);
        return true;
      case PickleOpcode::kNewTrue:
        push_integer(1, PickleKind::kBool);
        return true;
      case PickleOpcode::kNewFalse:
        push_integer(0, PickleKind::kBool);
        return true;
      case PickleOpcode::kBinInt:
        push_integer(number<int32_t>());
        return true;
      case PickleOpcode::kBinInt1:
        push_integer(number<uint8_t>());
        return true;
      case PickleOpcode::kBinInt2:
        push_integer(number<uint16_t>());
        return true;
      case PickleOpcode::kLong1:
        push_long();
        return true;
      case PickleOpcode::kBinFloat:
        push_real();
        return true;
      case PickleOpcode::kBinUnicode:
        push_string();
        return true;
      default:
        refuse("is not on the list of what torch.save writes for a state dictionary (protocol 2)");
    }
  }

  std::string_view path_;
  std::string_view name_;
  uint64_t base_;       // of the pickle in the file
  ByteReader reader_;   // over the pickle
  uint64_t start_ = 0;  // of the current instruction, in the pickle
  uint8_t opcode_ = 0;
  Pickle pickle_;
  std::vector<uint32_t> stack_;  // indices of values
  std::vector<size_t> marks_;    // heights of the stack
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace

Pickle read_pickle(std::string_view path, std::string_view name, uint64_t offset,
                   std::span<const std::byte> bytes) {
  return Machine(path, name, offset, bytes).run();
}

}  // namespace limpid
