// Measures the mean activation in each column of each matrix's input, by running the model over a
// short text.
//
// Why means matter. Let a row have the quantisation error e, and let its input x have the mean m
// and the variance v in each column. The expected square of the product's error is
//   E[(e . x)^2] = sum_j v_j e_j^2 + (e . m)^2
// Choosing the nearest level for each weight minimises the first term only. The second term is the
// square of one number per row, and it is not small: in language models the mean often has as much
// energy as everything else, because a few columns always have large values of one sign.
//
// Example: levels 0 and 1, w = (0.45, 0.45), m = (3, 1), v = 0.1. Rounding gives (0, 0): e =
// (-0.45, -0.45), and 0.1 * 0.405 + 1.8^2 = 3.28. Moving the second weight to its other neighbour
// gives (0, 1): e = (-0.45, 0.55), and 0.1 * 0.505 + 0.8^2 = 0.69, although (0, 0) is nearer to w.
// tensor/quantize_drift.h chooses such moves.
//
// The means of one text are useful for other texts; the measurements are in
// docs/adr/0005-the-quantiser-runs-the-model.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "executor/delegating_executor.h"

namespace limpid {

// An executor that adds up the inputs of each matrix, which it reads within the step. The first
// position of a sequence attends only to itself, and its activations are unlike those of all other
// positions, so it is left out. A step must want the outputs of all of its tokens.
class InputRecorder final : public DelegatingExecutor {
 public:
  struct Sums {
    std::vector<double> values;  // of each column
    double squares = 0;          // of all columns
    int64_t n_rows = 0;
  };

  using DelegatingExecutor::DelegatingExecutor;

  // Sums by tensor name. Rows are added one by one in order, so that the sums do not depend on how
  // the tokens were divided into steps.
  const std::map<std::string, Sums>& sums() const { return sums_; }

  void linear(const Activation& x, std::span<Projection> projections) override;

 private:
  std::map<std::string, Sums> sums_;
};

// The input of one matrix.
struct InputMean {
  std::vector<float> mean;  // of each column
  float variance = 0;       // about the mean, on average over the columns
};

struct InputMeans {
  std::map<std::string, InputMean, std::less<>> of;  // by the name of the matrix
  // A sentence that explains why `of` is empty. Empty if `of` has means, or if they were not
  // requested.
  std::string not_measured;
};

// Returns the text that measure_inputs runs over.
std::string_view calibration_text();

// Runs the canonical `checkpoint` once over a short built-in text with its unquantised weights. A
// matrix that is only used for look-ups, or whose input is not finite, gets no mean. The pages of
// the files are released afterwards. The result is the same on every machine and for any number of
// threads. `progress` receives the tokens done and the total; returning false cancels
// (ResourceError). Throws the errors of Model::load, except that an UnsupportedError is stored in
// `not_measured`.
InputMeans measure_inputs(const Checkpoint& checkpoint, int n_threads,
                          const std::function<bool(uint64_t done, uint64_t total)>& progress);

}  // namespace limpid
