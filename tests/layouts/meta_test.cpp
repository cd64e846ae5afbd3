// Meta's folders and state dictionaries: the same logits as the same weights in GGUF's names, and
// refusals of what would change them.
#include "layouts/meta.h"

#include <gtest/gtest.h>

#include <map>

#include "checkpoint/temp_file.h"
#include "checkpoint/torch_writer.h"
#include "executor/executors.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/model.h"
#include "model/model_files.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"
#include "tokenizer/chat_template.h"

namespace limpid {
namespace {

using testing::run_in_chunks;
using testing::some_tokens;
using testing::tiny_checkpoint;
using testing::TinyShape;

constexpr const char* kParams = R"({"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2,
  "vocab_size": -1, "multiple_of": 32, "ffn_dim_multiplier": 0.5, "norm_eps": 1e-05,
  "rope_theta": 10000.0, "max_seq_len": 1024, "max_batch_size": 32})";

struct Part {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> bytes_of(const TensorView& view) {
  return {view.data, view.data + view.n_bytes()};
}

// Shard `i` of `n` of a matrix: rows, or columns.
Part cut(const std::string& name, const TensorView& whole, bool columns, int64_t i, int64_t n) {
  const int64_t rows = whole.shape[0], cols = whole.shape[1];
  if (!columns) {
    const TensorView part{whole.dtype, {rows / n, cols}, whole.row(i * rows / n)};
    return {name, part.dtype, part.shape, bytes_of(part)};
  }
  const uint64_t part_bytes = whole.row_bytes() / static_cast<uint64_t>(n);
  Part part{name, whole.dtype, {rows, cols / n}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte* begin = whole.row(row) + static_cast<uint64_t>(i) * part_bytes;
    part.bytes.insert(part.bytes.end(), begin, begin + part_bytes);
  }
  return part;
}

void write_shard(const std::string& path, const std::vector<Part>& parts) {
  std::vector<TorchEntry> entries;
  entries.reserve(parts.size());
  for (const Part& part : parts) entries.push_back({part.name, part.dtype, part.shape});
  TorchWriter writer(path, std::move(entries));
  for (const Part& part : parts) writer.write(part.bytes);
  writer.commit();
}

enum class Embedding { kRows, kColumns };  // how shards cut it: Llama 3, Llama 2

std::vector<Part> parts_of(const Checkpoint& tiny, int64_t i, int64_t n,
                           Embedding embedding = Embedding::kRows) {
  std::vector<Part> parts;
  for (const std::string& ours : tiny.tensor_order) {
    const std::string name = *their_name(kMetaNames, ours);
    const TensorView& whole = *tiny.find(ours);
    if (n == 1 || whole.shape.rank() == 1) {
      parts.push_back({name, whole.dtype, whole.shape, bytes_of(whole)});
      continue;
    }
    const bool columns = ours.ends_with("attn_output.weight") ||
                         ours.ends_with("ffn_down.weight") ||
                         (ours == "token_embd.weight" && embedding == Embedding::kColumns);
    parts.push_back(cut(name, whole, columns, i, n));
  }
  // The table of angles that Llama 1 and 2 keep in every shard.
  parts.push_back({"rope.freqs", DType::kF32, {8}, std::vector<std::byte>(32)});
  return parts;
}

void write_folder(const TempFolder& folder, const Checkpoint& tiny, int64_t n,
                  Embedding embedding = Embedding::kRows) {
  folder.write("params.json", kParams);
  for (int64_t i = 0; i < n; ++i)
    write_shard(folder.path(fmt::format("consolidated.{:02}.pth", i)),
                parts_of(tiny, i, n, embedding));
}

std::vector<float> logits_of(std::shared_ptr<const Checkpoint> checkpoint,
                             const char* executor = "reference") {
  const auto model =
      Model::load(std::move(checkpoint), make_executor(executor, {.n_threads = 1, .isa = ""}));
  return run_in_chunks(*model, some_tokens(20, 50), 7);
}

std::vector<float> logits_of(const std::string& path, const char* executor = "reference") {
  return logits_of(std::make_shared<const Checkpoint>(open_model_files({path, ""})), executor);
}

class MetaShards : public ::testing::TestWithParam<DType> {};

TEST_P(MetaShards, GiveTheLogitsOfTheWholeToTheBit) {
  for (const bool tied : {true, false}) {
    TinyShape shape;
    shape.dtype = GetParam();
    shape.tied = tied;
    const auto tiny = tiny_checkpoint(shape);
    for (const char* executor : {"reference", "cpu"}) {
      const std::vector<float> expected = logits_of(tiny, executor);
      for (const int64_t n : {1, 2}) {
        for (const Embedding embedding : {Embedding::kRows, Embedding::kColumns}) {
          TempFolder folder;
          write_folder(folder, *tiny, n, embedding);
          EXPECT_EQ(logits_of(folder.folder(), executor), expected) << n << " shards, " << executor;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, MetaShards,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

TEST(MetaFolder, OneShardIsMappedAndTwoAreJoinedWhenRead) {
  const auto tiny = tiny_checkpoint();
  TempFolder one, two;
  write_folder(one, *tiny, 1);
  write_folder(two, *tiny, 2);
  const Checkpoint whole = open_model_files({one.folder(), ""});
  EXPECT_TRUE(whole.derived.empty());
  EXPECT_EQ(whole.unused_tensors, (std::vector<std::string>{"rope.freqs"}));
  EXPECT_EQ(whole.metadata.integer("llama.context_length"), 1024);
  EXPECT_EQ(whole.row_order, RowOrder::kInterleavedPairs);
  const Checkpoint joined = open_model_files({two.folder(), ""});
  EXPECT_EQ(joined.derived.at("blk.1.attn_q.weight").how, "rows of 2 files joined");
  EXPECT_EQ(joined.derived.at("blk.1.attn_output.weight").how, "columns of 2 files joined");
  EXPECT_NE(joined.find("blk.1.attn_norm.weight")->data, nullptr);
  // Rows are read where they lie, and only columns are copied.
  EXPECT_EQ(joined.derived.at("blk.1.attn_q.weight").row_parts.size(), 2U);
  EXPECT_TRUE(joined.derived.at("blk.1.attn_output.weight").row_parts.empty());
  for (const std::string& name : whole.tensor_order) {
    Tensor storage;
    EXPECT_EQ(bytes_of(joined.read(name, storage)), bytes_of(*whole.find(name))) << name;
  }
}

TEST(MetaFolder, AShardStandsForItsFolder) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 2);
  EXPECT_EQ(logits_of(folder.path("consolidated.01.pth")), logits_of(tiny));
}

template <typename ErrorType>
void expect_refused(const std::string& path, const char* text) {
  expect_error<ErrorType>([&] { read_spec(open_model_files({path, ""})); }, {text});
}

TEST(MetaFolder, ShardsThatDoNotBelongTogetherAreRefused) {
  const auto tiny = tiny_checkpoint();
  const auto spoilt = [&](const std::function<void(std::vector<Part>&)>& spoil, const char* text) {
    TempFolder folder;
    write_folder(folder, *tiny, 2);
    std::vector<Part> parts = parts_of(*tiny, 1, 2);
    spoil(parts);
    write_shard(folder.path("consolidated.01.pth"), parts);
    expect_refused<FormatError>(folder.folder(), text);
  };
  spoilt([](auto& parts) { parts.pop_back(); }, "rope.freqs: is missing");
  spoilt(
      [](auto& parts) {
        parts.push_back({"more", DType::kF32, {1}, std::vector<std::byte>(4)});
      },
      "more: is not in");
  spoilt([](auto& parts) { parts[1].bytes[2] ^= std::byte{1}; }, "differs from the one in");
  spoilt([](auto& parts) { parts[2].shape = {64, 32}; }, "cannot be joined");
  spoilt([](auto& parts) { parts[2].dtype = DType::kI32; }, "cannot be joined");
}

TEST(MetaFolder, AMissingShardIsAnError) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 2);
  std::filesystem::remove(folder.path("consolidated.01.pth"));
  expect_refused<FormatError>(folder.folder(),
                              "layers.0.feed_forward.w1.weight has 48 rows, and the parameters ask "
                              "for 96; is a consolidated.NN.pth missing?");
}

TEST(MetaFolder, AGapBetweenShardsIsNamed) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 2);
  std::filesystem::rename(folder.path("consolidated.01.pth"), folder.path("consolidated.02.pth"));
  expect_refused<ResourceError>(folder.folder(),
                                "consolidated.01.pth is missing, but consolidated.02.pth is there");
}

TEST(MetaFolder, ParametersMayBeGiven) {
  const auto tiny = tiny_checkpoint();
  for (const Embedding embedding : {Embedding::kRows, Embedding::kColumns}) {
    TempFolder folder;
    write_folder(folder, *tiny, 2, embedding);
    const auto open = [&] {
      return std::make_shared<const Checkpoint>(
          open_model_files({.path = folder.folder(), .config = kParams}));
    };
    EXPECT_THROW(open(), ArgumentError);  // the folder has its own
    std::filesystem::remove(folder.path("params.json"));
    EXPECT_EQ(logits_of(open()), logits_of(tiny));
    const std::string given =
        folder.write("given.json", R"({"dim": 64, "n_layers": 0, "n_heads": 4})");
    expect_error<FormatError>([&] { open_model_files({.path = folder.folder(), .config = given}); },
                              {given + ": n_layers: is 0"});
  }
}

// torch.compile and DistributedDataParallel each put a prefix before the names.
TEST(MetaStateDict, NamesMayHavePrefixes) {
  const auto tiny = tiny_checkpoint();
  for (const std::string prefix : {"", "module.", "_orig_mod.module."}) {
    TempFolder folder;
    std::vector<Part> parts = parts_of(*tiny, 0, 1);
    for (Part& part : parts) part.name = prefix + part.name;
    const std::string path = folder.path("model.pth");
    write_shard(path, parts);
    EXPECT_EQ(logits_of(std::make_shared<const Checkpoint>(
                  open_model_files({.path = path, .config = kParams}))),
              logits_of(tiny))
        << prefix;
  }
}

TEST(MetaFolder, AMissingTensorIsAnError) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  folder.write("params.json", kParams);
  std::vector<Part> parts = parts_of(*tiny, 0, 1);
  std::erase_if(parts,
                [](const Part& part) { return part.name == "layers.1.attention.wv.weight"; });
  write_shard(folder.path("consolidated.00.pth"), parts);
  const auto checkpoint =
      std::make_shared<const Checkpoint>(open_model_files({folder.folder(), ""}));
  EXPECT_THROW(logits_of(checkpoint), FormatError);
}

// Each parameter that would change the result is read or refused by name.
TEST(MetaParams, ChangeTheResultOrAreRefused) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 1);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string params = kParams;
    params.replace(params.find(from), from.size(), to);
    folder.write("params.json", params);
  };
  const std::vector<float> expected = logits_of(folder.folder());
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"1e-05", "1e-02"},
                                          {"10000.0", "500000.0"},
                                          {"\"n_heads\": 4", "\"n_heads\": 2, \"head_dim\": 32"}}) {
    with(from, to);
    if (from == "\"n_heads\": 4") {
      EXPECT_ANY_THROW(logits_of(folder.folder())) << from;  // K and V have rows for heads of 16
    } else {
      EXPECT_NE(logits_of(folder.folder()), expected) << from;
    }
  }
  with("\"dim\"", "\"quantization_args\": {\"scheme\": \"int8\"}, \"dim\"");
  expect_refused<UnsupportedError>(folder.folder(),
                                   "params.json: unknown key quantization_args.scheme");
  with("\"dim\"", "\"moe_args\": 3, \"dim\"");
  expect_refused<UnsupportedError>(folder.folder(), "params.json: unknown key moe_args");
  with("\"dim\"", "\"sliding_window\": 16, \"dim\"");
  expect_refused<UnsupportedError>(folder.folder(), "sliding window of 16");
  with("\"vocab_size\": -1", "\"vocab_size\": 51");
  expect_refused<FormatError>(folder.folder(), "is 51, but token_embd.weight has 50 rows");
  with("\"multiple_of\": 32", "\"multiple_of\": 64");
  expect_refused<FormatError>(folder.folder(), "has 96 rows, and the parameters ask for 128");
  with("\"multiple_of\": 32", "\"hidden_dim\": 97");
  expect_refused<FormatError>(folder.folder(), "hidden_dim");
  with("\"ffn_dim_multiplier\": 0.5", "\"ffn_dim_multiplier\": 1e300");
  expect_refused<FormatError>(folder.folder(), "ffn_dim_multiplier: is 1e+300");
  with("\"n_layers\": 2", "\"n_layers\": 0");
  expect_refused<FormatError>(folder.folder(), "params.json: n_layers: is 0");
  with("\"norm_eps\": 1e-05", "\"norm_eps\": -1");
  expect_refused<FormatError>(folder.folder(), "params.json: norm_eps");
  with("\"dim\": 64, ", "");
  expect_refused<FormatError>(folder.folder(), "OpenOptions::config");
}

TEST(MetaParams, MayBeNestedAndMayBeAbsent) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 1);
  const std::vector<float> expected = logits_of(folder.folder());
  folder.write("params.json", std::string("{\"model\": ") + kParams + "}");
  EXPECT_EQ(logits_of(folder.folder()), expected);
  folder.write("params.json", R"({"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2,
    "hidden_dim": 96, "use_scaled_rope": null})");
  EXPECT_EQ(logits_of(folder.folder()), expected);
}

TEST(MetaParams, TellTheContextOfMetasReleases) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 1);
  const auto context = [&](const std::string& more) {
    folder.write("params.json", R"({"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2,
      "hidden_dim": 96)" + more + "}");
    return open_model_files({folder.folder(), ""}).metadata.integer("llama.context_length");
  };
  EXPECT_EQ(context(""), 4096);
  EXPECT_EQ(context(R"(, "norm_eps": 1e-06)"), 2048);
  EXPECT_EQ(context(R"(, "rope_theta": 500000.0)"), 8192);
  EXPECT_EQ(context(R"(, "rope_theta": 1000000.0)"), 16384);
  EXPECT_EQ(context(R"(, "rope_theta": 500000.0, "use_scaled_rope": true)"), 131072);
}

TEST(MetaParams, ScaledRotationIsTheReleasesOwn) {
  const auto tiny = tiny_checkpoint();
  TempFolder folder;
  write_folder(folder, *tiny, 1);
  const DecoderSpec plain = read_spec(open_model_files({folder.folder(), ""}));
  std::string params = kParams;
  params.insert(1, "\"use_scaled_rope\": true, ");
  folder.write("params.json", params);
  const DecoderSpec scaled = read_spec(open_model_files({folder.folder(), ""}));
  // head_dim 16, base 10000: wavelengths 2 pi 10000^(i / 8). Those below 8192 / 4 stay, those above
  // 8192 are 8 times as long, the one between (i = 6: 6283) is in between.
  const auto& a = plain.rope.inverse_frequencies;
  const auto& b = scaled.rope.inverse_frequencies;
  for (const size_t i : {0, 1, 2, 3, 4, 5}) EXPECT_EQ(a[i], b[i]) << i;
  const double smooth = (8192 / 6283.185307179586 - 1.0) / 3.0;
  EXPECT_NEAR(b[6] / a[6], (1 - smooth) / 8 + smooth, 1e-6);
  EXPECT_NEAR(b[7] / a[7], 1.0 / 8, 1e-7);
}

TEST(MetaChat, IsTheFormatOfLlama3WhereTheVocabularyIs) {
  TinyShape shape;
  shape.n_layers = 1;
  shape.d_model = 2;
  shape.n_heads = shape.n_kv_heads = 1;
  shape.head_dim = 2;
  shape.d_ff = 32;
  shape.vocab_size = 128256;
  const auto tiny = tiny_checkpoint(shape);
  TempFolder folder;
  write_folder(folder, *tiny, 1);
  folder.write("params.json", R"({"dim": 2, "n_layers": 1, "n_heads": 1, "hidden_dim": 32})");
  const Checkpoint checkpoint = open_model_files({folder.folder(), ""});
  const auto source = checkpoint.metadata.string("tokenizer.chat_template");
  ASSERT_TRUE(source.has_value());
  TemplateInputs inputs;
  inputs.messages = {{{"role", "system"}, {"content", "Be brief."}},
                     {{"role", "user"}, {"content", " Hi \n"}}};
  EXPECT_EQ(ChatTemplate(std::string(*source)).render(inputs),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// llama-models and llama: dim, multiple_of, ffn_dim_multiplier of the releases, and the rows of w1.
TEST(MetaParams, HiddenSizesAreThoseOfTheReleases) {
  EXPECT_EQ(meta_hidden_size(4096, 256, 1.0), 11008);    // Llama 7B, Llama 2 7B
  EXPECT_EQ(meta_hidden_size(5120, 256, 1.0), 13824);    // 13B
  EXPECT_EQ(meta_hidden_size(8192, 4096, 1.3), 28672);   // Llama 2 70B, Llama 3 70B
  EXPECT_EQ(meta_hidden_size(4096, 1024, 1.3), 14336);   // Llama 3 8B
  EXPECT_EQ(meta_hidden_size(2048, 256, 1.5), 8192);     // Llama 3.2 1B
  EXPECT_EQ(meta_hidden_size(3072, 256, 1.0), 8192);     // Llama 3.2 3B
  EXPECT_EQ(meta_hidden_size(16384, 4096, 1.2), 53248);  // Llama 3.1 405B
  EXPECT_EQ(meta_hidden_size(64, 32, 1.0), 192);         // llama2xs
}

}  // namespace
}  // namespace limpid
