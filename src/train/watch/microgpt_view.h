// What a page shows of microgpt while it learns.
#pragma once

#include <string>
#include <vector>

#include "train/microgpt/scalar_gpt.h"
#include "train/microgpt/trainer.h"
#include "train/watch/network_json.h"

namespace limpid {

// Weights and gradients are those of the trainer's engine. The activations of the current name, and
// the loss's derivatives by them, are computed from these weights with the scalar model, which all
// engines agree with. Random numbers of its own make up names, so that looking changes nothing.
class MicrogptView {
 public:
  // Above this, drawing each weight takes too long and shows too little.
  static constexpr int64_t kMostWeights = 100'000;

  // Throws ArgumentError for a model of more weights.
  explicit MicrogptView(const microgpt::Trainer& trainer);
  MicrogptView(const MicrogptView&) = delete;
  MicrogptView& operator=(const MicrogptView&) = delete;

  Json network() const;
  // Call it between Trainer::look() and the update that follows.
  Json snapshot(const microgpt::Trainer& trainer);

 private:
  Json current_name(const std::vector<microgpt::Token>& document);
  std::string made_up_name();

  microgpt::Config config_;
  microgpt::Alphabet alphabet_;
  microgpt::Matrices matrices_;
  microgpt::Graph graph_;
  microgpt::ScalarGpt gpt_;
  microgpt::PythonRandom random_;
};

}  // namespace limpid
