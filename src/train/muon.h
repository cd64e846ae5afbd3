// Muon: momentum with equalised singular values (Jordan 2024, "Muon: An optimizer for hidden layers
// in neural networks"). For one matrix w [rows, cols] with gradient g:
//   m = mu m + (1 - mu) g
//   u = mu m + (1 - mu) g            (Nesterov: one step ahead)
//   o = orthogonalize(u)             (all singular values about 1)
//   w = decay w - learning_rate * 0.2 sqrt(max(rows, cols)) o
//
// The singular values of a gradient usually differ much: a few directions have nearly all of its
// length, and a plain step changes the weights only in these. In o every direction has the same
// length. The factor 0.2 sqrt(max(rows, cols)) makes an element of w change by about as much as
// with AdamW (Liu et al. 2025, arXiv:2502.16982, section 2.2; "match_rms_adamw" in torch), so one
// learning rate and one weight decay serve both.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "executor/cpu/isa.h"
#include "train/optimizer_kernels.h"

namespace limpid {

inline constexpr float kMuonMomentum = 0.95F;

struct MuonMatrix {
  float* w = nullptr;        // [rows, cols]
  const float* g = nullptr;  // as w
  float* m = nullptr;        // as w, the state
  int64_t rows = 0;
  int64_t cols = 0;
};

struct MuonStep {
  float gradient_scale = 1;  // of clipping
  float learning_rate = 0;
  float decay = 1;  // 1 - learning rate * weight decay
};

// The memory of the steps. Results have the same bits for any number of threads and on every
// instruction set.
class Muon {
 public:
  // Uses the kernels of the instruction set `isa`; "": the set that choose_isa("") chooses.
  explicit Muon(const char* isa = "");

  void step(const MuonMatrix& matrix, const MuonStep& step, ThreadPool& pool);

 private:
  void orthogonalize(int64_t rows, int64_t cols, ThreadPool& pool);

  const Kernels& kernels_;
  const OptimizerKernels& optimizer_kernels_;
  std::vector<float> x_;  // the matrix to orthogonalise, [rows, cols] with rows >= cols
  std::vector<float> next_;
  std::vector<float> gram_;    // x^T x
  std::vector<float> scaled_;  // c x^T x
  std::vector<float> quadratic_;
  std::vector<float> scratch_;
};

}  // namespace limpid
