// Pickles that do more than describe a state dictionary: each is refused with its byte and its
// instruction (class 17 of malformed files: docs/formats/torch.md, 6 and 7).
#include "checkpoint/pickle_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/torch_builder.h"
#include "checkpoint/torch_checkpoint.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using torch_test::archive_of;
using torch_test::global;
using torch_test::integer;
using torch_test::kOrderedDict;
using torch_test::kProto;
using torch_test::long_integer;
using torch_test::number;
using torch_test::serialize;
using torch_test::state_dict;
using torch_test::TensorSketch;
using torch_test::text;
using torch_test::tuple;

Checkpoint parse(const std::string& pickle) {
  const std::string bytes = serialize(archive_of(pickle));
  return parse_torch("m.pth", std::as_bytes(std::span(bytes)));
}

// {"w": tensor, "x": what `program` leaves on the stack}
std::string beside(const std::string& program) {
  return kProto + "}(" + text("w") + serialize(TensorSketch{}) + text("x") + program + "u.";
}

template <typename Change>
std::string with_tensor(Change change) {
  TensorSketch sketch;
  change(sketch);
  return state_dict(serialize(sketch));
}

struct Program {
  const char* name;
  std::string pickle;
  const char* message;
  bool unsupported = false;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"Empty", "", "needs 1 bytes"},
      {"NoProtocol", "}.", "a pickle begins with PROTO"},
      {"Protocol0", "\x80" + std::string(1, '\0') + "}.", "protocol 0", true},
      {"Protocol9", "\x80\x09}.", "protocol 9", true},
      {"NoStop", kProto + "}", "ends without STOP"},
      {"AfterStop", kProto + "}.}", "is followed by 1 bytes"},
      {"TwoValues", kProto + "}}.", "ends with 2 values"},
      {"NoValue", kProto + ".", "ends with 0 values"},
      {"OpenMark", kProto + "}(.", "ends with 1 values"},
      // Globals: what CVE-2025-32434 and every pickle exploit need.
      {"System", kProto + global("os", "system") + text("id") + "\x85R.",
       "the name os.system is not", true},
      {"Builtin", beside(global("builtins", "eval")), "builtins.eval", true},
      {"Posix", beside(global("posix", "system")), "posix.system", true},
      {"TorchLoad", beside(global("torch", "load")), "torch.load", true},
      {"RebuildOfAnotherKind", beside(global("torch._utils", "_rebuild_wrapper_subclass")),
       "_rebuild_wrapper_subclass", true},
      {"ModuleWithALineEnd", beside(global("torch\\n_utils", "x")),
       "is not allowed in a checkpoint", true},
      {"Namespace", beside(global("argparse", "Namespace")), "argparse.Namespace", true},
      {"GlobalWithoutEnd", kProto + "ctorch", "GLOBAL: needs 1 bytes"},
      // Instructions.
      {"StackGlobal", beside(text("os") + text("system") + "\x93"), "instruction 0x93", true},
      {"Inst", beside("(ios\nsystem\n"), "instruction 0x69", true},
      {"Object", beside("(" + global("collections", "OrderedDict") + "o"), "instruction 0x6f",
       true},
      {"NewObject", beside(global("collections", "OrderedDict") + ")\x81"), "instruction 0x81",
       true},
      {"PersId", beside("P0\n"), "instruction 0x50", true},
      {"Extension", beside("\x82\x01"), "instruction 0x82", true},
      {"Frame", kProto + "\x95" + number(uint64_t{1}) + "}.", "instruction 0x95", true},
      {"Pop", beside("NN0"), "instruction 0x30", true},
      {"Dup", beside("2"), "instruction 0x32", true},
      {"LongInteger", beside("\x8a\x09" + std::string(9, '\1')), "an integer of 9 bytes", true},
      // Stack and memo.
      {"Underflow", kProto + "a.", "APPEND: no value on the stack"},
      {"UnderflowOfATuple", kProto + "N\x86.", "TUPLE2: no value"},
      {"BelowTheMark", kProto + "}" + text("k") + "(Ns.", "SETITEM: no value"},
      {"NoMark", kProto + "}u.", "SETITEMS: no MARK on the stack"},
      {"NoMemo", kProto + "h\x05.", "value 5 is not in the memo"},
      {"NoLongMemo", kProto + "j" + number(uint32_t{1} << 31) + ".", "is not in the memo"},
      {"MemoOfNothing", kProto + "q" + std::string(1, '\0') + ".", "BINPUT: no value"},
      {"MemoTwice", kProto + "}q\x01q\x01.", "stores a second value as 1 in the memo"},
      {"AppendToText", kProto + text("x") + "Na.", "appends to a value that is not a list"},
      {"ItemOfAList", kProto + "]" + text("x") + "Ns.", "of a value that is not a dictionary"},
      {"KeyWithoutValue", kProto + "}(" + text("x") + "u.", "a key without a value"},
      {"KeyOfAnotherKind", kProto + "}(NNu.", "neither text nor an integer"},
      {"TextLongerThanTheFile", kProto + "X" + number(~uint32_t{0}) + "abc.", "needs 4294967295"},
      {"CutNumber", kProto + "J\x01\x02", "BININT: needs 4 bytes"},
      // Recursion.
      {"DictInItself", kProto + "}q\x01(" + text("x") + "h\x01u.", "into itself"},
      {"ListInItsItem", kProto + "]q\x01]q\x02h\x01" + "ah\x01h\x02" + "a.", "already part of"},
      {"ThroughATuple", kProto + "]q\x01h\x01\x85q\x02h\x01h\x02" + "a.", "already part of"},
      {"Deep", kProto + std::string(70, ']') + std::string(69, 'a') + ".", "nests deeper than 64"},
      {"DeepMarks", kProto + std::string(2000, '('), "nests deeper than 1024"},
      // Calls.
      {"CallOfText", beside(text("x") + ")R"), "calls a value that is not a name"},
      {"CallWithoutATuple", beside(global("collections", "OrderedDict") + "NR"), "without a tuple"},
      {"CallOfAStorage", beside(global("torch", "FloatStorage") + ")R"),
       "calls torch FloatStorage"},
      {"OrderedDictOfArguments", beside(global("collections", "OrderedDict") + "]\x85R"),
       "arguments to OrderedDict"},
      {"BuildOfAList", beside("]}b"), "sets attributes"},
      {"BuildOfATensor", beside(serialize(TensorSketch{}) + "}b"), "sets attributes"},
      {"ParameterOfText",
       beside(global("torch._utils", "_rebuild_parameter") + "(" + text("x") + "\x89" +
              kOrderedDict + "tR"),
       "_rebuild_parameter takes a tensor"},
      {"TensorOfFive", with_tensor([](auto& t) { t.more = "\x89"; }), "not 5"},
      {"TensorOfSeven", with_tensor([](auto& t) { t.more += "}"; }), "not 7"},
      {"TensorOfText", with_tensor([](auto& t) { t.offset = text("0"); }), "takes a storage"},
      {"SizesOfText", with_tensor([](auto& t) { t.sizes = "(" + text("6") + "t"; }),
       "takes a storage"},
      {"NineSizes", with_tensor([](auto& t) {
         t.sizes = t.strides = tuple({1, 1, 1, 1, 1, 1, 1, 1, 1});
       }),
       "up to 8"},
      {"OneStride", with_tensor([](auto& t) { t.strides = tuple({1}); }), "as many strides"},
      {"StorageOfAnotherName", with_tensor([](auto& t) { t.storage = "ComplexFloatStorage"; }),
       "ComplexFloatStorage", true},
      {"StorageThatIsNone",
       beside("(" + text("storage") + kOrderedDict + text("0") + text("cpu") + integer(1) + "tQ"),
       "is not the id of a storage"},
      {"StorageOfAFunction",
       beside("(" + text("storage") + global("collections", "OrderedDict") + text("0") +
              text("cpu") + integer(1) + "tQ"),
       "is not a storage class"},
      {"StorageKeyIsAPath", with_tensor([](auto& t) { t.key = text("../0"); }), "is not a number"},
      {"StorageKeyIsEmpty", with_tensor([](auto& t) { t.key = text(""); }), "is not a number"},
      {"StorageOfMinusOne", with_tensor([](auto& t) { t.n_stored = -1; }), "a storage of -1"},
      // Storages and strides.
      {"RecordMissing", with_tensor([](auto& t) { t.key = text("7"); }), "m/data/7 is missing"},
      {"RecordShorter", with_tensor([](auto& t) { t.n_stored = 7; }), "has 24 bytes"},
      {"RecordLonger", with_tensor([](auto& t) { t.n_stored = 5; }), "has 24 bytes"},
      {"RecordOfAnotherType", with_tensor([](auto& t) { t.storage = "HalfStorage"; }),
       "has 24 bytes"},
      {"NegativeSize", with_tensor([](auto& t) {
         t.sizes = tuple({-2, 3});
       }),
       "a size of -2"},
      {"NegativeStride", with_tensor([](auto& t) {
         t.strides = tuple({-3, 1});
       }),
       "a stride of -3"},
      {"NegativeOffset", with_tensor([](auto& t) { t.offset = integer(-1); }),
       "reaches beyond its storage"},
      {"OffsetBehind", with_tensor([](auto& t) { t.offset = integer(1); }),
       "reaches beyond its storage"},
      {"RowTooMany", with_tensor([](auto& t) {
         t.sizes = tuple({3, 3});
       }),
       "reaches beyond its storage"},
      {"StrideTooWide", with_tensor([](auto& t) {
         t.strides = tuple({4, 1});
       }),
       "reaches beyond its storage"},
      {"OffsetOfNothing", with_tensor([](auto& t) {
         t.sizes = tuple({0, 3});
         t.offset = integer(7);
       }),
       "reaches beyond its storage"},
      {"ProductOverflows", with_tensor([](auto& t) {
         t.sizes = tuple({0x7fffffff, 0x7fffffff, 0x7fffffff});
         t.strides = tuple({0, 0, 0});
       }),
       "too many elements"},
      // 2^62 * 2 fits in 64 bits without a sign, and no shape can hold it.
      {"ProductOverflowsBeforeAZero", with_tensor([](auto& t) {
         t.sizes = "(" + long_integer(int64_t{1} << 62) + integer(2) + integer(0) + "t";
         t.strides = tuple({0, 0, 0});
       }),
       "too many elements"},
      {"ReachOverflows", with_tensor([](auto& t) {
         t.sizes = "(" + long_integer(int64_t{1} << 62) + "t";
         t.strides = "(" + long_integer(int64_t{1} << 62) + "t";
       }),
       "reaches beyond its storage"},
      {"Expanded", with_tensor([](auto& t) {
         t.sizes = tuple({1 << 20, 1 << 10});
         t.strides = tuple({0, 0});
       }),
       "expanded tensors are not read"},
      // What the state dictionary may not be.
      {"NoDictionary", kProto + "].", "is not a dictionary"},
      {"NoTensors", kProto + "}(" + text("optimizer") + "}u.", "found optimizer"},
      {"KeyThereTwice", kProto + "}(" + text("w") + serialize(TensorSketch{}) + text("w") + "Nu.",
       "occurs twice"},
      {"NumberAndDigits", beside("}(" + integer(3) + "N" + text("3") + "Nu"), "occurs twice"},
      {"NameNotUtf8", state_dict(serialize(TensorSketch{}), "\xff"), "not UTF-8"},
      {"TextNotUtf8", beside(text("\xff")), "not UTF-8"},
  };
  return all;
}

class PickleRefused : public testing::TestWithParam<size_t> {};

TEST_P(PickleRefused, NamesTheByteAndTheInstruction) {
  const Program& program = programs()[GetParam()];
  try {
    parse(program.pickle);
    FAIL() << "was accepted";
  } catch (const FormatError& error) {
    EXPECT_FALSE(program.unsupported);
    EXPECT_NE(error.offset(), FormatError::kNoOffset);
    EXPECT_NE(std::string(error.what()).find(program.message), std::string::npos) << error.what();
  } catch (const UnsupportedError& error) {
    EXPECT_TRUE(program.unsupported);
    EXPECT_NE(std::string(error.what()).find("at byte"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(program.message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, PickleRefused, testing::Range<size_t>(0, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

TEST(PickleReader, TheByteIsTheInstructionsPlaceInTheFile) {
  const std::string pickle = beside("NNN\x93");
  const std::string bytes = serialize(archive_of(pickle));
  const size_t expected = bytes.find(pickle) + pickle.find('\x93');
  expect_error<UnsupportedError>([&] { parse(pickle); }, {fmt::format("at byte {}:", expected)});
}

// 64 levels of two references each: 2^64 visits for who follows them all.
TEST(PickleReader, ManyReferencesToOneAreNotFollowedForEver) {
  std::string pickle = kProto + "}q" + std::string(1, '\0');
  for (int level = 1; level < 60; ++level) {
    const std::string before = {'h', static_cast<char>(level - 1)};
    pickle.append("}(").append(text("a")).append(before).append(text("b")).append(before);
    pickle.append("uq").push_back(static_cast<char>(level));
  }
  // The 60 values lie on the stack; a list takes all but the last.
  const std::string nested = kProto + "(" + pickle.substr(2) + "t";
  const std::string whole = kProto + "}(" + text("w") + serialize(TensorSketch{}) + text("x") +
                            nested.substr(2) + text("y") + "h\x3b" + "u.";
  expect_error<FormatError>([&] { parse(whole); }, {"too often"});
}

TEST(PickleReader, ReadsWhatLiesBesideTheWeights) {
  const std::string real = "G" + std::string("\x3f\xf8\0\0\0\0\0\0", 8);  // 1.5, big-endian
  const Checkpoint checkpoint =
      parse(kProto + "}(" + text("model") + "}(" + text("w") + serialize(TensorSketch{}) + "u" +
            text("args") + "}(" + text("dim") + integer(-7) + text("eps") + real + text("name") +
            text("x") + text("on") + "\x88" + text("none") + "N" + text("sizes") + tuple({1, 2}) +
            text("mixed") + "(" + integer(1) + text("a") + "t" + text("big") + "\x8a\x02\xff\x7f" +
            text("zero") + "\x8a" + std::string(1, '\0') + text("minus") + "\x8a\x01\xff" + "u" +
            text("itos") + "}(" + integer(0) + text("a") + integer(1) + text("b") + "u" +
            text("loss") + serialize(TensorSketch{}) + "u.");
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"w"}));
  const Metadata& m = checkpoint.metadata;
  EXPECT_EQ(m.integer("state.args.dim"), -7);
  EXPECT_EQ(m.number("state.args.eps"), 1.5);
  EXPECT_EQ(m.string("state.args.name"), "x");
  EXPECT_EQ(m.boolean("state.args.on"), true);
  EXPECT_EQ(m.integer("state.args.big"), 0x7fff);
  EXPECT_EQ(m.integer("state.args.zero"), 0);
  EXPECT_EQ(m.integer("state.args.minus"), -1);
  EXPECT_EQ(*m.integers("state.args.sizes"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*m.strings("state.itos"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(m.contains("state.args.none"));
  EXPECT_FALSE(m.contains("state.args.mixed"));
  EXPECT_EQ(checkpoint.unused_tensors, (std::vector<std::string>{"loss"}));
}

// A product of the sizes behind the zero would leave 64 bits; there is nothing to multiply.
TEST(PickleReader, AnEmptyTensorMayHaveAnySizes) {
  TensorSketch empty;
  empty.sizes =
      "(" + integer(0) + long_integer(int64_t{1} << 62) + long_integer(int64_t{1} << 62) + "t";
  empty.strides = tuple({1, 1, 1});
  const Checkpoint checkpoint = parse(kProto + "}(" + text("w") + serialize(TensorSketch{}) +
                                      text("empty") + serialize(empty) + "u.");
  ASSERT_NE(checkpoint.find("empty"), nullptr);
  EXPECT_EQ(checkpoint.find("empty")->shape, (Shape{0, int64_t{1} << 62, int64_t{1} << 62}));
  EXPECT_EQ(checkpoint.find("empty")->n_bytes(), 0U);
}

TEST(PickleReader, StridesAreUndoneWhenTheTensorIsRead) {
  TensorSketch transposed;
  transposed.sizes = tuple({3, 2});
  transposed.strides = tuple({1, 3});
  const std::string bytes = serialize(archive_of(state_dict(serialize(transposed))));
  const Checkpoint checkpoint = parse_torch("m.pth", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(checkpoint.find("w")->data, nullptr);
  Tensor storage;
  const TensorView tensor = checkpoint.read("w", storage);
  EXPECT_EQ(tensor.shape, (Shape{3, 2}));
  EXPECT_EQ(std::vector<float>(tensor.f32(), tensor.f32() + 6),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(PickleReader, AParameterIsItsTensor) {
  const Checkpoint checkpoint =
      parse(state_dict(global("torch._utils", "_rebuild_parameter") + "(" +
                       serialize(TensorSketch{}) + "\x88" + kOrderedDict + "tR"));
  EXPECT_EQ(checkpoint.find("w")->shape, (Shape{2, 3}));
}

TEST(PickleReader, AListIsNotCopiedForEveryKeyWithoutBound) {
  std::string pickle =
      kProto + "}(" + text("w") + serialize(TensorSketch{}) + text("l") + std::string("]q\0(", 4);
  for (int i = 0; i < 4000; ++i) pickle += "K\x01";
  pickle += "e";
  for (int i = 0; i < 100; ++i) pickle += text("k" + std::to_string(i)) + std::string("h\0", 2);
  EXPECT_THROW(parse(pickle + "u."), FormatError);
}

TEST(PickleReader, ALongNameIsNotRepeatedWithoutBound) {
  std::string inner = "}(";
  for (int i = 0; i < 100; ++i) inner += text(std::to_string(i)) + "K\x01";
  EXPECT_THROW(parse(kProto + "}(" + text("w") + serialize(TensorSketch{}) +
                     text(std::string(1 << 20, 'k')) + inner + "uu."),
               FormatError);
}

}  // namespace
}  // namespace limpid
