#include "train/microgpt/model_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "checkpoint/safetensors_writer.h"
#include "limpid/error.hpp"
#include "train/microgpt_golden.h"

namespace limpid::microgpt {
namespace {

class ModelFile : public ::testing::Test {
 protected:
  ModelFile()
      : path_(std::filesystem::temp_directory_path() /
              ("microgpt-" + std::to_string(getpid()) + ".safetensors")) {
    model_.shape.n_embd = 6;
    model_.shape.n_layer = 2;
    model_.shape.n_head = 3;
    model_.shape.block_size = 5;
    model_.alphabet = Alphabet(U".aé\U0001F600");
    model_.shape.vocab_size = model_.alphabet.vocab_size();
    PythonRandom random(3);
    model_.weights = initial_weights(Matrices(model_.shape), 0.08, RandomStyle::kPython, random);
  }
  ~ModelFile() override { std::filesystem::remove(path_); }

  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }
  // The saved file with `from` in its header replaced by as long a `to`.
  void damage(const std::string& from, const std::string& to) const {
    ASSERT_EQ(from.size(), to.size());
    std::string bytes = read_file(path_);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(bytes.replace(at, from.size(), to));
  }
  void expect_refused(const std::string& field) const {
    try {
      load_model(path_);
      ADD_FAILURE() << "was read";
    } catch (const FormatError& error) {
      EXPECT_EQ(error.field(), field) << error.what();
    }
  }

  std::string path_;
  SavedModel model_;
};

TEST_F(ModelFile, KeepsF64ToTheBit) {
  save_model(path_, model_, DType::kF64);
  const SavedModel loaded = load_model(path_);
  EXPECT_EQ(loaded.weights, model_.weights);
  EXPECT_EQ(loaded.alphabet.characters(), model_.alphabet.characters());
  EXPECT_EQ(loaded.shape.n_embd, 6);
  EXPECT_EQ(loaded.shape.n_layer, 2);
  EXPECT_EQ(loaded.shape.n_head, 3);
  EXPECT_EQ(loaded.shape.block_size, 5);
  EXPECT_EQ(loaded.shape.vocab_size, 5);
}

TEST_F(ModelFile, RoundsToF32) {
  save_model(path_, model_, DType::kF32);
  const SavedModel loaded = load_model(path_);
  ASSERT_EQ(loaded.weights.size(), model_.weights.size());
  for (size_t i = 0; i < loaded.weights.size(); ++i) {
    EXPECT_EQ(loaded.weights[i], static_cast<float>(model_.weights[i]));
  }
}

TEST_F(ModelFile, RefusesWhatIsDamaged) {
  save_model(path_, model_, DType::kF32);
  const std::string whole = read_file(path_);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{100}}) {
    write(whole.substr(0, size));
    EXPECT_THROW(load_model(path_), Error) << size;
  }
  write(whole.substr(0, whole.size() - 1));
  expect_refused("tensor 'layer1.mlp_fc2'.data_offsets");
  std::string huge = whole;
  std::memset(huge.data(), 0xff, 8);
  write(huge);
  expect_refused("header.length");
}

TEST_F(ModelFile, RefusesAHeaderThatContradictsItself) {
  const std::vector<std::array<std::string, 3>> cases{
      {R"("n_head":"3")", R"("n_head":"4")", "__metadata__"},
      {R"("n_head":"3")", R"("n_head":"x")", "__metadata__.n_head"},
      {R"("n_layer":"2")", R"("n_layer":"3")", "layer2.attn_wq"},
      {R"("shape":[5,6])", R"("shape":[6,5])", "wte.shape"},
      {R"("dtype":"F32")", R"("dtype":"I32")", "wte.dtype"},
      {R"("data_offsets":[0,)", R"("data_offsets":[4,)", "tensor 'wte'.data_offsets"},
      {R"(limpid.microgpt)", R"(limpid.macrogpt)", "__metadata__.format"},
      {R"("characters":".a)", R"("characters":"a.)", "__metadata__.characters"},
  };
  for (const auto& [from, to, field] : cases) {
    save_model(path_, model_, DType::kF32);
    damage(from, to);
    expect_refused(field);
  }
}

TEST(Data, HasNoCharacterThatAModelFileCannotHold) {
  EXPECT_THROW(Dataset::parse({"anna\nb\0b\n", 9}, "data"), FormatError);
  EXPECT_EQ(Dataset::parse("anna\n\x01\n", "data").documents().size(), 2U);
}

TEST_F(ModelFile, NamesTheFileOfAModelThatIsTooLarge) {
  write_safetensors(path_,
                    {{"format", "limpid.microgpt"},
                     {"characters", "ab"},
                     {"n_embd", "65536"},
                     {"n_layer", "1024"},
                     {"n_head", "1"},
                     {"block_size", "8"}},
                    {});
  expect_refused("__metadata__");
}

}  // namespace
}  // namespace limpid::microgpt
