#include "checkpoint/pickle_reader.h"

#include <algorithm>
#include <bit>

#include "base/printable.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/pickle_opcodes.h"
#include "checkpoint/pickle_stack.h"

namespace limpid {
namespace {

// 64 MiB, far above what the names and shapes of any model need.
constexpr uint64_t kLargestPickle = uint64_t{1} << 26U;

constexpr auto kStop = static_cast<uint8_t>(PickleOpcode::kStop);
constexpr auto kProto = static_cast<uint8_t>(PickleOpcode::kProto);

struct Instruction;

// Decodes the instructions and their operands; PickleStack carries them out. `place_` follows the
// machine, so that every error can say where it is.
class Machine {
 public:
  Machine(std::string_view path, std::string_view name, uint64_t offset,
          std::span<const std::byte> bytes)
      : place_{path, name, offset}, stack_(place_), reader_(path, bytes) {}

  PickleStack& stack() { return stack_; }

  // Runs the program to its STOP, which must be the last byte of the record.
  Pickle run() {
    if (reader_.size() > kLargestPickle)
      place_.fail("has {} bytes; at most {} are read", reader_.size(), kLargestPickle);
    read_protocol();
    while (step() != kStop) {
    }
    Pickle pickle = stack_.finish();
    if (reader_.remaining() != 0) place_.fail("is followed by {} bytes", reader_.remaining());
    return pickle;
  }

  // ---- operands ---------------------------------------------------------------------------------

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  // ByteReader would count offsets from the start of the pickle; place_ knows the offset in the
  // file.
  std::string_view take(uint64_t n) {
    if (n > reader_.remaining()) place_.fail("needs {} bytes, {} are left", n, reader_.remaining());
    return reader_.take(n, place_.record);
  }

  // The text up to the next line feed, without it. GLOBAL has two of these: module and name.
  std::string_view line() {
    const uint64_t begin = reader_.offset();
    while (number<char>() != '\n') {
    }
    const uint64_t n = reader_.offset() - begin;
    reader_.seek(begin, place_.record);
    return reader_.take(n, place_.record).substr(0, n - 1);
  }

  // ---- containers, names and scalars ------------------------------------------------------------

  void push_tuple(std::span<const uint32_t> items) {
    stack_.push_container(PickleKind::kTuple, items);
  }

  // A name is only compared with the list of allowed names. Nothing is imported.
  void push_global() {
    const std::string_view module = line();
    const std::string_view name = line();
    const std::string_view known = known_pickle_global(module, name);
    if (known.empty()) {
      place_.refuse(
          "the name {}.{} is not allowed in a checkpoint; save only the state dictionary, with "
          "plain numbers and text beside it",
          printable(module), printable(name));
    }
    stack_.push({.kind = PickleKind::kGlobal, .text = known});
  }

  // Also None and the booleans, which are numbers with another kind.
  void push_integer(int64_t integer, PickleKind kind = PickleKind::kInteger) {
    stack_.push({.kind = kind, .integer = integer});
  }

  // LONG1: a byte count, then a two's complement integer, little-endian, in as few bytes as it
  // needs.
  void push_long() {
    const auto n = number<uint8_t>();
    if (n > sizeof(int64_t)) place_.refuse("an integer of {} bytes", n);
    const std::string_view bytes = take(n);
    uint64_t bits = n > 0 && (static_cast<uint8_t>(bytes.back()) & 0x80U) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&bits, bytes.data(), n);
    push_integer(static_cast<int64_t>(bits));
  }

  void push_real() {
    const uint64_t bits = __builtin_bswap64(number<uint64_t>());  // the only big-endian number
    stack_.push({.kind = PickleKind::kReal, .real = std::bit_cast<double>(bits)});
  }

  // BINUNICODE: a length (u32) and UTF-8. The value is a view into the pickle; nothing is copied.
  void push_string() {
    stack_.push({.kind = PickleKind::kString, .text = take(number<uint32_t>())});
  }

 private:
  // The first instruction, PROTO, states the version. torch.save writes protocol 2. Later versions
  // add instructions, which step() refuses one by one.
  void read_protocol() {
    read_opcode();
    if (place_.opcode != kProto) place_.fail("a pickle begins with PROTO");
    const auto protocol = number<uint8_t>();
    if (protocol < 2 || protocol > 5) place_.refuse("protocol {}", protocol);
  }

  const Instruction* read_opcode();  // returns its row in the table, or null
  uint8_t step();                    // carries out one instruction and returns its opcode

  PicklePlace place_;
  PickleStack stack_;
  ByteReader reader_;  // over the pickle
};

// An instruction, its name in CPython's pickletools, and what it does.
struct Instruction {
  uint8_t opcode;
  std::string_view name;
  void (*run)(Machine&);
};

constexpr Instruction kInstructions[] = {
    {kProto, "PROTO", nullptr},  // only at the start
    {kStop, "STOP", [](Machine&) {}},
    // containers
    {'(', "MARK", [](Machine& m) { m.stack().push_mark(); }},
    {')', "EMPTY_TUPLE", [](Machine& m) { m.stack().push_container(PickleKind::kTuple); }},
    {']', "EMPTY_LIST", [](Machine& m) { m.stack().push_container(PickleKind::kList); }},
    {'}', "EMPTY_DICT", [](Machine& m) { m.stack().push_container(PickleKind::kDict); }},
    {'t', "TUPLE", [](Machine& m) { m.push_tuple(m.stack().take_to_mark()); }},
    {0x85, "TUPLE1", [](Machine& m) { m.push_tuple(m.stack().take(1)); }},
    {0x86, "TUPLE2", [](Machine& m) { m.push_tuple(m.stack().take(2)); }},
    {0x87, "TUPLE3", [](Machine& m) { m.push_tuple(m.stack().take(3)); }},
    {'a', "APPEND", [](Machine& m) { m.stack().append(m.stack().take(1)); }},
    {'e', "APPENDS", [](Machine& m) { m.stack().append(m.stack().take_to_mark()); }},
    {'s', "SETITEM", [](Machine& m) { m.stack().set_items(m.stack().take(2)); }},
    {'u', "SETITEMS", [](Machine& m) { m.stack().set_items(m.stack().take_to_mark()); }},
    // operations on values
    {'b', "BUILD", [](Machine& m) { m.stack().build(); }},
    {'c', "GLOBAL", [](Machine& m) { m.push_global(); }},
    {'R', "REDUCE", [](Machine& m) { m.stack().call(); }},
    {'Q', "BINPERSID", [](Machine& m) { m.stack().push_storage(); }},
    {'h', "BINGET", [](Machine& m) { m.stack().recall(m.number<uint8_t>()); }},
    {'j', "LONG_BINGET", [](Machine& m) { m.stack().recall(m.number<uint32_t>()); }},
    {'q', "BINPUT", [](Machine& m) { m.stack().remember(m.number<uint8_t>()); }},
    {'r', "LONG_BINPUT", [](Machine& m) { m.stack().remember(m.number<uint32_t>()); }},
    // constants
    {'N', "NONE", [](Machine& m) { m.push_integer(0, PickleKind::kNone); }},
    {0x88, "NEWTRUE", [](Machine& m) { m.push_integer(1, PickleKind::kBool); }},
    {0x89, "NEWFALSE", [](Machine& m) { m.push_integer(0, PickleKind::kBool); }},
    {'J', "BININT", [](Machine& m) { m.push_integer(m.number<int32_t>()); }},
    {'K', "BININT1", [](Machine& m) { m.push_integer(m.number<uint8_t>()); }},
    {'M', "BININT2", [](Machine& m) { m.push_integer(m.number<uint16_t>()); }},
    {0x8a, "LONG1", [](Machine& m) { m.push_long(); }},
    {'G', "BINFLOAT", [](Machine& m) { m.push_real(); }},
    {'X', "BINUNICODE", [](Machine& m) { m.push_string(); }},
};

// Reads an opcode and moves place_ to it, so that errors name this instruction until the next one.
const Instruction* Machine::read_opcode() {
  place_.start = reader_.offset();
  place_.opcode = 0;
  place_.instruction = {};
  if (place_.start > 0 && reader_.remaining() == 0) place_.fail("the pickle ends without STOP");
  place_.opcode = number<uint8_t>();
  const auto* found = std::ranges::find(kInstructions, place_.opcode, &Instruction::opcode);
  if (found == std::end(kInstructions)) return nullptr;
  place_.instruction = found->name;
  return found;
}

uint8_t Machine::step() {
  const Instruction* instruction = read_opcode();
  if (instruction == nullptr || instruction->run == nullptr) {
    place_.refuse(
        "is not an instruction that torch.save writes for a state dictionary (protocol 2)");
  }
  instruction->run(*this);
  return instruction->opcode;
}

}  // namespace

Pickle read_pickle(std::string_view path, std::string_view name, uint64_t offset,
                   std::span<const std::byte> bytes) {
  return Machine(path, name, offset, bytes).run();
}

}  // namespace limpid
