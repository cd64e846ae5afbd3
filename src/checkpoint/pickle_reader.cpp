#include "checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include <bit>

#include "checkpoint/byte_reader.h"
#include "checkpoint/pickle_opcodes.h"
#include "checkpoint/pickle_stack.h"

namespace limpid {
namespace {

// 64 MiB, far above what the names and shapes of any model need.
constexpr uint64_t kLargestPickle = uint64_t{1} << 26U;

// Decodes the instructions and their operands; PickleStack carries them out. `place_` follows the
// machine, so that every error can say where it is.
class Machine {
 public:
  Machine(std::string_view path, std::string_view name, uint64_t offset,
          std::span<const std::byte> bytes)
      : place_{path, name, offset}, stack_(place_), reader_(path, bytes) {}

  // Runs the program to its STOP, which must be the last byte of the record.
  Pickle run() {
    if (reader_.size() > kLargestPickle)
      place_.fail(fmt::format("has {} bytes; at most {} are read", reader_.size(), kLargestPickle));
    read_protocol();
    while (step()) {
    }
    Pickle pickle = stack_.finish();
    if (reader_.remaining() != 0)
      place_.fail(fmt::format("is followed by {} bytes", reader_.remaining()));
    return pickle;
  }

 private:
  // ---- the program ------------------------------------------------------------------------------

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  // ByteReader would count offsets from the start of the pickle; place_ knows the offset in the
  // file.
  std::string_view take(uint64_t n) {
    if (n > reader_.remaining())
      place_.fail(fmt::format("needs {} bytes, {} are left", n, reader_.remaining()));
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

  // The first instruction, PROTO, states the version. torch.save writes protocol 2. Later versions
  // add instructions, which step() refuses one by one.
  void read_protocol() {
    place_.start = reader_.offset();
    place_.opcode = number<uint8_t>();
    if (place_.opcode != static_cast<uint8_t>(PickleOpcode::kProto))
      place_.fail("a pickle begins with PROTO");
    const auto protocol = number<uint8_t>();
    if (protocol < 2 || protocol > 5) place_.refuse(fmt::format("protocol {}", protocol));
  }

  // ---- names and scalars ------------------------------------------------------------------------

  // A name is only compared with the list of allowed names. Nothing is imported.
  void push_global() {
    const std::string_view module = line();
    const std::string_view name = line();
    PickleValue global;
    global.kind = PickleKind::kGlobal;
    global.text = known_pickle_global(module, name);
    if (global.text.empty()) {
      place_.refuse(
          fmt::format("the name {}.{} is not allowed in a checkpoint; "
                      "save only the state dictionary, with plain numbers and text beside it",
                      printable(module), printable(name)));
    }
    stack_.push(std::move(global));
  }

  // Also None and the booleans, which are numbers with another kind.
  void push_integer(int64_t integer, PickleKind kind = PickleKind::kInteger) {
    PickleValue scalar;
    scalar.kind = kind;
    scalar.integer = integer;
    stack_.push(std::move(scalar));
  }

  // LONG1: a byte count, then a two's complement integer, little-endian, in as few bytes as it
  // needs.
  void push_long() {
    const auto n = number<uint8_t>();
    if (n > sizeof(int64_t)) place_.refuse(fmt::format("an integer of {} bytes", n));
    const std::string_view bytes = take(n);
    uint64_t bits = n > 0 && (static_cast<uint8_t>(bytes.back()) & 0x80U) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&bits, bytes.data(), n);
    push_integer(static_cast<int64_t>(bits));
  }

  void push_real() {
    const uint64_t bits = __builtin_bswap64(number<uint64_t>());  // the only big-endian number
    PickleValue scalar;
    scalar.kind = PickleKind::kReal;
    scalar.real = std::bit_cast<double>(bits);
    stack_.push(std::move(scalar));
  }

  // BINUNICODE: a length (u32) and UTF-8. The value is a view into the pickle; nothing is copied.
  void push_string() {
    PickleValue text;
    text.kind = PickleKind::kString;
    text.text = take(number<uint32_t>());
    stack_.push(std::move(text));
  }

  // Carries out one instruction. Returns false at STOP. The instructions are in three switches only
  // to keep the functions short: containers, then operations on values, then constants.
  bool step() {
    place_.start = reader_.offset();
    place_.opcode = 0;
    if (reader_.remaining() == 0) place_.fail("the pickle ends without STOP");
    place_.opcode = number<uint8_t>();
    switch (static_cast<PickleOpcode>(place_.opcode)) {
      case PickleOpcode::kStop:
        return false;
      case PickleOpcode::kMark:
        stack_.push_mark();
        return true;
      case PickleOpcode::kEmptyTuple:
        stack_.push_container(PickleKind::kTuple);
        return true;
      case PickleOpcode::kEmptyList:
        stack_.push_container(PickleKind::kList);
        return true;
      case PickleOpcode::kEmptyDict:
        stack_.push_container(PickleKind::kDict);
        return true;
      case PickleOpcode::kTuple:
        stack_.push_tuple();
        return true;
      case PickleOpcode::kTuple1:
      case PickleOpcode::kTuple2:
      case PickleOpcode::kTuple3:
        stack_.push_tuple(place_.opcode - static_cast<uint8_t>(PickleOpcode::kTuple1) + 1U);
        return true;
      default:
        return step_on_values() || step_on_scalars();
    }
  }

  bool step_on_values() {
    switch (static_cast<PickleOpcode>(place_.opcode)) {
      case PickleOpcode::kAppend:
        stack_.append();
        return true;
      case PickleOpcode::kAppends:
        stack_.append_all();
        return true;
      case PickleOpcode::kSetItem:
        stack_.set_item();
        return true;
      case PickleOpcode::kSetItems:
        stack_.set_items();
        return true;
      case PickleOpcode::kBuild:
        stack_.build();
        return true;
      case PickleOpcode::kGlobal:
        push_global();
        return true;
      case PickleOpcode::kReduce:
        stack_.call();
        return true;
      case PickleOpcode::kBinPersId:
        stack_.push_storage();
        return true;
      case PickleOpcode::kBinGet:
        stack_.recall(number<uint8_t>());
        return true;
      case PickleOpcode::kLongBinGet:
        stack_.recall(number<uint32_t>());
        return true;
      case PickleOpcode::kBinPut:
        stack_.remember(number<uint8_t>());
        return true;
      case PickleOpcode::kLongBinPut:
        stack_.remember(number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  bool step_on_scalars() {
    switch (static_cast<PickleOpcode>(place_.opcode)) {
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
        place_.refuse(
            "is not an instruction that torch.save writes for a state dictionary (protocol 2)");
    }
  }

  PicklePlace place_;
  PickleStack stack_;
  ByteReader reader_;  // over the pickle
};

}  // namespace

Pickle read_pickle(std::string_view path, std::string_view name, uint64_t offset,
                   std::span<const std::byte> bytes) {
  return Machine(path, name, offset, bytes).run();
}

}  // namespace limpid
