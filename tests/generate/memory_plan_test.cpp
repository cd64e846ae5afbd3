#include "generate/memory_plan.h"

#include <gtest/gtest.h>

#include "executor/cpu/cpu_executor.h"
#include "executor/delegating_executor.h"
#include "executor/gpu_devices.h"
#include "limpid/error.hpp"
#include "limpid/model.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

TEST(MemoryPlan, CountsTensorsThatAreMade) {
  const auto checkpoint = testing::tiny_checkpoint();
  const DecoderSpec spec = read_spec(*checkpoint);
  const MemoryPlan mapped = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(mapped.weights_packed, 0u);
  const char* name = "blk.0.ffn_gate.weight";
  const TensorView tensor = *checkpoint->find(name);
  checkpoint->derived[name] = {"columns joined", [] { return Tensor(); }, {}};
  const MemoryPlan copied = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(copied.weights_packed, tensor.n_bytes());
  EXPECT_EQ(copied.weights_in_file, mapped.weights_in_file - tensor.n_bytes());
  EXPECT_EQ(copied.devices.front().weights_in_file,
            mapped.devices.front().weights_in_file - tensor.n_bytes());
  checkpoint->derived[name] = {"rows joined", [] { return Tensor(); }, {tensor}};
  const MemoryPlan in_parts = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(in_parts.weights_packed, 0u);
  EXPECT_EQ(in_parts.weights_in_file, mapped.weights_in_file);
}

// ---- the plan beside what is allocated ----------------------------------------------------------

// A device that adds up what it hands out, but for blocks that are given back once they are packed.
class CountingDevice final : public gpu::Device {
 public:
  CountingDevice(std::unique_ptr<gpu::Device> inner, uint64_t& n_bytes)
      : Device(inner->info()), inner_(std::move(inner)), n_bytes_(n_bytes) {}

  uint64_t available_memory() const override { return inner_->available_memory(); }
  std::unique_ptr<gpu::Buffer> allocate(uint64_t n_bytes, std::string_view purpose) override {
    if (!purpose.starts_with("blocks of ")) n_bytes_ += n_bytes;
    return inner_->allocate(n_bytes, purpose);
  }
  void write(const gpu::Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    inner_->write(to, offset, from);
  }
  void read(const gpu::Buffer& from, uint64_t offset, std::span<std::byte> to) override {
    inner_->read(from, offset, to);
  }
  void copy(const gpu::Buffer& from, const gpu::Buffer& to, uint64_t n_bytes) override {
    inner_->copy(from, to, n_bytes);
  }
  void zero(const gpu::Buffer& buffer, uint64_t offset, uint64_t n_bytes) override {
    inner_->zero(buffer, offset, n_bytes);
  }
  std::unique_ptr<gpu::Program> compile(const gpu::ProgramSource& source) override {
    return inner_->compile(source);
  }
  std::unique_ptr<gpu::Program> load(const std::string& binary) override {
    return inner_->load(binary);
  }
  void launch(const gpu::Kernel& kernel, const gpu::Grid& grid,
              std::span<const gpu::Argument> arguments) override {
    inner_->launch(kernel, grid, arguments);
  }
  void flush() noexcept override { inner_->flush(); }

 private:
  std::unique_ptr<gpu::Device> inner_;
  uint64_t& n_bytes_;
};

// Wide enough that the kilobyte of a step's inputs is little.
testing::TinyShape planned_shape(std::string_view family, DType dtype) {
  testing::TinyShape shape = family == "gpt2" ? testing::tiny_gpt2_shape() : testing::TinyShape();
  shape.architecture = family;
  shape.dtype = dtype;
  shape.n_layers = 4;
  shape.d_model = 256;
  shape.n_heads = 4;
  shape.n_kv_heads = family == "gpt2" ? 4 : 2;
  shape.head_dim = 64;
  shape.d_ff = 768;
  shape.vocab_size = 1000;
  shape.tied = family != "qwen2";
  return shape;
}

struct Planned {
  std::string family;
  DType dtype;
};
const auto kPlanned = {Planned{"llama", DType::kF32}, Planned{"llama", DType::kQ8_0},
                       Planned{"qwen2", DType::kQ4_0}, Planned{"gpt2", DType::kF32},
                       Planned{"gpt2", DType::kQ8_0}};
constexpr double kWithin = 0.02;

OpenOptions planned_options(std::string device, int64_t gpu_layers) {
  OpenOptions options;
  options.n_ctx = 320;
  options.n_batch = 200;
  options.device = std::move(device);
  options.gpu_layers = gpu_layers;
  options.n_threads = 2;
  return options;
}

// The whole context in steps of n_batch tokens, and the last 16 in a step of their own, for which
// groups of a GPU share the context out.
void run_prompt(Model& model, const OpenOptions& options) {
  const auto cache = model.make_cache(options.n_ctx, DType::kF16, DType::kF16);
  const SequenceId sequence = cache->add_sequence();
  const int64_t last = options.n_ctx - 16;
  for (int64_t begin = 0, end = 0; begin < options.n_ctx; begin = end) {
    end = begin < last ? std::min(begin + options.n_batch, last) : options.n_ctx;
    const auto tokens = testing::some_tokens(end - begin, 1000);
    const StepItem item{sequence, tokens, StepItem::Outputs::kLast};
    model.step(*cache, {&item, 1});
  }
}

void expect_near(uint64_t planned, uint64_t allocated, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(allocated),
              kWithin * static_cast<double>(allocated))
      << what;
}

TEST(MemoryPlan, OfTheCpuIsWhatIsAllocated) {
  for (const auto& [family, dtype] : kPlanned) {
    const std::string what = family + " " + std::string(dtype_info(dtype).name);
    const auto checkpoint = testing::tiny_checkpoint(planned_shape(family, dtype));
    const OpenOptions options = planned_options("cpu", 0);
    const MemoryPlan plan = make_memory_plan(*checkpoint, read_spec(*checkpoint), options);
    auto owned = std::make_unique<CpuExecutor>(ExecutorOptions{2, ""});
    const CpuExecutor& cpu = *owned;
    const auto model = Model::load(checkpoint, std::move(owned), {.n_ctx = options.n_ctx});
    run_prompt(*model, options);
    expect_near(plan.activations, cpu.arena().most_bytes_taken(), what);
    const auto kv = model->executor().allocate_kv(
        {4, model->spec().n_kv_heads, 64, 5, DType::kF16, DType::kF16});
    const uint64_t angles = family == "gpt2" ? 0 : 320 * 64 * sizeof(float);
    EXPECT_EQ(plan.kv_cache, 5 * kv->block_bytes() + angles) << what;
  }
}

class MemoryPlanOfGpus : public testing::GpuTest {};
INSTANTIATE_TEST_SUITE_P(Gpu, MemoryPlanOfGpus, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

// Products of halves take the memory of an activation, so the plan is the same.
TEST_P(MemoryPlanOfGpus, IsWhatIsAllocated) {
  for (const auto& [family, dtype] : kPlanned) {
    for (const int64_t n_layers : {1, 3, 4}) {
      const bool is_q8_0 = dtype == DType::kQ8_0;
      const auto checkpoint = testing::tiny_checkpoint(planned_shape(family, dtype));
      const OpenOptions options = planned_options(GetParam(), n_layers);
      uint64_t n_bytes = 0;
      Devices devices{std::make_unique<GpuExecutor>(
                          std::make_unique<CountingDevice>(testing::open_gpu(GetParam()), n_bytes),
                          is_q8_0 ? DType::kF16 : DType::kF32),
                      make_cpu_executor({2, ""}), GetParam(), "cpu"};
      const MemoryPlan plan =
          make_memory_plan(*checkpoint, read_spec(*checkpoint), options, devices);
      ASSERT_EQ(plan.devices.front().end_layer, n_layers);
      EXPECT_EQ(n_bytes, 0U) << "a plan allocates nothing";
      const auto model =
          Model::load(checkpoint, join_devices(std::move(devices), plan), {.n_ctx = options.n_ctx});
      run_prompt(*model, options);
      expect_near(plan.devices.front().allocated(), n_bytes,
                  fmt::format("{} {}, {} layers", family, dtype_info(dtype).name, n_layers));
    }
  }
}

// ---- layers on two devices ----------------------------------------------------------------------

// The reference with another name and so much memory.
class SmallDevice final : public DelegatingExecutor {
 public:
  explicit SmallDevice(uint64_t n_bytes)
      : DelegatingExecutor(make_reference_executor({.n_threads = 1})), n_bytes_(n_bytes) {}
  std::string_view name() const override { return "small"; }
  uint64_t available_memory() const override { return n_bytes_; }
  std::string memory_name() const override { return "small"; }
  uint64_t weight_bytes(const WeightSource& source) const override {
    return source.tensor.n_bytes();
  }

 private:
  uint64_t n_bytes_;
};

MemoryPlan plan_on(uint64_t n_bytes, const OpenOptions& options) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kF32));
  const Devices devices{std::make_unique<SmallDevice>(n_bytes), make_cpu_executor({1, ""}), "small",
                        "cpu"};
  return make_memory_plan(*checkpoint, read_spec(*checkpoint), options, devices);
}

// A device with memory of its own copies them; the CPU reads them where they were made.
TEST(MemoryPlan, CountsTensorsThatAreMadeOnTheDeviceThatReadsThem) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kF32));
  const DecoderSpec spec = read_spec(*checkpoint);
  const Devices devices{std::make_unique<SmallDevice>(0), make_cpu_executor({1, ""}), "small",
                        "cpu"};
  const OpenOptions options = planned_options("small", 2);
  const MemoryPlan mapped = make_memory_plan(*checkpoint, spec, options, devices);
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.3.ffn_gate.weight"})
    checkpoint->derived[name] = {"transposed", [] { return Tensor(); }, {}};
  const MemoryPlan made = make_memory_plan(*checkpoint, spec, options, devices);
  ASSERT_EQ(made.devices.size(), 2U);
  EXPECT_EQ(made.devices[0].weights, mapped.devices[0].weights);
  EXPECT_EQ(made.devices[1].weights,
            mapped.devices[1].weights + checkpoint->find("blk.3.ffn_gate.weight")->n_bytes());
}

// The message of check_memory_plan, or "".
std::string refusal_of(const MemoryPlan& plan) {
  try {
    check_memory_plan(plan);
    return "";
  } catch (const ResourceError& error) {
    return error.what();
  }
}

TEST(MemoryPlan, PutsAsManyLayersOnADeviceAsFit) {
  OpenOptions options = planned_options("small", OpenOptions::kLayersThatFit);
  const MemoryPlan all = plan_on(0, options);  // unknown
  ASSERT_EQ(all.devices.size(), 1U);
  EXPECT_EQ(all.devices[0].end_layer, 4);
  const uint64_t wanted = all.devices[0].allocated();
  int64_t before = 0;
  for (const int percent : {0, 20, 50, 75, 100, 112}) {
    const MemoryPlan plan = plan_on(1 + wanted * percent / 100, options);
    const bool is_on_both = plan.devices.size() == 2;
    const DevicePlan& first = plan.devices.front();
    const int64_t n_layers = first.device == "small" ? first.end_layer : 0;
    EXPECT_GE(n_layers, before);
    before = n_layers;
    EXPECT_EQ(is_on_both, 0 < n_layers && n_layers < 4) << percent;
    if (n_layers > 0) {
      EXPECT_LE(first.allocated(), first.available);
    }
    if (is_on_both) {
      EXPECT_EQ(plan.devices[1].first_layer, n_layers);
      EXPECT_EQ(plan.devices[1].end_layer, 4);
      EXPECT_EQ(plan.devices[1].device, "cpu");
    }
  }
  EXPECT_EQ(before, 4);  // a tenth stays free
  EXPECT_EQ(plan_on(1, options).devices[0].device, "cpu");
}

TEST(MemoryPlan, TakesTheNumberOfLayersThatIsAskedFor) {
  for (const int64_t n : {0, 1, 3, 4, 99}) {
    const MemoryPlan plan = plan_on(1, planned_options("small", n));
    const int64_t n_first = std::min<int64_t>(n, 4);
    EXPECT_EQ(plan.devices.size(), n_first == 0 || n_first == 4 ? 1U : 2U);
    EXPECT_EQ(plan.devices.front().end_layer, n_first == 0 ? 4 : n_first);
    if (n > 0) {  // fewer layers may fit where all do not
      const std::string message = refusal_of(plan);
      for (const char* word :
           {"on small need", "OpenOptions::gpu_layers", "KV cache of 320 tokens"})
        EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  }
  EXPECT_EQ(plan_text(plan_on(1, planned_options("small", 3))).substr(0, 26),
            "layers 0 to 2 on small: we");
}

TEST(MemoryPlan, TheOtherLayersLieOnTheDeviceOfSplit) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kF32));
  OpenOptions options = planned_options("reference", 3);
  options.split = "reference";
  Devices devices = open_devices(options);
  const MemoryPlan plan = make_memory_plan(*checkpoint, read_spec(*checkpoint), options, devices);
  ASSERT_EQ(plan.devices.size(), 2U);
  EXPECT_EQ(plan.devices[1].device, "reference");
  EXPECT_EQ(plan.devices[1].first_layer, 3);
  EXPECT_EQ(join_devices(std::move(devices), plan)->name(), "reference:3+reference");
  options.gpu_layers = OpenOptions::kLayersThatFit;  // all, because this is no GPU
  EXPECT_THROW(open_devices(options), ArgumentError);
  options = planned_options("reference", 3);
  options.split = "reference";
  for (const char* products : {"bf16", "f16", "f64"}) {
    options.products = products;
    EXPECT_THROW(open_devices(options), ArgumentError) << products;
  }
  options.split = "cpu";
  options.products = "bf16";
  EXPECT_NO_THROW(open_devices(options));
}

// Each part would fit alone.
TEST(MemoryPlan, CountsOnceAMemoryThatBothDevicesHave) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kF32));
  const auto plan_of = [&](uint64_t n_bytes, int64_t n_layers, int64_t n_ctx) {
    OpenOptions options = planned_options("small", n_layers);
    options.n_ctx = n_ctx;
    const Devices devices{std::make_unique<SmallDevice>(n_bytes),
                          std::make_unique<SmallDevice>(n_bytes), "small", "other"};
    return make_memory_plan(*checkpoint, read_spec(*checkpoint), options, devices);
  };
  const uint64_t wanted = plan_of(0, 2, 320).allocated();
  const MemoryPlan fitting = plan_of(wanted, 2, 320);
  EXPECT_TRUE(fitting.shares_memory);
  EXPECT_EQ(fitting.available, wanted);
  EXPECT_EQ(refusal_of(fitting), "");
  const std::string message = refusal_of(plan_of(wanted - 1, 2, 320));
  for (const char* word : {"the memory that both devices have", "layers 2 to 3 on other: weights"})
    EXPECT_NE(message.find(word), std::string::npos) << message;
  // Layers: two parts need more than one. A tenth stays free.
  constexpr int64_t kThatFit = OpenOptions::kLayersThatFit;
  const uint64_t of_one = plan_of(0, 4, 320).allocated();
  EXPECT_EQ(plan_of(of_one, kThatFit, 320).devices.front().device, "other");
  EXPECT_EQ(plan_of(2 * of_one, kThatFit, 320).devices.front().device, "small");
  // Context.
  const MemoryPlan reduced = plan_of(plan_of(0, 2, 1024).allocated(), 2, 0);
  EXPECT_TRUE(reduced.n_ctx_reduced);
  EXPECT_LE(reduced.allocated(), reduced.available - reduced.available / 10);
}

TEST(MemoryPlan, SumsUpTheParts) {
  const MemoryPlan plan = plan_on(uint64_t{1} << 30, planned_options("small", 2));
  ASSERT_EQ(plan.devices.size(), 2U);
  const DevicePlan& a = plan.devices[0];
  const DevicePlan& b = plan.devices[1];
  EXPECT_EQ(plan.weights_packed, a.weights + b.weights);
  EXPECT_EQ(plan.kv_cache, a.kv_cache + b.kv_cache);
  EXPECT_EQ(plan.activations, a.activations + b.activations);
  EXPECT_EQ(plan.allocated(), a.allocated() + b.allocated());
  EXPECT_EQ(plan.available, a.available + b.available);
  EXPECT_FALSE(plan.shares_memory);
  // The matrices of the CPU are read from the file, the table of the tied head too.
  const uint64_t layer = 4U * (256 * 256 + 2 * 128 * 256 + 256 * 256 + 3 * 256 * 768);
  EXPECT_EQ(b.weights, 0U);
  EXPECT_EQ(b.weights_in_file, 2 * layer + 4 * 1000 * 256);
  EXPECT_EQ(b.bytes_per_token, b.weights_in_file);
  EXPECT_EQ(a.bytes_per_token, 2 * layer);
  EXPECT_EQ(a.weights_in_file, 0U);
}

// ---- more weights than memory -------------------------------------------------------------------

class SmallCpu final : public DelegatingExecutor {
 public:
  explicit SmallCpu(uint64_t n_bytes)
      : DelegatingExecutor(make_cpu_executor({1, ""})), n_bytes_(n_bytes) {}
  uint64_t available_memory() const override { return n_bytes_; }

 private:
  uint64_t n_bytes_;
};

MemoryPlan plan_on_small_cpu(const Checkpoint& checkpoint, uint64_t n_bytes,
                             const OpenOptions& options) {
  return make_memory_plan(checkpoint, read_spec(checkpoint), options,
                          Devices{std::make_unique<SmallCpu>(n_bytes), nullptr, "cpu"});
}

TEST(MemoryPlan, MatricesThatAreReadFromTheFileNeedNoMemory) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kF16));
  OpenOptions options = planned_options("cpu", 0);
  options.n_batch = 16;
  const MemoryPlan plan = plan_on_small_cpu(*checkpoint, uint64_t{4} << 20, options);
  EXPECT_GT(plan.weights_in_file, plan.available);
  EXPECT_LT(plan.allocated(), plan.available);
  EXPECT_EQ(refusal_of(plan), "");
  EXPECT_EQ(plan.first_layer_in_file, MemoryPlan::kNoLayer);
}

TEST(MemoryPlan, QuantisedWeightsWithoutRoomStayInTheFile) {
  const auto checkpoint = testing::tiny_checkpoint(planned_shape("llama", DType::kQ8_0));
  OpenOptions options = planned_options("cpu", 0);
  options.n_batch = 16;
  const MemoryPlan roomy = plan_on_small_cpu(*checkpoint, 0, options);
  EXPECT_EQ(roomy.first_layer_in_file, MemoryPlan::kNoLayer);
  EXPECT_EQ(roomy.devices[0].weights_in_file, 0U);
  const uint64_t wanted = roomy.allocated();
  EXPECT_EQ(plan_on_small_cpu(*checkpoint, wanted, options).first_layer_in_file,
            MemoryPlan::kNoLayer);
  int64_t before = 4;
  for (const int percent : {99, 80, 60}) {
    const MemoryPlan plan = plan_on_small_cpu(*checkpoint, wanted * percent / 100, options);
    EXPECT_EQ(refusal_of(plan), "");
    EXPECT_LE(plan.first_layer_in_file, before);
    before = plan.first_layer_in_file;
    EXPECT_EQ(plan.n_ctx, 320);
    EXPECT_LE(plan.allocated(), plan.available - plan.available / 10);
    EXPECT_GT(plan.devices[0].weights_in_file, 0U);
    EXPECT_GT(plan.devices[0].weights, 0U);
  }
  EXPECT_LT(before, 4);
  // A context of use comes before the copies, and any context before none.
  options.n_ctx = 0;
  const auto context_with = [&](uint64_t n_bytes) {
    const MemoryPlan plan = plan_on_small_cpu(*checkpoint, n_bytes, options);
    EXPECT_NE(plan.first_layer_in_file, MemoryPlan::kNoLayer);
    EXPECT_EQ(refusal_of(plan), "");
    return plan.n_ctx;
  };
  EXPECT_EQ(context_with(3'600'000), roomy.n_ctx_train);
  EXPECT_LT(context_with(2'000'000), roomy.n_ctx_train);
  // What helps nothing is not done, and who wants no check gets all copies.
  const MemoryPlan hopeless = plan_on_small_cpu(*checkpoint, 1000, options);
  EXPECT_EQ(hopeless.first_layer_in_file, MemoryPlan::kNoLayer);
  EXPECT_NE(refusal_of(hopeless), "");
  options.check_memory = false;
  EXPECT_EQ(plan_on_small_cpu(*checkpoint, 1000, options).first_layer_in_file,
            MemoryPlan::kNoLayer);
}

TEST(MemoryPlan, WeightsInTheFileGiveTheBitsOfTheirCopies) {
  const auto tokens = testing::some_tokens(40, 1000);
  for (const auto& [family, dtype] : kPlanned) {
    const auto checkpoint = testing::tiny_checkpoint(planned_shape(family, dtype));
    const auto logits_of = [&, &family = family](int n_threads, int64_t first_layer_in_file,
                                                 size_t chunk) {
      auto executor = make_cpu_executor({n_threads, ""});
      const Executor& cpu = *executor;
      const auto model = Model::load(checkpoint, std::move(executor),
                                     {.n_ctx = 64, .first_layer_in_file = first_layer_in_file});
      uint64_t copied = 0;
      for (WeightSource source : weight_sources(*checkpoint, model->spec())) {
        source.stays_in_file = source.layer >= first_layer_in_file;
        copied += source.stays_in_file ? cpu.weight_bytes(source) : 0;
      }
      EXPECT_EQ(copied, 0U) << family;
      return testing::run_in_chunks(*model, tokens, chunk);
    };
    const std::vector<float> expected = logits_of(2, INT64_MAX, 40);
    EXPECT_EQ(logits_of(2, 0, 40), expected) << family;
    EXPECT_EQ(logits_of(1, 2, 1), expected) << family;
    EXPECT_EQ(logits_of(2, 4, 3), expected) << family;
  }
}

}  // namespace
}  // namespace limpid
