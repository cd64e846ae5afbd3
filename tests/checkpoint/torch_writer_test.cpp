#include "checkpoint/torch_writer.h"

#include <gtest/gtest.h>

#include "checkpoint/temp_file.h"
#include "checkpoint/torch_checkpoint.h"
#include "data_paths.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

std::vector<std::byte> counted(size_t n, int first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

TEST(TorchWriter, WritesWhatTheReaderReads) {
  TempFolder folder;
  const std::string path = folder.path("m.pth");
  const std::vector<TorchEntry> entries = {
      {"a.weight", DType::kF32, {2, 3}}, {"empty", DType::kF16, {0}},
      {"b.weight", DType::kBF16, {5}},   {"tied", DType::kF32, {2, 3}, 0},
      {"steps", DType::kI64, {}},        {"mask", DType::kBool, {1, 1, 3}}};
  const std::vector<std::byte> bytes = counted(24 + 10 + 8 + 3, 1);
  TorchWriter writer(path, entries);
  for (size_t i = 0; i < bytes.size(); i += 7)  // pieces that know nothing of tensors
    writer.write(std::span(bytes).subspan(i, std::min<size_t>(7, bytes.size() - i)));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  const Checkpoint checkpoint = open_torch(path);
  ASSERT_EQ(checkpoint.tensor_order.size(), entries.size());
  EXPECT_TRUE(checkpoint.derived.empty());
  const std::vector<size_t> offsets = {0, 24, 24, 0, 34, 42};
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(checkpoint.tensor_order[i], entries[i].name);
    const TensorView& tensor = *checkpoint.find(entries[i].name);
    EXPECT_EQ(tensor.dtype, entries[i].dtype);
    EXPECT_EQ(tensor.shape, entries[i].shape);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 64, 0u) << entries[i].name;
    EXPECT_TRUE(std::equal(tensor.data, tensor.data + tensor.n_bytes(), bytes.data() + offsets[i]));
  }
  EXPECT_EQ(checkpoint.find("tied")->data, checkpoint.find("a.weight")->data);
  EXPECT_NO_THROW(verify_torch_records(path));
}

TEST(TorchWriter, NoticesBytesThatAreMissingOrTooMany) {
  TempFolder folder;
  const std::string path = folder.path("m.pth");
  const std::vector<std::byte> bytes = counted(16, 0);
  TorchWriter writer(path, {{"a", DType::kF32, {3}}});
  writer.write(std::span(bytes).first(8));
  EXPECT_THROW(writer.commit(), ArgumentError);
  EXPECT_THROW(writer.write(std::span(bytes).first(8)), ArgumentError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TorchWriter, RefusesWhatPyTorchCannotHold) {
  TempFolder folder;
  const std::string path = folder.path("m.pth");
  const auto write = [&](std::vector<TorchEntry> entries) {
    TorchWriter(path, std::move(entries));
  };
  EXPECT_THROW(write({{"q", DType::kQ8_0, {32}}}), UnsupportedError);
  EXPECT_THROW(write({{"", DType::kF32, {1}}}), ArgumentError);
  EXPECT_THROW(write({{"a", DType::kF32, {1}}, {"a", DType::kF32, {1}}}), ArgumentError);
  EXPECT_THROW(write({{"a", DType::kF32, {1}, 0}}), ArgumentError);
  EXPECT_THROW(write({{"a", DType::kF32, {2}}, {"b", DType::kF32, {1}, 0}}), ArgumentError);
  EXPECT_THROW(write({{"a", DType::kF32, {1}}, {"b", DType::kF16, {1}, 0}}), ArgumentError);
}

TEST(TorchReader, ReadsACheckpointOfATrainingScript) {
  const std::string path = testing::shared_data_path("models/llama2xs/llama2xs_ckpt.pt");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const Checkpoint checkpoint = open_torch(path);
  EXPECT_EQ(checkpoint.tensors.size(), 48u);
  EXPECT_TRUE(checkpoint.derived.empty());
  EXPECT_EQ(checkpoint.find("tok_embeddings.weight")->data, checkpoint.find("output.weight")->data);
  EXPECT_EQ(checkpoint.metadata.integer("state.model_args.n_kv_heads"), 4);
  EXPECT_EQ(checkpoint.metadata.string("state.config.dtype"), "float16");
  EXPECT_EQ(checkpoint.metadata.number("state.config.learning_rate"), 0.1);
  EXPECT_EQ(checkpoint.metadata.boolean("state.config.compile"), false);
  EXPECT_EQ(checkpoint.unused_tensors,
            (std::vector<std::string>{"best_val_loss", "optimizer.* (141 tensors)"}));
  EXPECT_NO_THROW(verify_torch_records(path));
}

TEST(TorchReader, ReadsAVocabularyOfCharacters) {
  const std::string path =
      testing::shared_data_path("models/makemore-induction/slm4096_char_ckpt.pt");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const Checkpoint checkpoint = open_torch(path);
  const auto* itos = checkpoint.metadata.strings("state.itos");
  ASSERT_NE(itos, nullptr);
  ASSERT_EQ(itos->size(), 54u);
  EXPECT_EQ(checkpoint.metadata.integer("state.stoi." + (*itos)[53]), 53);
  EXPECT_EQ(checkpoint.metadata.integer("state.n_params"), 211712);
}

}  // namespace
}  // namespace limpid
