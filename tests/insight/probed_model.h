// A tiny model with a probe in its executor.
#pragma once

#include <memory>
#include <string>

#include "executor/executors.h"
#include "insight/probe_executor.h"
#include "model/model.h"
#include "model/tiny_checkpoint.h"

namespace limpid::testing {

struct ProbedModel {
  explicit ProbedModel(const TinyShape& shape, const std::string& executor = "cpu")
      : ProbedModel(tiny_checkpoint(shape), executor) {}
  explicit ProbedModel(std::shared_ptr<const Checkpoint> checkpoint,
                       const std::string& executor = "cpu") {
    auto owned = std::make_unique<ProbeExecutor>(make_executor(executor, {.n_threads = 2}));
    probe = owned.get();
    model = Model::load(std::move(checkpoint), std::move(owned));
  }
  std::unique_ptr<Model> model;
  ProbeExecutor* probe = nullptr;
};

// The families whose forward passes differ: norms, positions, biases, norms of Q and K.
inline TinyShape shape_of(const std::string& family) {
  TinyShape shape = family == "gpt2" ? tiny_gpt2_shape() : TinyShape{};
  shape.n_layers = 3;
  shape.qk_norm = family == "qwen3";
  shape.tied = family != "llama";
  return shape;
}

}  // namespace limpid::testing
