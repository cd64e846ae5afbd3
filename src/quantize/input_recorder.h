// An executor that keeps sums over what each matrix is multiplied with. It copies the input of each
// `linear`, so that one may throw ResourceError.
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

  // After a step: adds rows `first_row` and on of all that was multiplied in it. Rows are added one
  // after another, so that sums do not depend on how tokens were spread over steps.
  void add_step(int64_t first_row);
  // By the tensor's name.
  const std::map<std::string, Sums>& sums() const { return sums_; }

  Weight load_weight(const WeightSource& source) override;
  void begin_step() override;
  void linear(const Activation& x, std::span<Projection> projections) override;

 private:
  struct Input {
    std::vector<std::string> tensors;
    Activation values;  // a copy: nothing is read back within a step
  };

  std::map<int32_t, std::string> names_;  // of weights, by id
  std::vector<Input> inputs_;             // of the last step
  std::map<std::string, Sums> sums_;
};

}  // namespace limpid
