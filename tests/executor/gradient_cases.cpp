// The cases of the backward ops, and of the forward ops that only training has. A case returns the
// gradients of the inputs, then those of the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/gradient_ops.h"
#include "executor/op_cases.h"

namespace limpid {
namespace {

using Lengths = std::vector<int64_t>;

// A weight of random values, and the memory of its gradient, which holds that of an earlier step.
struct Learned {
  Learned(Executor& executor, int64_t rows, int64_t cols, WeightUse use, uint64_t seed = 71)
      : tensor(random_tensor(DType::kF32, rows, cols, seed)),
        gradient(static_cast<size_t>(rows * cols), 1.0F),
        weight(executor.load_weight({"learned", tensor, use})) {
    executor.gradient_ops()->keep_gradient(weight, gradient);
  }
  Tensor tensor;
  std::vector<float> gradient;
  Weight weight;
};

void append(std::vector<float>& all, std::span<const float> values) {
  all.insert(all.end(), values.begin(), values.end());
}

// Calls op(gradient ops, activations) in a step of whole sequences. There is an activation of
// random values [n_tokens, width] for each of `widths`. Returns the activations that op returns,
// and then the gradients of `learned`.
template <class Op>
std::vector<float> run_in_step(Executor& executor, const Lengths& lengths, const Lengths& widths,
                               std::span<const Learned* const> learned, Op&& op) {
  const int64_t n_tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  std::vector<Tensor> values;
  for (size_t i = 0; i < widths.size(); ++i)
    values.push_back(random_tensor(DType::kF32, std::max<int64_t>(n_tokens, 1), widths[i], 61 + i));
  std::vector<Weight> tables;
  for (const Tensor& tensor : values) tables.push_back(load_table(executor, tensor));
  StepInputs& inputs = executor.inputs();
  inputs.clear();
  inputs.block_table_begin.push_back(0);
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int32_t t = 0; t < lengths[s]; ++t) {
      inputs.token_ids.push_back(static_cast<int32_t>(inputs.token_ids.size()));
      inputs.positions.push_back(t);
      inputs.sequences.push_back(static_cast<int32_t>(s));
    }
    inputs.block_table_begin.push_back(0);
  }
  for (int32_t t = 0; t < n_tokens; t += 2) inputs.output_rows.push_back(t);
  GradientOps& ops = *executor.gradient_ops();
  executor.begin_step();
  ops.begin_gradients();
  std::vector<Activation> x;
  for (const Weight& table : tables) x.push_back(executor.embed(table, EmbedBy::kTokenId));
  std::vector<float> all;
  const std::vector<Activation> results = op(ops, x);
  ops.finish_gradients();
  executor.end_step();
  for (const Activation& result : results) append(all, read_values(executor, result));
  for (const Learned* each : learned) append(all, each->gradient);
  return all;
}

using X = const std::vector<Activation>&;
using Results = std::vector<Activation>;

Results results(Activation first) {
  Results all;
  all.push_back(std::move(first));
  return all;
}
template <class... More>
Results results(Activation first, More... more) {
  Results all = results(std::move(first));
  (all.push_back(std::move(more)), ...);
  return all;
}

void add_element_cases(std::vector<OpCase>& cases) {
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 17}, {5, 576}, {9, 4099}}) {
    const auto add = [&, rows = rows, cols = cols](const std::string& name, double tolerance,
                                                   auto op) {
      cases.push_back(
          {fmt::format("gradient of {}[{},{}]", name, rows, cols), tolerance, [=](Executor& e) {
             return run_in_step(e, {rows}, {cols, cols, cols}, {},
                                [&](GradientOps& ops, X x) { return op(e, ops, x); });
           }});
    };
    for (const auto& [kind, name] :
         {std::pair{UnaryKind::kSilu, "silu"}, std::pair{UnaryKind::kRelu, "relu"},
          std::pair{UnaryKind::kGeluTanh, "gelu_tanh"}, std::pair{UnaryKind::kGeluErf, "gelu_erf"}})
      add(name, 1e-6, [kind = kind](Executor&, GradientOps& ops, X x) {
        return results(ops.unary(kind, x[0], x[1]));
      });
    add("swiglu", 1e-6, [](Executor&, GradientOps& ops, X x) {
      SwigluGradients d = ops.swiglu(x[0], x[1], x[2]);
      return results(std::move(d.dgate), std::move(d.dup));
    });
    add("select_outputs", 0, [](Executor& e, GradientOps& ops, X x) {
      return results(ops.select_outputs(e.select_outputs(x[0])));
    });
    add("dropout", 0, [](Executor&, GradientOps& ops, X x) {
      return results(ops.dropout(x[0], {0.3F, 7, 2}));
    });
    for (const DType dtype : {DType::kF16, DType::kBF16})
      add(fmt::format("narrow and widen, {}", dtype_info(dtype).name), 0,
          [dtype, cols = cols](Executor&, GradientOps& ops, X x) {
            return results(ops.widen(ops.narrow(x[0], dtype), cols, dtype));
          });
  }
}

void add_norm_cases(std::vector<OpCase>& cases) {
  for (const auto& [rows, cols, heads] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 7, 1}, {3, 100, 1}, {40, 576, 1}, {5, 64, 9}}) {
    const std::string size = fmt::format("[{},{}x{}]", rows, heads, cols);
    const Lengths widths(2, cols * heads);
    cases.push_back(
        {"gradient of rms_norm" + size, 3e-6, [=, rows = rows, cols = cols](Executor& e) {
           const Learned weight(e, 1, cols, WeightUse::kVector);
           const Learned* const learned[] = {&weight};
           return run_in_step(e, {rows}, widths, learned, [&](GradientOps& ops, X x) {
             return results(ops.norm(x[0], weight.weight, {}, 1e-6F, false, x[1]));
           });
         }});
    if (heads > 1) continue;
    cases.push_back(
        {"gradient of layer_norm" + size, 3e-6, [=, rows = rows, cols = cols](Executor& e) {
           const Learned weight(e, 1, cols, WeightUse::kVector);
           const Learned bias(e, 1, cols, WeightUse::kVector, 72);
           const Learned* const learned[] = {&weight, &bias};
           return run_in_step(e, {rows}, widths, learned, [&](GradientOps& ops, X x) {
             return results(ops.norm(x[0], weight.weight, bias.weight, 1e-5F, true, x[1]));
           });
         }});
  }
}

void add_matrix_cases(std::vector<OpCase>& cases) {
  for (const auto& [rows, cols, n_tokens] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                             {3, 5, 0},
                                             {3, 5, 2},
                                             {33, 40, 13},
                                             {130, 288, 67},
                                             {47, 1000, 24}}) {
    const std::string size = fmt::format("[{},{}] {} tokens", rows, cols, n_tokens);
    const Lengths widths = {cols, rows, rows + 2};
    const auto with_weights = [=, rows = rows, cols = cols, n_tokens = n_tokens](Executor& e,
                                                                                 auto op) {
      const Learned first(e, rows, cols, WeightUse::kProjection);
      const Learned second(e, rows + 2, cols, WeightUse::kProjection, 72);
      const Learned bias(e, 1, rows, WeightUse::kVector, 73);
      const Learned* const learned[] = {&first, &second, &bias};
      return run_in_step(e, {n_tokens}, widths, learned, [&](GradientOps& ops, X x) {
        return op(ops, x, first.weight, second.weight, bias.weight);
      });
    };
    cases.push_back(
        {"gradient of linear" + size, 3e-6, [=](Executor& e) {
           return with_weights(e, [](GradientOps& ops, X x, const Weight& first,
                                     const Weight& second, const Weight& bias) {
             const ProjectionGradient projections[] = {{first, bias, &x[1]}, {second, {}, &x[2]}};
             return results(ops.linear(x[0], projections, true));
           });
         }});
    cases.push_back({"project" + size, 3e-6, [=](Executor& e) {
                       return with_weights(e, [](GradientOps& ops, X x, const Weight& first,
                                                 const Weight& second, const Weight& bias) {
                         Projection projections[] = {{first, bias, {}}, {second, {}, {}}};
                         ops.project(x[0], projections);
                         return results(std::move(projections[0].y), std::move(projections[1].y));
                       });
                     }});
    cases.push_back(
        {"gradient of cross_entropy" + size, 3e-6,
         [rows = rows, cols = cols, n_tokens = n_tokens](Executor& e) {
           const Learned head(e, rows, cols, WeightUse::kProjection);
           const Learned* const learned[] = {&head};
           std::vector<LossTarget> targets;
           for (int32_t t = 0; t < n_tokens; ++t)
             targets.push_back({t * 7 % static_cast<int32_t>(rows), t % 5 == 3 ? 0.0F : 0.25F});
           std::vector<double> losses(targets.size());
           std::vector<float> all =
               run_in_step(e, {n_tokens}, {cols}, learned, [&](GradientOps& ops, X x) {
                 return results(ops.cross_entropy(x[0], head.weight, targets, losses, true));
               });
           for (const double loss : losses) all.push_back(static_cast<float>(loss));
           return all;
         }});
  }
}

void add_embed_cases(std::vector<OpCase>& cases) {
  for (const EmbedBy by : {EmbedBy::kTokenId, EmbedBy::kPosition}) {
    cases.push_back(
        {by == EmbedBy::kPosition ? "gradient of embed by position" : "gradient of embed", 1e-6,
         [=](Executor& e) {
           const Learned table(e, 50, 96, WeightUse::kLookup);
           const Learned* const learned[] = {&table};
           return run_in_step(e, {20, 9}, {96}, learned, [&](GradientOps& ops, X x) {
             for (int32_t& id : e.inputs().token_ids) id = id % 7 * 8;
             ops.embed(table.weight, by, x[0]);
             return Results();
           });
         }});
  }
}

void add_attention_cases(std::vector<OpCase>& cases) {
  cases.push_back({"gradient of rope", 1e-6, [](Executor& e) {
                     std::vector<double> frequencies;
                     for (int i = 0; i < 16; ++i)
                       frequencies.push_back(std::pow(10000.0, -i / 16.0));
                     const RopeTable table = e.load_rope(frequencies, 64);
                     return run_in_step(e, {40, 9}, {3 * 48}, {}, [&](GradientOps& ops, X x) {
                       return results(ops.rope(table, 48, x[0]));
                     });
                   }});
  for (const auto& [head_dim, group, n_kv_heads] :
       {std::tuple<int64_t, int64_t, int64_t>{6, 1, 2}, {64, 3, 3}, {80, 4, 1}, {128, 1, 2}}) {
    const int64_t width = n_kv_heads * head_dim;
    const AttentionShape shape{n_kv_heads * group, n_kv_heads, head_dim,
                               1.0F / std::sqrt(static_cast<float>(head_dim))};
    for (const float dropped : {0.0F, 0.3F}) {
      cases.push_back(
          {fmt::format("gradient of attention, {}x{} heads of {}, dropout {}", n_kv_heads, group,
                       head_dim, dropped),
           1e-5, [=, group = group](Executor& e) {
             const Dropout dropout{dropped, 5, 3};
             return run_in_step(
                 e, {70, 5, 130, 1}, {group * width, width, width, group * width}, {},
                 [&](GradientOps& ops, X x) {
                   Activation y = ops.attend_whole(x[0], x[1], x[2], shape, dropout);
                   AttentionGradients d = ops.attention(x[0], x[1], x[2], y, shape, dropout, x[3]);
                   return results(std::move(y), std::move(d.dq), std::move(d.dk), std::move(d.dv));
                 });
           }});
    }
  }
}

}  // namespace

std::vector<OpCase> gradient_cases() {
  std::vector<OpCase> cases;
  add_element_cases(cases);
  add_norm_cases(cases);
  add_matrix_cases(cases);
  add_embed_cases(cases);
  add_attention_cases(cases);
  return cases;
}

}  // namespace limpid
