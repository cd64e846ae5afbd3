// The contract, part one: whatever the decoder does, it reads no tensor. Here activations and KV
// cache lie in pages that nobody may touch outside an op, as a device's memory would.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>

#include "executor/delegating_executor.h"
#include "executor/reference/reference_executor.h"
#include "model/model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

// Hands out memory from pages that can be closed.
class GuardedMemory final : public std::pmr::memory_resource {
 public:
  GuardedMemory()
      : base_(static_cast<std::byte*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (base_ == MAP_FAILED) std::abort();
  }
  ~GuardedMemory() override { ::munmap(base_, kSize); }
  void open() { ::mprotect(base_, kSize, PROT_READ | PROT_WRITE); }
  void close() { ::mprotect(base_, kSize, PROT_NONE); }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kSize = size_t{64} << 20;

  void* do_allocate(size_t n_bytes, size_t alignment) override {
    used_ = (used_ + alignment - 1) / alignment * alignment;
    if (used_ + n_bytes > kSize) throw std::bad_alloc();
    void* at = base_ + used_;
    used_ += n_bytes;
    return at;
  }
  void do_deallocate(void* /*at*/, size_t /*n_bytes*/, size_t /*alignment*/) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::byte* base_;
  size_t used_ = 0;
};

class GuardedExecutor final : public DelegatingExecutor {
 public:
  explicit GuardedExecutor(GuardedMemory& memory)
      : GuardedExecutor(memory, std::make_unique<ReferenceExecutor>(ExecutorOptions{1}, &memory)) {}
  Activation embed(const Weight& table, EmbedBy by) override {
    Activation x = DelegatingExecutor::embed(table, by);
    first_address_ = reference_.rows(x).data;
    return x;
  }
  float* first_address() const { return first_address_; }

 protected:
  void enter(std::string_view /*op*/) override { memory_.open(); }
  void leave() override { memory_.close(); }

 private:
  GuardedExecutor(GuardedMemory& memory, std::unique_ptr<ReferenceExecutor> reference)
      : DelegatingExecutor(std::move(reference)),
        memory_(memory),
        reference_(static_cast<ReferenceExecutor&>(inner())) {}

  GuardedMemory& memory_;
  ReferenceExecutor& reference_;
  float* first_address_ = nullptr;
};

TEST(Contract, TheDecoderNeverReadsATensor) {
  GuardedMemory memory;
  auto owned = std::make_unique<GuardedExecutor>(memory);
  const GuardedExecutor* guarded = owned.get();
  const auto model = Model::load(testing::tiny_checkpoint(), std::move(owned));
  const auto plain =
      Model::load(testing::tiny_checkpoint(), make_reference_executor({.n_threads = 1}));
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
  const auto run = [&](Model& m) {
    const auto cache = m.make_cache(64, DType::kF32, DType::kF32);
    const StepItem item{cache->add_sequence(), tokens, StepItem::Outputs::kAll};
    const auto logits = m.step(*cache, {&item, 1});
    return std::vector<float>(logits.begin(), logits.end());
  };
  EXPECT_EQ(run(*model), run(*plain));
  EXPECT_GT(memory.used(), 0u);

  // The guard is real: a host read of that memory dies.
  volatile const float* hidden = guarded->first_address();
  EXPECT_DEATH({ [[maybe_unused]] const float value = *hidden; }, "");
  memory.open();
}

TEST(Contract, StepsOfOneShapeUseTheSameAddresses) {
  GuardedMemory memory;
  auto owned = std::make_unique<GuardedExecutor>(memory);
  const GuardedExecutor* guarded = owned.get();
  const auto model = Model::load(testing::tiny_checkpoint(), std::move(owned));
  const auto cache = model->make_cache(64, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  const auto step = [&](int32_t token) {
    const StepItem item{sequence, {&token, 1}, StepItem::Outputs::kLast};
    model->step(*cache, {&item, 1});
  };
  step(1);
  step(2);
  const float* address = guarded->first_address();
  const size_t used = memory.used();
  for (int32_t token = 3; token < 10; ++token) {
    step(token);
    EXPECT_EQ(guarded->first_address(), address);
  }
  EXPECT_EQ(memory.used(), used) << "a step allocated";
  memory.open();
}

}  // namespace
}  // namespace limpid
