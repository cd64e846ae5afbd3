#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/gguf_builder.h"
#include "checkpoint/llama2c_builder.h"
#include "checkpoint/safetensors_builder.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

template <typename ErrorType>
void expect_refused(const std::string& path, const char* text) {
  expect_error<ErrorType>([&] { open_checkpoint(path); }, {text, path});
}

TEST(Checkpoint, OwnsTheTensorsThatAreAdded) {
  const std::vector<float> values = {1, 2};
  Checkpoint checkpoint;
  checkpoint.add("b", Tensor(DType::kF32, Shape{3}));
  checkpoint.add("a", Tensor(DType::kF32, Shape{1}));
  checkpoint.add("b", Tensor::of(Shape{2}, values));  // instead of the first one
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"b", "a"}));
  Tensor storage;
  EXPECT_EQ(checkpoint.read("b", storage).f32()[1], 2);
  EXPECT_EQ(checkpoint.find("b")->shape, Shape{2});
}

TEST(OpenCheckpoint, KnowsGgufByItsMagic) {
  TempFolder folder;
  const std::string path = folder.write("no-extension", serialize(gguf_test::small_sketch()));
  const Checkpoint checkpoint = open_checkpoint(path);
  EXPECT_EQ(checkpoint.path, path);
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"plain", "half", "quantised"}));
  EXPECT_EQ(checkpoint.find("absent"), nullptr);
}

TEST(OpenCheckpoint, AMissingFileIsAResourceError) {
  expect_refused<ResourceError>("/nonexistent/model.gguf", "No such file");
}

TEST(OpenCheckpoint, AFolderIsNamedWithWhatIsInIt) {
  TempFolder folder;
  folder.write("weights.h5", "x");
  folder.write("tokenizer.json", "{}");
  expect_refused<UnsupportedError>(
      folder.folder(),
      "is a folder without config.json, consolidated.00.pth or ckpt.pt (it has tokenizer.json, "
      "weights.h5)");
}

TEST(OpenCheckpoint, AnEmptyFileIsAFormatError) {
  TempFolder folder;
  expect_refused<FormatError>(folder.write("empty.gguf", ""), "empty");
}

TEST(OpenCheckpoint, UnknownContentIsShown) {
  TempFolder folder;
  expect_refused<FormatError>(folder.write("x.gguf", "\x01\x02\xff\xfe and more"), "01 02 ff fe");
  expect_refused<FormatError>(folder.write("y.gguf", "GGU"), "47 47 55");
}

TEST(OpenCheckpoint, TextIsQuoted) {
  TempFolder folder;
  expect_refused<UnsupportedError>(folder.write("x.gguf", "Invalid username.\nSecond line"),
                                   "text that begins with 'Invalid username.'");
  expect_refused<UnsupportedError>(folder.write("y.gguf", std::string(100, 'y')),
                                   ("'" + std::string(40, 'y') + "…'").c_str());
  expect_refused<UnsupportedError>(folder.write("config.json", "{}"), "name its folder");
}

TEST(OpenCheckpoint, OtherFormatsAreRefusedByName) {
  TempFolder folder;
  expect_refused<UnsupportedError>(folder.write("m.pt", "\x80\x02 and more bytes of a pickle"),
                                   "PyTorch before 1.6");
  expect_refused<UnsupportedError>(
      folder.write("m.tar.pt", "storages" + std::string(249, '\0') + "ustar and more"),
      "PyTorch before 1.6");
  expect_refused<UnsupportedError>(folder.write("m.bin", "tjgg and more bytes of old ggml file"),
                                   "GGJT");
  expect_refused<UnsupportedError>(
      folder.write("lfs", "version https://git-lfs.github.com/spec/v1\noid"), "git lfs");
  expect_refused<UnsupportedError>(folder.write("html", "<!DOCTYPE html><html>404 not found"),
                                   "web page");
  expect_refused<UnsupportedError>(folder.write("upper", "\r\n <HTML><head>"), "web page");
  expect_refused<UnsupportedError>(folder.write("gz", "\x1f\x8b\x08 and more"), "gunzip");
}

TEST(OpenCheckpoint, ATruncatedDownloadSaysHowMuchIsThere) {
  TempFolder folder;
  std::string bytes = serialize(gguf_test::small_sketch());
  const std::string total = std::to_string(bytes.size());
  bytes.pop_back();
  const std::string path = folder.write("cut.gguf", bytes);
  expect_refused<FormatError>(path, ("ends at byte " + total).c_str());
  expect_refused<FormatError>(path, ("has " + std::to_string(bytes.size()) + " bytes").c_str());
}

TEST(OpenCheckpoint, DevicesAndPipesAreRefused) {
  TempFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_refused<ResourceError>(fifo, "not a regular file");
  expect_refused<ResourceError>("/dev/zero", "not a regular file");
}

TEST(OpenCheckpoint, AFileThatShrinksIsNoticed) {
  TempFolder folder;
  const std::string path = folder.write("shrinks", std::string(8192, 'x'));
  const auto file = MappedFile::open(path);
  EXPECT_NO_THROW(check_not_shrunk(*file));
  std::filesystem::resize_file(path, 100);
  EXPECT_THROW(check_not_shrunk(*file), ResourceError);
}

TEST(OpenCheckpoint, ViewsOutliveTheirDirectoryEntry) {
  TempFolder folder;
  const std::string path = folder.write("m.gguf", serialize(gguf_test::small_sketch()));
  const Checkpoint checkpoint = open_checkpoint(path);
  std::filesystem::remove(path);
  EXPECT_EQ(checkpoint.find("plain")->f32()[5], 5.0f);
}

TEST(OpenCheckpoint, SixHundredAndFortyIsNoPickle) {
  TempFolder folder;
  llama2c_test::Sizes sizes;
  sizes.dim = 640;
  EXPECT_EQ(open_checkpoint(folder.write("m.bin", llama2c_test::legacy_file(sizes, true))).format,
            "llama2c legacy");
  std::string header = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize(640, ' ');
  const std::string file = folder.write("t.safetensors", safetensors_test::file_of(header, 8));
  EXPECT_EQ(open_checkpoint(file).format, "safetensors");
}

}  // namespace
}  // namespace limpid
