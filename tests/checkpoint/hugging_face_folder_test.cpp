// Folders as Hugging Face makes them; no name and no link leads out of one (class 18).
#include "checkpoint/hugging_face_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

namespace fs = std::filesystem;

void write_tensors(const std::string& path, const std::vector<std::string>& names) {
  const Tensor tensor = Tensor::of({2}, std::array{1.0F, 2.0F});
  std::vector<NamedTensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) tensors.push_back({name, tensor});
  write_safetensors(path, {}, tensors);
}

// config.json and two shards, with an index that names them so.
void fill(const TempFolder& folder, const std::string& index) {
  folder.write("config.json", R"({"model_type": "llama", "rope_scaling": {"factor": 8.5},
      "layer_types": ["a", "b"], "eos_token_id": [1, 2], "head_dim": null, "x": [1, 2.5], "y": [{}],
      "use_cache": true})");
  write_tensors(folder.path("s1.safetensors"), {"a", "b"});
  write_tensors(folder.path("s2.safetensors"), {"c"});
  if (!index.empty()) folder.write("model.safetensors.index.json", index);
}

constexpr const char* kIndex =
    R"({"metadata": {"total_size": 24},
        "weight_map": {"a": "s1.safetensors", "b": "s1.safetensors", "c": "s2.safetensors"}})";

template <typename ErrorType>
void expect_refused(const TempFolder& folder, const std::vector<std::string_view>& words) {
  expect_error<ErrorType>([&] { open_checkpoint(folder.folder()); }, words);
}

TEST(HuggingFaceFolder, ConfigurationShardsAndAttachments) {
  const TempFolder folder;
  fill(folder, kIndex);
  folder.write("tokenizer.json", "{}");
  folder.write("merges.txt", "a b");
  folder.write("notes.txt", "not ours");
  const Checkpoint checkpoint = open_checkpoint(folder.folder());
  EXPECT_EQ(checkpoint.naming, Naming::kHuggingFace);
  EXPECT_EQ(checkpoint.row_order, RowOrder::kHalfSplit);
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(checkpoint.find("c")->f32()[1], 2.0F);
  EXPECT_EQ(checkpoint.files.size(), 2u);
  EXPECT_EQ(checkpoint.metadata.number("config.rope_scaling.factor"), 8.5);
  EXPECT_EQ(*checkpoint.metadata.strings("config.layer_types"),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*checkpoint.metadata.integers("config.eos_token_id"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*checkpoint.metadata.numbers("config.x"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(*checkpoint.metadata.strings("config.(null)"), std::vector<std::string>{"head_dim"});
  EXPECT_EQ(checkpoint.metadata.boolean("config.use_cache"), true);
  EXPECT_TRUE(checkpoint.attachments.contains("tokenizer.json"));
  EXPECT_TRUE(checkpoint.attachments.contains("merges.txt"));
  EXPECT_FALSE(checkpoint.attachments.contains("notes.txt"));
}

TEST(HuggingFaceFolder, AFileInItStandsForTheFolder) {
  const TempFolder folder;
  fill(folder, "");
  EXPECT_EQ(open_checkpoint(folder.path("s1.safetensors")).tensors.size(), 2u);
  EXPECT_EQ(open_checkpoint(folder.path("s1.safetensors")).naming, Naming::kHuggingFace);
  folder.write("model.safetensors.index.json", kIndex);
  EXPECT_EQ(open_checkpoint(folder.path("s2.safetensors")).tensors.size(), 3u);
}

TEST(HuggingFaceFolder, OneFileComesBeforeAnIndex) {
  const TempFolder folder;
  fill(folder, kIndex);
  write_tensors(folder.path("model.safetensors"), {"z"});
  EXPECT_EQ(open_checkpoint(folder.folder()).tensor_order, std::vector<std::string>{"z"});
  EXPECT_EQ(open_checkpoint(folder.path("s2.safetensors")).tensors.size(), 3U);  // a named shard
}

TEST(HuggingFaceFolder, SaysWhatIsMissing) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  expect_refused<ResourceError>(folder, {"model.safetensors", "index", "download"});
  folder.write("pytorch_model.bin", "PK");
  expect_refused<UnsupportedError>(folder, {"pytorch_model.bin"});
  EXPECT_THROW(open_hugging_face_folder(folder.path("nowhere")), ResourceError);
  const TempFolder empty;
  EXPECT_THROW(open_hugging_face_folder(empty.folder()), ResourceError);
}

TEST(HuggingFaceFolder, OtherFrameworksAreRefused) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  const Tensor tensor(DType::kF32, {1});
  write_safetensors(folder.path("model.safetensors"), {{"format", "flax"}},
                    std::array{NamedTensor{"a", tensor}});
  expect_refused<UnsupportedError>(folder, {"flax"});
}

std::string index_of(const std::string& name) {
  return R"({"weight_map": {"a": ")" + name +
         R"(", "b": "s1.safetensors", "c": "s2.safetensors"}})";
}

TEST(HuggingFaceIndex, NamesThatLeadOutAreRefused) {
  for (const char* name : {"/etc/passwd", "../s1.safetensors", "..", ".", "", "sub/s1.safetensors",
                           "sub\\\\s1.safetensors", "s1.safetensors\\u0000", "\\u0000"}) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    fill(folder, index_of(name));
    expect_refused<FormatError>(folder, {"file name"});
  }
}

TEST(HuggingFaceIndex, WhatContradictsTheShardsIsRefused) {
  struct Bad {
    const char* index;
    std::vector<std::string_view> words;
  };
  const std::vector<Bad> all = {
      {"[]", {"not an object"}},
      {"{}", {"weight_map", "missing"}},
      {R"({"weight_map": {}})", {"does not name any tensor"}},
      {R"({"weight_map": []})", {"weight_map", "not an object"}},
      {R"({"weight_map": {"a": 1}})", {"weight_map.a", "not a string"}},
      {R"({"weight_map": {"a": "s1.safetensors", "a": "s2.safetensors"}})", {"a", "twice"}},
      {R"({"weight_map": {"a": "s1.safetensors", "c": "s2.safetensors"}})",
       {"weight_map.b", "s1.safetensors"}},
      {R"({"weight_map": {"a": "s1.safetensors", "b": "s2.safetensors", "c": "s2.safetensors"}})",
       {"weight_map.b", "s1.safetensors"}},
      {R"({"weight_map": {"a": "s1.safetensors", "b": "s1.safetensors", "c": "s2.safetensors",
           "d": "s2.safetensors"}})",
       {"weight_map.d", "does not hold"}},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.index);
    const TempFolder folder;
    fill(folder, bad.index);
    expect_refused<FormatError>(folder, bad.words);
  }
}

TEST(HuggingFaceIndex, ATensorInTwoShardsIsRefused) {
  const TempFolder folder;
  fill(folder, kIndex);
  write_tensors(folder.path("s2.safetensors"), {"c", "a"});
  expect_refused<FormatError>(folder, {"tensor 'a'", "another file"});
}

TEST(HuggingFaceIndex, AMissingShardIsNamed) {
  const TempFolder folder;
  fill(folder, kIndex);
  fs::remove(folder.path("s2.safetensors"));
  expect_refused<ResourceError>(folder, {"s2.safetensors is missing", "download it too"});
}

// snapshots/REVISION/x -> ../../blobs/HASH, as the cache of huggingface_hub has it.
class Cache {
 public:
  Cache() {
    for (const char* sub : {"blobs", "snapshots/abc", "outside"})
      fs::create_directories(folder_.path("hub/" + std::string(sub)));
    fs::create_directories(folder_.path("elsewhere"));
    folder_.write("hub/blobs/1", "{}");
    write_tensors(folder_.path("hub/blobs/2"), {"a"});
    link("../../blobs/1", "config.json");
    link("../../blobs/2", "model.safetensors");
  }
  void link(const std::string& target, const std::string& name) const {
    const std::string path = folder_.path("hub/snapshots/abc/" + name);
    fs::remove(path);
    fs::create_symlink(target, path);
  }
  std::string snapshot() const { return folder_.path("hub/snapshots/abc"); }
  const TempFolder& files() const { return folder_; }

 private:
  TempFolder folder_;
};

TEST(HuggingFaceLinks, OfTheCacheAreFollowed) {
  const Cache cache;
  EXPECT_EQ(open_checkpoint(cache.snapshot()).tensors.size(), 1u);
  EXPECT_EQ(open_checkpoint(cache.snapshot() + "/model.safetensors").tensors.size(), 1u);
  fs::create_directories(cache.snapshot() + "/1_Pooling");
  cache.link("../../../blobs/1", "1_Pooling/config.json");
  EXPECT_NO_THROW(open_checkpoint(cache.snapshot()));
  cache.link("../../../../elsewhere/w", "1_Pooling/config.json");
  cache.files().write("elsewhere/w", "{}");
  EXPECT_THROW(open_checkpoint(cache.snapshot()), FormatError);
  fs::remove_all(cache.snapshot() + "/1_Pooling");
  cache.files().write("elsewhere/config.json", "{}");
  cache.link("../../../elsewhere", "1_Pooling");
  EXPECT_THROW(open_checkpoint(cache.snapshot()), FormatError);
  fs::remove(cache.snapshot() + "/1_Pooling");
  fs::create_directory_symlink(cache.snapshot(), cache.files().path("shortcut"));
  EXPECT_EQ(open_checkpoint(cache.files().path("shortcut")).tensors.size(), 1u);
}

TEST(HuggingFaceLinks, OutOfTheFolderAreRefused) {
  for (const char* target : {"../../../elsewhere/w", "../../outside/w", "/etc/passwd"}) {
    SCOPED_TRACE(target);
    const Cache cache;
    write_tensors(cache.files().path("elsewhere/w"), {"a"});
    write_tensors(cache.files().path("hub/outside/w"), {"a"});
    cache.link(target, "model.safetensors");
    EXPECT_THROW(open_checkpoint(cache.snapshot()), FormatError);
    cache.link("../../blobs/2", "model.safetensors");
    cache.link(target, "tokenizer.json");
    EXPECT_THROW(open_checkpoint(cache.snapshot()), FormatError);
  }
  // Without snapshots above it, a folder has no blobs beside it either.
  const TempFolder plain;
  fs::create_directories(plain.path("model"));
  fs::create_directories(plain.path("blobs"));
  plain.write("model/config.json", "{}");
  write_tensors(plain.path("blobs/2"), {"a"});
  fs::create_symlink("../blobs/2", plain.path("model/model.safetensors"));
  EXPECT_THROW(open_checkpoint(plain.path("model")), FormatError);
  // A link within the folder is fine, one that leads nowhere is named.
  fs::remove(plain.path("model/model.safetensors"));
  write_tensors(plain.path("model/w"), {"a"});
  fs::create_symlink("w", plain.path("model/model.safetensors"));
  EXPECT_NO_THROW(open_checkpoint(plain.path("model")));
  fs::remove(plain.path("model/w"));
  EXPECT_THROW(open_checkpoint(plain.path("model")), ResourceError);
}

TEST(HuggingFaceLinks, PipesAreRefused) {
  const Cache cache;
  fs::remove(cache.snapshot() + "/config.json");
  ASSERT_EQ(::mkfifo((cache.snapshot() + "/config.json").c_str(), 0600), 0);
  EXPECT_THROW(open_checkpoint(cache.snapshot()), ResourceError);
}

TEST(HuggingFaceConfig, MalformedJsonIsRefused) {
  struct Bad {
    const char* name;
    std::string text;
    const char* word;
  };
  const std::vector<Bad> all = {
      {"Empty", "", "JSON"},
      {"Array", "[1]", "not an object"},
      {"Cut", R"({"a": 1)", "JSON"},
      {"Deep", R"({"a": )" + std::string(70, '[') + std::string(70, ']') + "}", "deeper than 64"},
      {"DeepObjects",
       [] {
         std::string text;
         for (int i = 0; i < 3000; ++i) text += R"({"a":)";
         return text + "1" + std::string(3000, '}');
       }(),
       "deeper than 64"},
      {"Twice", R"({"a": 1, "a": 2})", "twice"},
      {"TwiceNested", R"({"a": {"b": 1, "b": 1}})", "a.b"},
      {"TwiceInArray", R"({"a": [{"b": 1, "b": 1}]})", "twice"},
      {"HugeReal", R"({"a": 1e400})", "JSON"},
      {"NaN", R"({"a": NaN})", "JSON"},
      {"Infinity", R"({"a": Infinity})", "JSON"},
      {"LoneSurrogate", R"({"a": "\ud83d"})", "JSON"},
      {"LoneLowSurrogate", R"({"a": "\ude00 x"})", ""},
      {"ControlCharacter", "{\"a\": \"\x01\"}", "JSON"},
      {"NotUtf8", "{\"a\": \"\xc3\x28\"}", "JSON"},
      {"Trailing", "{} {}", "JSON"},
      {"Comment", "{} // x", "JSON"},
      {"TooLarge", "{\"a\": \"" + std::string((16 << 20), 'x') + "\"}", "at most"},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.name);
    const TempFolder folder;
    fill(folder, kIndex);
    folder.write("config.json", bad.text);
    expect_refused<FormatError>(folder, {"config.json", bad.word});
  }
}

TEST(HuggingFaceIndex, AHundredMegabytesOfKeysAreRefusedUnread) {
  const TempFolder folder;
  fill(folder, kIndex);
  fs::resize_file(folder.path("model.safetensors.index.json"), 100'000'001);  // a hole
  expect_refused<FormatError>(folder, {"index.json", "at most 100000000"});
}

TEST(HuggingFaceFolder, EveryFileOfATokenizerIsAttached) {
  const TempFolder folder;
  fill(folder, kIndex);
  const std::array names = {"encoder.json", "vocab.bpe", "cl100k_base.tiktoken"};
  for (const char* name : names) folder.write(name, "x");
  const Checkpoint checkpoint = open_checkpoint(folder.folder());
  for (const char* name : names) EXPECT_TRUE(checkpoint.attachments.contains(name)) << name;
}

}  // namespace
}  // namespace limpid
