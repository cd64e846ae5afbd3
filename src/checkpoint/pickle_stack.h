// The stack, the marks and the memo of the machine that pickle_reader.h describes, and what its
// instructions do to them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/pickle_reader.h"

namespace limpid {

// Where the machine is: all that its errors name.
struct PicklePlace {
  std::string_view path;
  std::string_view record;
  uint64_t base = 0;   // of the pickle in the file
  uint64_t start = 0;  // of the instruction in the pickle
  uint8_t opcode = 0;

  [[noreturn]] void fail(const std::string& problem) const;    // FormatError
  [[noreturn]] void refuse(const std::string& problem) const;  // UnsupportedError
};

// Every method throws what PicklePlace::fail throws when the instruction is not allowed.
class PickleStack {
 public:
  // `place` is followed as it moves.
  explicit PickleStack(const PicklePlace& place) : place_(place) {}

  void push(PickleValue value);
  void push_mark();
  void push_container(PickleKind kind);  // an empty one
  void push_tuple();                     // of all above the mark
  void push_tuple(size_t n);             // of the uppermost values, at most 3
  void append();                         // the uppermost value to the list below it
  void append_all();                     // those above the mark
  void set_item();                       // key and value, in the dictionary below them
  void set_items();
  void call();   // REDUCE: an empty dictionary, or a tensor; nothing else can be called
  void build();  // the attributes of a dictionary, which are dropped
  // ("storage", class, key, device, number of elements) -> a storage.
  void push_storage();
  void remember(uint32_t key);
  void recall(uint32_t key);

  // What STOP leaves. Nothing may lie below it.
  Pickle finish();

 private:
  uint32_t add(PickleValue value);
  void push_index(uint32_t index);
  uint32_t pop();
  uint32_t top() const;
  std::vector<uint32_t> pop_to_mark();
  void store(uint32_t parent, std::span<const uint32_t> items);
  void push_container_of(PickleKind kind, std::span<const uint32_t> items);
  void append(std::span<const uint32_t> items);
  void set_items(std::span<const uint32_t> items);
  void push_tensor(const std::vector<uint32_t>& arguments);
  PickleValue& value(uint32_t index) { return pickle_.values[index]; }
  bool is(uint32_t index, PickleKind kind) const { return pickle_.values[index].kind == kind; }
  bool all_integers(uint32_t tuple) const;

  const PicklePlace& place_;
  Pickle pickle_;
  std::vector<uint32_t> stack_;  // indices of values
  std::vector<size_t> marks_;    // heights of the stack
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace limpid
