// An executor that adds up the inputs of each matrix. It copies the input of each `linear`, so
// `linear` may throw ResourceError here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/delegating_executor.h"

namespace limpid {

class InputRecorder final : public DelegatingExecutor {
 public:
  struct Sums {
    std::vector<double> values;  // of each column
    double squares = 0;          // of all columns
    int64_t n_rows = 0;
  };

  using DelegatingExecutor::DelegatingExecutor;

  // Adds the rows from `first_row` on of all inputs of the last step; call it after the step. Rows
  // are added one by one in order, so that the sums do not depend on how the tokens were divided
  // into steps.
  void add_step(int64_t first_row);
  // Sums by tensor name.
  const std::map<std::string, Sums>& sums() const { return sums_; }

  Weight load_weight(const WeightSource& source) override;
  void begin_step() override;
  void linear(const Activation& x, std::span<Projection> projections) override;

 private:
  struct Input {
    std::vector<std::string> tensors;
    Activation values;  // a copy; values can be read back only after the step
  };

  std::map<int32_t, std::string> names_;  // of the weights, by id
  std::vector<Input> inputs_;             // of the last step
  std::map<std::string, Sums> sums_;
};

}  // namespace limpid
