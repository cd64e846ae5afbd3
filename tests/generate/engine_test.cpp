#include "generate/engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "checkpoint/llama2c_builder.h"
#include "data_paths.h"
#include "executor/cpu/packed_weight.h"
#include "executor/delegating_executor.h"
#include "export/export_model.h"
#include "generate/memory_plan.h"
#include "generate/tiny_model.h"
#include "model/decoder_from_checkpoint.h"
#include "model/model_files.h"

namespace limpid {
namespace {

using testing::open_tiny;
using testing::tiny_model_checkpoint;

template <typename ErrorType, typename Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

TEST(Engine, OpensAGgufFile) {
  const LanguageModel model = open_tiny({.n_ctx = 0});
  EXPECT_EQ(model.n_ctx(), 256);
  EXPECT_EQ(model.vocab_size(), testing::kTinyVocabulary);
  EXPECT_TRUE(model.has_tokenizer());
  EXPECT_EQ(model.chat_template(), testing::kChatMl);
  EXPECT_EQ(model.decode(model.encode("the heim\u00e9")), "the heim\u00e9");
  EXPECT_TRUE(model.is_stop(testing::kTurnEnd));
  EXPECT_FALSE(model.is_stop('a'));
}

TEST(Engine, ParsesControlTokensOnlyWhenAsked) {
  const LanguageModel model = open_tiny();
  EXPECT_EQ(model.encode("<|im_end|>", true, true), std::vector<TokenId>{testing::kTurnEnd});
  EXPECT_EQ(model.encode("<|im_end|>").size(), 9U);  // "im" is one token
  EXPECT_EQ(model.encode("<tool>"), std::vector<TokenId>{testing::kTool});
}

TEST(Engine, OpensAModelWithoutATokenizer) {
  const LanguageModel model = open_tiny({.with_vocabulary = false});
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_THROW(model.encode("a"), UnsupportedError);
  Session session(model);
  const std::vector<TokenId> ids = {1, 2, 3};
  session.append(ids);
  EXPECT_EQ(session.logits().size(), 263U);
  GenerationOptions options;
  options.n_predict = 4;
  EXPECT_EQ(session.generate(options).result().ids.size(), 4U);
  options.stop = {"x"};
  EXPECT_THROW(session.generate(options), ArgumentError);
}

// How writers of GGUF say that a model has no tokenizer.
TEST(Engine, OpensAFileWhoseVocabularyIsNamedAbsent) {
  const auto model = LanguageModel::open(testing::test_data_path("golden/llama/mha_tied.gguf"));
  EXPECT_FALSE(model.has_tokenizer());
  Session session(model);
  session.append(std::vector<TokenId>{1, 2, 3});
  EXPECT_EQ(session.logits().size(), static_cast<size_t>(model.vocab_size()));
}

TEST(Engine, SaysWhichChoicesThereAre) {
  OpenOptions options;
  const TempFolder folder;
  const std::string path = testing::write_tiny_model(folder);
  options.device = "tpu";
  EXPECT_NE(message_of<ArgumentError>([&] { Engine::open(path, options); }).find("reference"),
            std::string::npos);
  options = {};
  options.cache_type_k = "q8_0";
  EXPECT_NE(message_of<ArgumentError>([&] { Engine::open(path, options); }).find("f16 or f32"),
            std::string::npos);
  options = {};
  options.n_batch = 0;
  EXPECT_NE(message_of<ArgumentError>([&] { Engine::open(path, options); }).find("n_batch"),
            std::string::npos);
  EXPECT_THROW(Engine::open(folder.path("absent.gguf")), ResourceError);
}

// While weights are loaded, and later when the cache grows.
TEST(Engine, ADeviceOutOfMemoryNamesThePlan) {
  class Full final : public DelegatingExecutor {
   public:
    Full(std::unique_ptr<Executor> inner, bool loads)
        : DelegatingExecutor(std::move(inner)), loads_(loads) {}
    Weight load_weight(const WeightSource& source) override {
      if (!loads_) throw ResourceError("the device is full");
      return DelegatingExecutor::load_weight(source);
    }
    std::unique_ptr<KvStorage> allocate_kv(const KvLayout& /*layout*/) override {
      throw ResourceError("the device is full");
    }

   private:
    bool loads_;
  };
  const TempFolder folder;
  const std::string path = testing::write_tiny_model(folder);
  OpenOptions options;
  options.n_ctx = 64;
  for (const bool loads : {false, true}) {
    const std::string message = message_of<ResourceError>([&] {
      const auto engine = Engine::open(path, options, [&](std::unique_ptr<Executor> inner) {
        return std::make_unique<Full>(std::move(inner), loads);
      });
      Session(LanguageModel(engine)).append(std::vector<TokenId>{1, 2, 3});
    });
    EXPECT_NE(message.find("the device is full"), std::string::npos) << message;
    EXPECT_NE(message.find("; the plan was layers 0 to "), std::string::npos) << message;
    EXPECT_NE(message.find("KV cache of 64 tokens"), std::string::npos) << message;
  }
}

TEST(Engine, ReportsProgressAndCancels) {
  const TempFolder folder;
  const std::string path = testing::write_tiny_model(folder);
  OpenOptions options;
  uint64_t last = 0, total = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  };
  Engine::open(path, options);
  EXPECT_GT(total, 0U);
  EXPECT_EQ(last, total);
  options.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_THROW(Engine::open(path, options), ResourceError);
}

TEST(Engine, RotaryScalingOfTheOptionsStandsForTheModelsOwn) {
  const TempFolder folder;
  const std::string path = testing::write_tiny_model(folder);
  OpenOptions options;
  const RopeSpec own = Engine::open(path, options)->model().spec().rope;
  options.rope_scaling = "linear:4";
  const RopeSpec given = Engine::open(path, options)->model().spec().rope;
  EXPECT_EQ(own.scaling, "none");
  EXPECT_EQ(given.scaling, "linear");
  ASSERT_EQ(given.inverse_frequencies.size(), own.inverse_frequencies.size());
  for (size_t i = 0; i < own.inverse_frequencies.size(); ++i)
    EXPECT_EQ(given.inverse_frequencies[i], own.inverse_frequencies[i] / 4) << i;
  options.rope_scaling = "linear";
  EXPECT_THROW(Engine::open(path, options), ArgumentError);
}

TEST(Engine, AConfigurationIsForAFileThatHasNone) {
  const TempFolder folder;
  const std::string path = testing::write_tiny_model(folder);
  OpenOptions options;
  options.config = R"({"n_head": 2})";
  EXPECT_NE(message_of<ArgumentError>([&] { Engine::open(path, options); }).find("carries its own"),
            std::string::npos);
}

TEST(Engine, Llama2cTokenizerServesAnyModel) {
  const TempFolder folder;
  std::string bytes = llama2c_test::tokenizer_file();
  llama2c_test::put_token(bytes, -4, "th");
  OpenOptions options;
  options.tokenizer_path = folder.write("tok.bin", bytes);
  for (const bool has_own : {false, true}) {
    const LanguageModel model =
        LanguageModel::open(testing::write_tiny_model(folder, has_own), options);
    EXPECT_EQ(model.encode("the"),
              (std::vector<TokenId>{1, 259, 3 + 'h', 261}));  // <s>, " t", h, e
    EXPECT_EQ(model.decode(model.encode("th\u00e9 the")), "th\u00e9 the");
    EXPECT_TRUE(model.is_stop(2));
    EXPECT_FALSE(model.is_stop(testing::kTurnEnd));
  }
  options.tokenizer_path = folder.write("other.bin", llama2c_test::tokenizer_file());
  const std::string path = testing::write_tiny_model(folder);
  EXPECT_NE(message_of<FormatError>([&] { Engine::open(path, options); }).find("token[262]"),
            std::string::npos);
  options.tokenizer_path = folder.path("absent.bin");
  EXPECT_THROW(Engine::open(path, options), ResourceError);
}

TEST(Engine, PrefersTheTemplateOfTheOptions) {
  const LanguageModel model = open_tiny({.chat_template = "{{ messages[0].content }}"});
  EXPECT_EQ(model.chat_template(), "{{ messages[0].content }}");
}

// ---- OpenOptions::quantize ----------------------------------------------------------------------

// Results go into a folder of the test's own.
class QuantizedOpening : public ::testing::Test {
 protected:
  QuantizedOpening() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    use(cache_);
  }
  ~QuantizedOpening() override {
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }
  static void use(const TempFolder& cache) {
    ::setenv("XDG_CACHE_HOME", cache.folder().c_str(), 1);
  }
  static std::vector<std::filesystem::path> results(const TempFolder& cache) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(cache.path("limpid/quantized")))
      paths.push_back(entry.path());
    return paths;
  }
  // Of the last token of a prompt.
  static std::vector<float> logits(const std::string& path, OpenOptions options) {
    options.n_threads = 2;
    Session session(LanguageModel::open(path, options));
    session.append(std::vector<TokenId>{'t', 'h', 'e', ' ', 'h', 'e', 'i', 'm'});
    const std::span<const float> last = session.logits();
    return {last.begin(), last.end()};
  }
  static OpenOptions quantized(const std::string& type, const std::string& rope_scaling = "") {
    OpenOptions options;
    options.quantize = type;
    options.rope_scaling = rope_scaling;
    return options;
  }

  TempFolder cache_;
  TempFolder folder_;
  std::string model_ = testing::write_tiny_model(folder_);

 private:
  std::optional<std::string> before_;
};

// Errors of quantisation are those of the file that an export in that type writes.
TEST_F(QuantizedOpening, IsOpeningTheModelThatAnExportWrites) {
  for (const char* type : {"q8_0", "q4_0", "q4_k_m"}) {
    ExportOptions options;
    options.file_type = &file_type_from_name(type);
    const std::string exported = folder_.path(std::string(type) + ".gguf");
    export_model(exported, open_model_files({model_}), options);
    const auto bits = logits(exported, {});
    EXPECT_NE(bits, logits(model_, {})) << type;
    EXPECT_EQ(logits(model_, quantized(type)), bits) << type << ", cache miss";
    EXPECT_EQ(logits(model_, quantized(type)), bits) << type << ", cache hit";
  }
  EXPECT_EQ(results(cache_).size(), 3U);
}

TEST_F(QuantizedOpening, MapsTheResultTheSecondTime) {
  logits(model_, quantized("q4_0"));
  ASSERT_EQ(results(cache_).size(), 1U);
  const std::filesystem::path made = results(cache_).front();
  // A second name of the same file: one written anew would be another file.
  const std::filesystem::path same = cache_.path("same");
  std::filesystem::create_hard_link(made, same);
  logits(model_, quantized("q4_0"));
  ASSERT_EQ(results(cache_).size(), 1U);
  EXPECT_TRUE(std::filesystem::equivalent(made, same));
  // A damaged one is made again.
  std::filesystem::resize_file(made, 100);
  logits(model_, quantized("q4_0"));
  EXPECT_FALSE(std::filesystem::equivalent(made, same));
}

// The activations that the quantiser measures depend on the scaling and on the tokenizer.
TEST_F(QuantizedOpening, DoesNotDependOnWhatTheCacheHolds) {
  std::string tokenizer = llama2c_test::tokenizer_file();
  llama2c_test::put_token(tokenizer, -4, "th");
  OpenOptions other_tokens = quantized("q4_0");
  other_tokens.tokenizer_path = folder_.write("tok.bin", tokenizer);
  const std::vector<OpenOptions> openings = {quantized("q4_0"), quantized("q4_0", "linear:4"),
                                             other_tokens};
  std::vector<std::vector<float>> alone;
  for (const OpenOptions& options : openings) {
    const TempFolder fresh;
    use(fresh);
    alone.push_back(logits(model_, options));
  }
  EXPECT_NE(alone[2], alone[0]);
  use(cache_);
  for (const size_t i : {1, 0, 2, 0, 1}) EXPECT_EQ(logits(model_, openings[i]), alone[i]) << i;
}

TEST(MemoryPlan, CountsWhatWillBeAllocated) {
  const auto checkpoint = tiny_model_checkpoint();
  const DecoderSpec spec = read_spec(*checkpoint);
  OpenOptions options;
  options.n_ctx = 100;
  const MemoryPlan plan = make_memory_plan(*checkpoint, spec, options);
  uint64_t file_bytes = 0;
  for (const auto& [name, tensor] : checkpoint->tensors) file_bytes += tensor.n_bytes();
  EXPECT_EQ(plan.weights_in_file, file_bytes);
  EXPECT_EQ(plan.weights_packed, 0U);  // f32 stays in the file
  EXPECT_EQ(plan.n_ctx, 100);
  // Two blocks of K and V in f16, two layers, two KV heads of 16; and 8 pairs of rotary angles.
  EXPECT_EQ(plan.kv_cache, 128U * 2 * 2 * 16 * (2 + 2) + 100U * 8 * 2 * 4);
  options.cache_type_k = options.cache_type_v = "f32";
  EXPECT_EQ(make_memory_plan(*checkpoint, spec, options).kv_cache,
            128U * 2 * 2 * 16 * (4 + 4) + 100U * 8 * 2 * 4);
  EXPECT_GT(plan.activations, 100U * 64 * 4);
}

TEST(MemoryPlan, CountsThePackedCopiesExactly) {
  for (const bool tied : {true, false}) {
    testing::TinyShape shape;
    shape.dtype = DType::kQ4_0;
    shape.tied = tied;
    const auto checkpoint = testing::tiny_checkpoint(shape);
    uint64_t expected = 0;
    ThreadPool pool(1);
    for (const auto& [name, tensor] : checkpoint->tensors) {
      if (!is_quantized(tensor.dtype) || (!tied && name == "token_embd.weight")) continue;
      expected += PackedWeight(tensor, RowOrder::kHalfSplit, 0, pool).n_bytes();
    }
    OpenOptions options;
    const DecoderSpec spec = read_spec(*checkpoint);
    EXPECT_EQ(make_memory_plan(*checkpoint, spec, options).weights_packed, expected);
    options.device = "reference";
    EXPECT_EQ(make_memory_plan(*checkpoint, spec, options).weights_packed, 0U);
  }
}

TEST(MemoryPlan, RefusesWhatCannotFitBeforeLoading) {
  MemoryPlan plan;
  plan.n_ctx = 4096;
  DevicePlan& cpu = plan.devices.emplace_back();
  cpu.weights = 3U << 20U;
  cpu.kv_cache = 5U << 20U;
  cpu.available = 8U << 20U;
  check_memory_plan(plan);
  cpu.activations = 1;
  const auto message = message_of<ResourceError>([&] { check_memory_plan(plan); });
  for (const char* word : {"8.0 MiB", "3.0 MiB", "5.0 MiB", "4096 tokens", "OpenOptions::n_ctx"}) {
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
  cpu.available = 0;  // unknown
  check_memory_plan(plan);
}

TEST(MemoryPlan, LoweringItsOwnContextIsSaidAndAskedForContextIsRefused) {
  auto checkpoint = tiny_model_checkpoint();
  DecoderSpec spec = read_spec(*checkpoint);
  spec.n_ctx_train = int64_t{1} << 40;  // no machine holds that
  const MemoryPlan plan = make_memory_plan(*checkpoint, spec, {});
  if (plan.available == 0) GTEST_SKIP() << "this system does not tell how much memory is free";
  EXPECT_TRUE(plan.n_ctx_reduced);
  EXPECT_EQ(plan.n_ctx % 256, 0);
  EXPECT_LE(plan.allocated(), plan.available);
  OpenOptions options;
  options.n_ctx = spec.n_ctx_train;
  EXPECT_THROW(check_memory_plan(make_memory_plan(*checkpoint, spec, options)), ResourceError);
}

TEST(OpenWeights, ChecksThePlanOfAHeaderThatIsOpen) {
  const auto header = tiny_model_checkpoint();
  MemoryPlan reported;
  OpenOptions options;
  options.n_ctx = 100;
  options.on_plan = [&](const MemoryPlan& plan) { reported = plan; };
  const OpenedWeights weights = open_weights(header, options);
  EXPECT_EQ(weights.model->n_ctx(), 100);
  EXPECT_EQ(weights.plan.allocated(), reported.allocated());
  if (reported.available == 0) GTEST_SKIP() << "this system does not tell how much memory is free";
  options.n_ctx = int64_t{1} << 40;  // no machine holds that
  EXPECT_THROW(open_weights(header, options), ResourceError);
  options.n_ctx = INT64_MAX;  // whose bytes overflow
  EXPECT_THROW(open_weights(header, options), ArgumentError);
  EXPECT_EQ(reported.n_ctx, 100);
}

TEST(Engine, EncodesManyTextsAsOneByOne) {
  const LanguageModel model = open_tiny();
  std::vector<std::string> texts = {"", "the heim", "<|im_end|>", "caf\u00e9"};
  for (int i = 0; i < 100; ++i) texts.push_back("text " + std::to_string(i * i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (const bool add_special : {false, true}) {
    for (const bool parse_special : {false, true}) {
      std::vector<std::vector<TokenId>> expected;
      for (const auto& text : texts)
        expected.push_back(model.encode(text, add_special, parse_special));
      for (const int n_threads : {0, 1, 3})
        EXPECT_EQ(model.encode_batch(views, add_special, parse_special, n_threads), expected);
    }
  }
  EXPECT_TRUE(model.encode_batch({}).empty());
  EXPECT_THROW(open_tiny({.with_vocabulary = false}).encode_batch(views), UnsupportedError);
}

}  // namespace
}  // namespace limpid
