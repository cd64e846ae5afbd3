#include "quantize/input_recorder.h"

#include <algorithm>

namespace limpid {

Weight InputRecorder::load_weight(const WeightSource& source) {
  const Weight weight = inner().load_weight(source);
  names_[weight.id] = source.name;
  return weight;
}

void InputRecorder::begin_step() {
  inputs_.clear();
  inner().begin_step();
}

void InputRecorder::linear(const Activation& x, std::span<Projection> projections) {
  Input input;
  for (const Projection& projection : projections) {
    const std::string& name = names_.at(projection.weight.id);
    // GPT-2's Q, K and V are rows of the same tensor and have the same input.
    if (std::ranges::find(input.tensors, name) == input.tensors.end())
      input.tensors.push_back(name);
  }
  input.values = inner().scale(x, 1.0F);
  inputs_.push_back(std::move(input));
  inner().linear(x, projections);
}

// The sums are in f64, and their order is fixed: row by row, column by column.
void InputRecorder::add_step(int64_t first_row) {
  std::vector<float> values;
  for (const Input& input : inputs_) {
    const auto n_cols = static_cast<size_t>(input.values.cols());
    values.resize(static_cast<size_t>(input.values.rows()) * n_cols);
    inner().read(input.values, values);
    for (const std::string& name : input.tensors) {
      Sums& sums = sums_[name];
      sums.values.resize(n_cols);
      for (auto row = static_cast<size_t>(first_row) * n_cols; row < values.size(); row += n_cols) {
        for (size_t i = 0; i < n_cols; ++i) {
          const double value = values[row + i];
          sums.values[i] += value;
          sums.squares += value * value;
        }
        ++sums.n_rows;
      }
    }
  }
  inputs_.clear();
}

}  // namespace limpid
