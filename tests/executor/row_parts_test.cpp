// A weight whose rows lie in several places gives the bits of the same weight in one.
#include <gtest/gtest.h>

#include "executor/cpu/cpu_executor.h"
#include "executor/executors.h"
#include "executor/op_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr int64_t kRows = 80, kCols = 70, kTokens = 40;

// `source`, with its rows cut before each of `cuts`, in memory of their own.
struct Parts {
  Parts(const WeightSource& source, std::span<const int64_t> cuts) : cut(source) {
    const TensorView& whole = source.tensor;
    int64_t begin = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const int64_t end = i < cuts.size() ? cuts[i] : whole.shape.rows();
      copies.emplace_back(whole.row(begin), whole.row(end));
      cut.row_parts.push_back({whole.dtype, {end - begin, whole.shape.cols()}, nullptr});
      begin = end;
    }
    for (size_t i = 0; i < copies.size(); ++i) cut.row_parts[i].data = copies[i].data();
    cut.tensor.data = nullptr;
  }
  WeightSource cut;
  std::vector<std::vector<std::byte>> copies;
};

// Rows of the table at the ids 0, 2, 4, …, and the projection of all tokens and of the first.
std::vector<float> run(Executor& executor, const WeightSource& table, const WeightSource& weight) {
  const Weight rows = executor.load_weight(table);
  const Weight matrix = executor.load_weight(weight);
  executor.reserve(kTokens, 1);
  std::vector<float> all;
  for (const int64_t n_tokens : {kTokens, int64_t{1}}) {
    StepInputs& inputs = executor.inputs();
    inputs.clear();
    for (int64_t t = 0; t < n_tokens; ++t) {
      inputs.token_ids.push_back(static_cast<int32_t>(2 * t));
      inputs.positions.push_back(static_cast<int32_t>(t));
      inputs.sequences.push_back(0);
    }
    executor.begin_step();
    const Activation x = executor.embed(rows, EmbedBy::kTokenId);
    Projection projection{matrix, {}, {}};
    executor.linear(x, {&projection, 1});
    for (const Activation* y : {&x, static_cast<const Activation*>(&projection.y)}) {
      std::vector<float> values(static_cast<size_t>(y->rows() * y->cols()));
      executor.read(*y, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    executor.end_step();
  }
  return all;
}

TEST(RowParts, GiveTheBitsOfTheWhole) {
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(make_reference_executor({2, ""}));
  for (const std::string_view isa : available_isas())
    executors.push_back(make_cpu_executor({2, std::string(isa)}));
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Tensor t = random_tensor(dtype, kRows, kCols, 1);
    const Tensor w = random_tensor(dtype, kRows, kCols, 2);
    const WeightSource table{"t", t, WeightUse::kLookup};
    for (const RowOrder order : {RowOrder::kHalfSplit, RowOrder::kInterleavedPairs}) {
      const WeightSource weight{"w", w, WeightUse::kProjection, order, 20};
      for (const auto& executor : executors) {
        const std::vector<float> expected = run(*executor, table, weight);
        for (const std::vector<int64_t>& cuts :
             {std::vector<int64_t>{40}, {5, 16, 37}, {1, 2, 79}}) {
          const Parts table_parts(table, cuts), weight_parts(weight, cuts);
          EXPECT_EQ(run(*executor, table_parts.cut, weight_parts.cut), expected)
              << executor->name() << " " << dtype_info(dtype).name << " first cut " << cuts[0];
        }
      }
    }
  }
}

TEST(RowParts, ThatDoNotMakeUpTheTensorAreRefused) {
  const Tensor w = random_tensor(DType::kF16, kRows, kCols, 2);
  const WeightSource whole{"w", w, WeightUse::kProjection};
  const std::vector<int64_t> cuts = {40};
  const auto refused = [&](auto spoil) {
    Parts parts(whole, cuts);
    spoil(parts.cut.row_parts);
    EXPECT_THROW(make_reference_executor({1, ""})->load_weight(parts.cut), ShapeError);
    EXPECT_THROW(make_cpu_executor({1, ""})->load_weight(parts.cut), ShapeError);
  };
  refused([](auto& parts) { parts.pop_back(); });
  refused([](auto& parts) { parts[1].dtype = DType::kBF16; });
  refused([](auto& parts) { parts[0].shape = {kRows / 2, kCols - 1}; });
}

}  // namespace
}  // namespace limpid
