// Compares two runs over the same text: a model with and without a change inside, or two models, or
// two quantisations of one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "insight/prediction.h"
#include "insight/probe_executor.h"
#include "model/model.h"

namespace limpid {

// An activation of a model, or some of its columns. Those that can be changed have short names:
//   L3        the residual stream after block 3
//   L3.attn   what its attention adds
//   L3.H5     what its head 5 read, before the output projection
//   L3.mlp    what its MLP adds
struct ModelPart {
  Place place = Place::kFfnResidual;
  int64_t layer = -1;  // -1: outside the blocks
  int64_t first_column = 0;
  int64_t n_columns = -1;  // -1: all

  // Its columns of a row of the activation.
  template <typename T>
  std::span<T> of(std::span<T> row) const {
    return n_columns < 0 ? row : row.subspan(size_of(first_column), size_of(n_columns));
  }
};

// The two halves of "L3.attn" and of "blk.3.attn": the layer, and what is in it.
struct NameInLayer {
  int64_t layer = 0;
  std::string_view rest;  // empty for "L3"
};
std::optional<NameInLayer> name_in_layer(std::string_view name);

// Reads "L3.H5". "L3.attention" is "L3.attn"; the names of places (place.h) are read too where they
// mean such a part: "L3.attn_output", "blk.3.ffn_output", "L3.ffn_residual". Nothing for other
// texts. Throws ArgumentError for layers and heads that the model does not have.
std::optional<ModelPart> find_part(std::string_view name, const DecoderSpec& spec);
// The same. Throws ArgumentError for other texts too.
ModelPart model_part(std::string_view name, const DecoderSpec& spec);

// A change of one part while the model runs:
//   x = keep * x + everywhere        at all positions, or, if `at` has positions, at those alone
//   x = keep * x + at[position]
// Ablation keeps nothing and adds nothing. Patching keeps nothing and adds what the part was in
// another run (activation patching; Meng et al. 2022, arXiv:2202.05262). Steering keeps everything
// and adds a direction (Turner et al. 2023, arXiv:2308.10248).
struct Edit {
  ModelPart part;
  float keep = 0;
  std::vector<float> everywhere{};             // [columns of the part], or empty for zeros
  std::map<int64_t, std::vector<float>> at{};  // by position
};

// Applies the edits to every step of the probe's model until they are replaced; no edits end it.
void set_edits(ProbeExecutor& probe, std::vector<Edit> edits);

// The values of a part at each position of a text.
using PartValues = std::vector<std::vector<float>>;
// Of each of the parts.
std::vector<PartValues> values_of_parts(Model& model, ProbeExecutor& probe,
                                        std::span<const ModelPart> parts,
                                        std::span<const int32_t> token_ids);

// How the second run differs from the first.
struct Contrast {
  // The residual stream after each block, the embedding first: ||b - a|| / ||a|| over all tokens.
  std::vector<double> distance;        // [1 + n_layers]; empty where the models differ in shape
  std::vector<double> token_distance;  // [n_tokens], after the last block
  // KL(a || b) of the next token's distribution after each token, in bits (Kullback & Leibler
  // 1951).
  std::vector<double> divergence;  // [n_tokens]
  // Of each run [n_tokens], in bits; NaN for the first token.
  std::array<std::vector<double>, 2> surprise;
  struct Change {
    int32_t id = 0;
    double before = 0;  // probabilities of this token as the next one
    double after = 0;
  };
  // After each token, the largest changes, descending; none where the predictions are equal.
  std::vector<std::vector<Change>> changes;  // [n_tokens]

  // The first layer whose stream differs, -1 for the embedding; n_layers if none does.
  int64_t first_layer() const;
  // The mean surprise of a run over the tokens from the second on.
  double mean_surprise(int run) const;
  double mean_divergence() const;
};

// A change of a probability by less is not shown to people, who see tenths of a percent.
inline constexpr double kLeastShownChange = 0.0005;
// How many changes are kept.
struct ContrastOptions {
  int64_t n_last = 20;            // after the last token
  int64_t n_each = 10;            // after each other token, fewer in a long text
  int64_t most_changes = 40'000;  // of all tokens together, but one of each
};

// One side of a contrast. `edits` are in force while it runs.
struct ContrastRun {
  Model& model;
  ProbeExecutor& probe;
  std::vector<Edit> edits = {};
};

// Runs both over the tokens, chunk by chunk, with KV caches in f32. They need vocabularies of one
// size (ArgumentError), and may be the same model. Throws what Model::step throws.
Contrast contrast(ContrastRun first, ContrastRun second, std::span<const int32_t> token_ids,
                  const ContrastOptions& options = {});

}  // namespace limpid
