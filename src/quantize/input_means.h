// What the matrices of a model meet when it reads a text: the mean activation in each column.
//
// Activations have much of their energy in their mean, so that the error of a quantised row along
// it weighs as much as all the rest. The means of one text serve for another
// (docs/adr/0005-the-quantiser-runs-the-model.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

struct InputMean {
  std::vector<float> mean;  // of each column
  float variance = 0;       // about the mean, on average over the columns
};

struct InputMeans {
  std::map<std::string, InputMean, std::less<>> of;  // by the matrix' name
  // A sentence about why there are none; empty where there are, or where nobody asked.
  std::string not_measured;
};

// The text that measure_inputs runs over.
std::string_view calibration_text();

// Runs `checkpoint` (canonical) once over a short built-in text, with the weights as they are: a
// matrix that is used for look-ups only, and one whose input is not finite, gets no mean. Weights
// are read once unless copies of the activations would take more than half a GiB, and their pages
// given back. The same numbers on every machine and for any number of threads. `progress` hears of
// tokens done and in all; false cancels (ResourceError). Throws what Model::load does but for
// UnsupportedError, which becomes `not_measured`.
InputMeans measure_inputs(const Checkpoint& checkpoint, int n_threads,
                          const std::function<bool(uint64_t done, uint64_t total)>& progress);

}  // namespace limpid
