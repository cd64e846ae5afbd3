#include "executor/op_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensor/plain_blocks.h"

namespace limpid {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Fills `inputs` with tokens 0 … n-1 of one sequence, so that `embed` of a table gives its rows.
void set_tokens(Executor& executor, int64_t n) {
  StepInputs& inputs = executor.inputs();
  inputs.clear();
  for (int32_t t = 0; t < n; ++t) {
    inputs.token_ids.push_back(t);
    inputs.positions.push_back(t);
    inputs.sequences.push_back(0);
  }
  inputs.block_table_begin = {0, 0};
}

// Runs op(x, …) for random inputs of the same shape; outputs are wanted of every second row.
template <class Op>
std::vector<float> run_on_inputs(Executor& executor, int64_t rows, int64_t cols, float spread,
                                 Op&& op) {
  std::vector<float> values = random_values(rows * cols, 11);
  for (float& v : values) v *= spread;
  const Tensor first = Tensor::of({rows, cols}, values);
  const Tensor second = random_tensor(DType::kF32, rows, cols, 12);
  const Weight tables[] = {load_table(executor, first), load_table(executor, second)};
  set_tokens(executor, rows);
  for (int32_t t = 0; t < rows; t += 2) executor.inputs().output_rows.push_back(t);
  executor.begin_step();
  const Activation x = executor.embed(tables[0], EmbedBy::kTokenId);
  const Activation z = executor.embed(tables[1], EmbedBy::kTokenId);
  const Activation y = op(x, z);
  executor.end_step();
  return read_values(executor, y);
}

using Inputs = const Activation&;

void add_element_cases(std::vector<OpCase>& cases) {
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 15}, {3, 17}, {2, 64}, {5, 576}, {9, 4099}}) {
    const std::string size = fmt::format("[{},{}]", rows, cols);
    const auto add = [&, rows = rows, cols = cols](const std::string& name, double tolerance,
                                                   auto op) {
      cases.push_back({name + size, tolerance, [=](Executor& e) {
                         return run_on_inputs(e, rows, cols, 4.0F,
                                              [&](Inputs x, Inputs z) { return op(e, x, z); });
                       }});
    };
    add("add", 1e-7, [](Executor& e, Inputs x, Inputs z) { return e.add(x, z); });
    add("scale", 1e-7, [](Executor& e, Inputs x, Inputs) { return e.scale(x, 0.3F); });
    add("silu", 5e-7, [](Executor& e, Inputs x, Inputs) { return e.unary(UnaryKind::kSilu, x); });
    add("relu", 0, [](Executor& e, Inputs x, Inputs) { return e.unary(UnaryKind::kRelu, x); });
    add("gelu_tanh", 5e-7,
        [](Executor& e, Inputs x, Inputs) { return e.unary(UnaryKind::kGeluTanh, x); });
    add("gelu_erf", 5e-7,
        [](Executor& e, Inputs x, Inputs) { return e.unary(UnaryKind::kGeluErf, x); });
    add("swiglu", 5e-7, [](Executor& e, Inputs x, Inputs z) { return e.swiglu(x, z); });
    add("select_outputs", 0, [](Executor& e, Inputs x, Inputs) { return e.select_outputs(x); });
  }
}

// Gives 1 for each result that is NaN: such results cannot be compared by their difference.
void add_nan_cases(std::vector<OpCase>& cases) {
  for (const auto& [kind, name] :
       {std::pair{UnaryKind::kSilu, "silu"}, std::pair{UnaryKind::kRelu, "relu"},
        std::pair{UnaryKind::kGeluTanh, "gelu_tanh"}, std::pair{UnaryKind::kGeluErf, "gelu_erf"}}) {
    cases.push_back({fmt::format("{} of NaN", name), 0, [kind = kind](Executor& e) {
                       std::vector<float> y = run_on_inputs(
                           e, 3, 17, NAN, [&](Inputs x, Inputs) { return e.unary(kind, x); });
                       for (float& value : y) value = std::isnan(value) ? 1.0F : 0.0F;
                       return y;
                     }});
  }
}

void add_norm_cases(std::vector<OpCase>& cases) {
  for (const auto& [cols, heads] : {std::pair<int64_t, int64_t>{1, 1},
                                    {7, 1},
                                    {100, 1},
                                    {288, 1},
                                    {576, 1},
                                    {2048, 1},
                                    {64, 9},
                                    {40, 3}}) {
    for (const int64_t rows : {1, 3, 40}) {
      const std::string size = fmt::format("[{},{}x{}]", rows, heads, cols);
      const auto run = [rows = rows, cols = cols, heads = heads](Executor& e, bool layer,
                                                                 bool bias) {
        const Tensor w = random_tensor(DType::kF32, 1, cols, 21);
        const Tensor b = random_tensor(DType::kF16, 1, cols, 22);
        const Weight weight = e.load_weight({"norm", w, WeightUse::kVector});
        Weight shift;
        if (bias) shift = e.load_weight({"bias", b, WeightUse::kVector});
        return run_on_inputs(e, rows, cols * heads, 3.0F, [&](Inputs x, Inputs) {
          return layer ? e.layer_norm(x, weight, shift, 1e-5F) : e.rms_norm(x, weight, 1e-6F);
        });
      };
      cases.push_back(
          {"rms_norm" + size, 1e-6, [run](Executor& e) { return run(e, false, false); }});
      if (heads > 1 || cols == 1) continue;
      cases.push_back(
          {"layer_norm" + size, 2e-6, [run](Executor& e) { return run(e, true, true); }});
      cases.push_back(
          {"layer_norm_no_bias" + size, 2e-6, [run](Executor& e) { return run(e, true, false); }});
    }
  }
}

void add_rope_cases(std::vector<OpCase>& cases) {
  for (const auto& [head_dim, n_rot, heads] : {std::tuple<int64_t, int64_t, int64_t>{8, 8, 2},
                                               {48, 48, 3},
                                               {64, 64, 9},
                                               {80, 32, 2},
                                               {128, 128, 1}}) {
    cases.push_back({fmt::format("rope[{}x{}, {} rotated]", heads, head_dim, n_rot), 1e-6,
                     [head_dim = head_dim, n_rot = n_rot, heads = heads](Executor& e) {
                       std::vector<double> frequencies;
                       for (int64_t i = 0; i < n_rot / 2; ++i) {
                         frequencies.push_back(std::pow(
                             10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(n_rot)));
                       }
                       const RopeTable table = e.load_rope(frequencies, 64);
                       return run_on_inputs(e, 64, heads * head_dim, 1.0F, [&](Inputs x, Inputs) {
                         return e.rope(x, table, head_dim);
                       });
                     }});
  }
}

void add_embed_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                            DType::kQ4_1, DType::kQ5_0, DType::kQ5_1}) {
    for (const WeightUse use : {WeightUse::kLookup, WeightUse::kLookupAndHead}) {
      cases.push_back(
          {fmt::format("embed {} use {}", dtype_info(dtype).name, static_cast<int>(use)), 0,
           [=](Executor& e) {
             const Tensor table = random_tensor(dtype, 50, 96, 31);
             const Weight weight = e.load_weight({"table", table, use});
             StepInputs& inputs = e.inputs();
             set_tokens(e, 4);
             inputs.token_ids = {49, 0, 7, 7};
             inputs.positions = {3, 4, 20, 21};
             e.begin_step();
             const Activation y =
                 e.add(e.embed(weight, EmbedBy::kTokenId), e.embed(weight, EmbedBy::kPosition));
             e.end_step();
             return read_values(e, y);
           }});
    }
  }
}

// Rounding of sums in f32; int8 activations cost three decimal digits.
double linear_tolerance(DType dtype) { return is_quantized(dtype) ? 1.5e-2 : 2e-6; }

void add_linear_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const LinearCase& c) {
    cases.push_back({fmt::format("linear {}[{},{}] {} tokens{}{}", dtype_info(c.dtype).name, c.rows,
                                 c.cols, c.n_tokens, c.bias ? " bias" : "",
                                 c.interleaved_head_dim > 0 ? " paired" : ""),
                     linear_tolerance(c.dtype),
                     [c](Executor& e) { return run_linear(e, c, c.n_tokens); }});
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {33, 40}, {16, 100}, {130, 288}, {47, 1000}}) {
      for (const int64_t n_tokens : {1, 2, 5, 13, 24, 67})
        add({dtype, rows, cols, n_tokens, rows % 2 == 1, 0});
    }
    add({dtype, 96, 64, 3, true, 32});
    add({dtype, 96, 64, 30, true, 48});
    add({dtype, 8, 33000, 25, false, 0});  // rows too long for a panel
    add({dtype, 37, 2060, 29, true, 0});   // three chunks of columns, two panels
  }
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1}) {
    for (const int64_t n_tokens : {1, 2, 5, 13, 24, 67})
      add({dtype, 50, 96, n_tokens, n_tokens % 2 == 1, 0});
    add({dtype, 96, 64, 3, true, 32});
  }
}

void add_attention_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const AttentionCase& c, int64_t chunk) {
    std::string lengths;
    for (const int64_t n : c.lengths) lengths += fmt::format(" {}", n);
    cases.push_back(
        {fmt::format("attention {} {}x{} heads of {}, lengths{} in steps of {}",
                     dtype_info(c.dtype).name, c.n_kv_heads, c.group, c.head_dim, lengths, chunk),
         2e-6, [c, chunk](Executor& e) { return run_attention(e, c, chunk); }});
  };
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int64_t head_dim : {8, 32, 48, 64, 80, 128}) add({head_dim, 2, 3, dtype, {70}}, 70);
    for (const int64_t group : {1, 4, 8, 30}) add({48, 2, group, dtype, {67, 1, 130}}, 40);
    add({64, 3, 3, dtype, {600, 5}}, 200);
    add({64, 3, 3, dtype, {70}}, 1);
  }
}

}  // namespace

std::vector<float> read_values(Executor& executor, const Activation& x) {
  std::vector<float> out(static_cast<size_t>(x.rows() * x.cols()));
  executor.read(x, out);
  return out;
}

Weight load_table(Executor& executor, const Tensor& tensor) {
  return executor.load_weight({"table", tensor, WeightUse::kLookup});
}

std::vector<float> random_values(int64_t n, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = mix(mix(seed) + i);
    float sum = 0;  // of three uniform values in [-1, 1)
    for (int j = 0; j < 3; ++j)
      sum += static_cast<float>((bits >> (21 * j)) & 0x1FFFFF) / 0x1p20F - 1.0F;
    values[i] = sum;
  }
  return values;
}

Tensor random_tensor(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
  Tensor tensor(dtype, {rows, cols});
  const std::vector<float> values = random_values(rows * cols, seed);
  plain_blocks::encode(dtype, values, tensor.data());
  return tensor;
}

std::vector<float> run_linear(Executor& executor, const LinearCase& c, int64_t batch) {
  const Tensor x = random_tensor(DType::kF32, c.n_tokens, c.cols, 41);
  const Tensor w = random_tensor(c.dtype, c.rows, c.cols, 42);
  const Tensor b = random_tensor(DType::kF32, 1, c.rows, 43);
  const Weight table = load_table(executor, x);
  const RowOrder order =
      c.interleaved_head_dim > 0 ? RowOrder::kInterleavedPairs : RowOrder::kHalfSplit;
  const Weight weight =
      executor.load_weight({"w", w, WeightUse::kProjection, order, c.interleaved_head_dim});
  Weight bias;
  if (c.bias)
    bias = executor.load_weight({"b", b, WeightUse::kVector, order, c.interleaved_head_dim});
  executor.reserve(batch, 1);
  std::vector<float> all;
  for (int64_t begin = 0; begin < c.n_tokens; begin += batch) {
    const int64_t n = std::min(batch, c.n_tokens - begin);
    set_tokens(executor, n);
    std::iota(executor.inputs().token_ids.begin(), executor.inputs().token_ids.end(),
              static_cast<int32_t>(begin));
    executor.begin_step();
    // Twice, so that sharing rows among projections is part of the case.
    Projection projections[] = {{weight, bias, {}}, {weight, {}, {}}};
    executor.linear(executor.embed(table, EmbedBy::kTokenId), projections);
    executor.end_step();
    for (const Projection& p : projections) {
      const std::vector<float> y = read_values(executor, p.y);
      if (&p == projections) all.insert(all.end(), y.begin(), y.end());
      if (&p != projections && !c.bias) {  // both are the same product
        EXPECT_EQ(y, std::vector<float>(all.end() - static_cast<int64_t>(y.size()), all.end()));
      }
    }
  }
  return all;
}

std::vector<float> run_attention(Executor& executor, const AttentionCase& c, int64_t chunk) {
  const int64_t n_heads = c.n_kv_heads * c.group;
  const int64_t total = std::accumulate(c.lengths.begin(), c.lengths.end(), int64_t{0});
  const Tensor q = random_tensor(DType::kF32, total, n_heads * c.head_dim, 51);
  const Tensor k = random_tensor(DType::kF32, total, c.n_kv_heads * c.head_dim, 52);
  const Tensor v = random_tensor(DType::kF32, total, c.n_kv_heads * c.head_dim, 53);
  const Weight tables[] = {load_table(executor, q), load_table(executor, k),
                           load_table(executor, v)};
  const AttentionShape shape{n_heads, c.n_kv_heads, c.head_dim,
                             1.0F / std::sqrt(static_cast<float>(c.head_dim))};

  // Blocks of the sequences are dealt in turn, so that none is contiguous.
  KvLayout layout{2, c.n_kv_heads, c.head_dim, 0, c.dtype, c.dtype};
  std::vector<std::vector<int32_t>> blocks(c.lengths.size());
  for (int64_t i = 0; i < *std::ranges::max_element(c.lengths); i += kKvBlock) {
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      if (i < c.lengths[s]) blocks[s].push_back(static_cast<int32_t>(layout.n_blocks++));
    }
  }
  const auto kv = executor.allocate_kv(layout);

  std::vector<float> all(static_cast<size_t>(total * n_heads * c.head_dim));
  for (int64_t begin = 0; begin < *std::ranges::max_element(c.lengths); begin += chunk) {
    StepInputs& inputs = executor.inputs();
    inputs.clear();
    inputs.block_table_begin.push_back(0);
    int64_t first = 0;  // row of the sequence's token 0
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      for (int64_t t = begin; t < std::min(begin + chunk, c.lengths[s]); ++t) {
        inputs.token_ids.push_back(static_cast<int32_t>(first + t));
        inputs.positions.push_back(static_cast<int32_t>(t));
        inputs.sequences.push_back(static_cast<int32_t>(s));
      }
      inputs.block_table.insert(inputs.block_table.end(), blocks[s].begin(), blocks[s].end());
      inputs.block_table_begin.push_back(static_cast<int32_t>(inputs.block_table.size()));
      first += c.lengths[s];
    }
    executor.begin_step();
    const Activation y = executor.attention(
        executor.embed(tables[0], EmbedBy::kTokenId), executor.embed(tables[1], EmbedBy::kTokenId),
        executor.embed(tables[2], EmbedBy::kTokenId), *kv, 1, shape);
    executor.end_step();
    const std::vector<float> out = read_values(executor, y);
    for (int64_t t = 0; t < y.rows(); ++t) {
      std::copy_n(out.begin() + t * y.cols(), y.cols(),
                  all.begin() + inputs.token_ids[t] * y.cols());
    }
  }
  return all;
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_element_cases(cases);
  add_nan_cases(cases);
  add_norm_cases(cases);
  add_rope_cases(cases);
  add_embed_cases(cases);
  add_linear_cases(cases);
  add_attention_cases(cases);
  return cases;
}

double relative_error(const std::vector<float>& y, const std::vector<float>& expected) {
  if (y.size() != expected.size()) return INFINITY;
  double largest = 1e-3, error = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double difference = std::abs(double{y[i]} - expected[i]);
    error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
  }
  return error / largest;
}

}  // namespace limpid
