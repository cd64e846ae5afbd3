// The stack, the marks and the memo of the machine in pickle_reader.h, and what its instructions do
// to them. A mark remembers the height of the stack; an instruction such as TUPLE takes all values
// above the last mark. The memo keeps values by number for later use (BINPUT 1, BINGET 1).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/pickle_reader.h"
#include "limpid/error.hpp"

namespace limpid {

// Where the machine is, for its errors.
struct PicklePlace {
  std::string_view path;
  std::string_view record;
  uint64_t base = 0;   // offset of the pickle in the file
  uint64_t start = 0;  // offset of the instruction in the pickle
  uint8_t opcode = 0;
  std::string_view instruction = {};  // its name; empty for an unknown one

  // Throw FormatError and UnsupportedError.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    throw FormatError(std::string(path), base + start, field(),
                      fmt::format(problem, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> problem, Args&&... args) const {
    throw UnsupportedError(fmt::format("{}: at byte {}: {}: {}", path, base + start, field(),
                                       fmt::format(problem, std::forward<Args>(args)...)));
  }
  // "data.pkl: BINGET", or "data.pkl: instruction 0x93" for one that is not known.
  std::string field() const {
    if (!instruction.empty()) return fmt::format("{}: {}", record, instruction);
    return fmt::format("{}: instruction {:#04x}", record, opcode);
  }
};

// The methods are the steps of the instructions. Each throws as PicklePlace::fail does when the
// instruction is not allowed in the present state. Limits on the numbers of values, marks and memo
// entries bound the memory that a hostile pickle can ask for.
class PickleStack {
 public:
  // Keeps a reference to `place`, which the machine moves.
  explicit PickleStack(const PicklePlace& place) : place_(place) {}

  void push(PickleValue value);
  void push_mark();
  // Take the top n values, or all values above the mark and the mark, the lowest first.
  std::vector<uint32_t> take(size_t n);
  std::vector<uint32_t> take_to_mark();
  // `items` are values that were taken.
  void push_container(PickleKind kind, std::span<const uint32_t> items = {});
  void append(std::span<const uint32_t> items);     // to the list on top
  void set_items(std::span<const uint32_t> items);  // key, value, key, …: of the dictionary on top

  // REDUCE. Creates an empty dictionary or a tensor; nothing else can be called.
  void call();
  void build();  // drops the attributes of a dictionary
  // BINPERSID. Replaces the tuple ("storage", class, key, device, number of elements) by a storage.
  void push_storage();
  // Stores the top value in the memo under `key`; recall() pushes it again.
  void remember(uint32_t key);
  void recall(uint32_t key);

  // The result at STOP. There must be exactly one value on the stack.
  Pickle finish();

 private:
  uint32_t add(PickleValue value);
  void push_index(uint32_t index);
  uint32_t pop();
  uint32_t top() const;
  // Makes `items` part of the container `parent`.
  void store(uint32_t parent, std::span<const uint32_t> items);
  void push_tensor(const std::vector<uint32_t>& arguments);
  PickleValue& value(uint32_t index) { return pickle_.values[index]; }
  bool is(uint32_t index, PickleKind kind) const { return pickle_.values[index].kind == kind; }
  bool all_integers(uint32_t tuple) const;

  const PicklePlace& place_;
  Pickle pickle_;
  std::vector<uint32_t> stack_;  // indices into pickle_.values
  std::vector<size_t> marks_;    // height of the stack at each mark
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace limpid
