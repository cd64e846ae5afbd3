// Three ways to ask which part of a model does what. Each changes the values of a part (a head, an
// MLP, the residual stream after a layer), runs the model again, and compares:
//
//   ablate   sets them to zero: is the part needed at all?
//   patch    takes them from a run over another text. If "The capital of Italy is" goes on with
//            Paris when one head gets its values from "The capital of France is", then that head
//            carries the country.
//   steer    adds a direction at every token: the values for one text minus those for its
//            opposite, as in "I love it" minus "I hate it". The text then goes on more like the
//            first one.
#include <fmt/ranges.h>

#include <limits>

#include "base/check.h"
#include "base/text.h"
#include "cli/explain.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal_text.h"

namespace limpid::cli {
namespace {

std::vector<ModelPart> parts_of(std::string_view option, std::string_view list,
                                const DecoderSpec& spec) {
  std::vector<ModelPart> parts;
  for (const std::string& name : split_full_list(list, option))
    parts.push_back(model_part(name, spec));
  return parts;
}

std::vector<TokenId> tokens_of(std::string_view option, const std::string& text,
                               const TextEncoder& encoder) {
  std::vector<TokenId> ids = encoder.encode(text, option);
  LIMPID_CHECK(ArgumentError, !ids.empty(), "{}: the text is empty, give at least one token",
               option);
  return ids;
}

void add_patch(const WhatIfFlags& values, Model& model, ProbeExecutor& probe,
               std::span<const TokenId> ids, const TextEncoder& encoder, std::vector<Edit>& edits) {
  const std::vector<TokenId> source = tokens_of("--patch", *values.patch, encoder);
  const int64_t n_source = std::ssize(source);
  std::vector<int64_t> positions = parse_integers(values.positions, "--positions");
  if (values.positions.empty()) {
    LIMPID_CHECK(ArgumentError, source.size() == ids.size(),
                 "the texts have {} and {}: say which to patch, --positions -1 for the last",
                 count(ids.size(), "token"), count(source.size(), "token"));
    for (int64_t t = 0; t < n_source; ++t) positions.push_back(t);
  }
  const std::vector<ModelPart> parts = parts_of("--at", *values.parts, model.spec());
  const auto found = values_of_parts(model, probe, parts, source);
  for (size_t i = 0; i < parts.size(); ++i) {
    Edit edit{parts[i]};
    for (const int64_t position : positions)  // negative ones align texts of two lengths
      edit.at[absolute_position(position, std::ssize(ids))] =
          found[i][size_of(absolute_position(position, n_source))];
    edits.push_back(std::move(edit));
  }
}

// Throws ArgumentError where the norm of `direction` is beyond f32. The model's own norms would
// then turn its stream into zeros, and give probabilities that look like any others.
void check_direction(std::span<const float> direction, float strength) {
  double squares = 0;
  for (const float x : direction) squares += static_cast<double>(x) * x;
  LIMPID_CHECK(
      ArgumentError, !(squares > std::numeric_limits<float>::max()),
      "--strength {}: so much of the direction is too large for the model's numbers (f32); "
      "give a smaller one",
      strength);
}

// The direction from text B to text A: the difference of the part's values at the last token of
// each.
void add_steering(const WhatIfFlags& values, Model& model, ProbeExecutor& probe,
                  const TextEncoder& encoder, std::vector<Edit>& edits) {
  const std::string middle = fmt::format("L{}", model.spec().n_layers / 2);
  const std::vector<ModelPart> parts =
      parts_of("--at", values.parts.value_or(middle), model.spec());
  const std::vector<TokenId> towards = tokens_of("--steer", *values.steer, encoder);
  const std::vector<TokenId> away = tokens_of("--minus", *values.minus, encoder);
  const auto plus = values_of_parts(model, probe, parts, towards);
  const auto minus = values_of_parts(model, probe, parts, away);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<float> direction = plus[i].back();
    for (size_t j = 0; j < direction.size(); ++j)
      direction[j] = values.strength * (direction[j] - minus[i].back()[j]);
    check_direction(direction, values.strength);
    edits.push_back({.part = parts[i], .keep = 1, .everywhere = std::move(direction)});
  }
}

}  // namespace

void declare_what_if(CLI::App& app, WhatIfFlags& values) {
  group(app, "what if");
  add_option(app, "--ablate PARTS", values.ablate,
             "run the model once more with parts set to zero: L3.H5 (a head), L3.attn, "
             "L3.mlp, L3 (the residual stream after a layer), between commas");
  CLI::Option* patch =
      add_option(app, "--patch TEXT", values.patch,
                 "run it with the parts of --at as they are in another text (activation patching)");
  CLI::Option* steer =
      add_option(app, "--steer TEXT", values.steer,
                 "run it with the direction from the text of --minus to this one added to the "
                 "parts of --at (the residual stream of the middle layer)");
  needs(add_option(app, "--minus TEXT", values.minus, "what --steer leads away from"), steer);
  needs(add_option(app, "--strength X", values.strength,
                   "how much of the direction --steer adds (1)"),
        steer);
  add_option(app, "--at PARTS", values.parts, "the parts that --patch and --steer change");
  needs(add_option(app, "--positions LIST", values.positions,
                   "the tokens that --patch changes; -1 is the last of each text (all)"),
        patch);
}

void check_what_if(const WhatIfFlags& values, const DecoderSpec& spec) {
  LIMPID_CHECK(ArgumentError, !values.parts || values.patch || values.steer,
               "--at says what --patch or --steer changes: give one of them as well");
  LIMPID_CHECK(ArgumentError, !values.patch || values.parts,
               "patch which part? give --at L6 (the residual stream), L6.attn, L6.mlp or L6.H2");
  LIMPID_CHECK(ArgumentError, !values.steer || values.minus,
               "steer away from what? give --minus TEXT, the opposite of --steer TEXT");
  if (values.ablate) parts_of("--ablate", *values.ablate, spec);
  if (values.parts) parts_of("--at", *values.parts, spec);
}

std::vector<Edit> edits_of(const WhatIfFlags& values, Model& model, ProbeExecutor& probe,
                           std::span<const TokenId> ids, const TextEncoder& encoder) {
  std::vector<Edit> edits;
  if (values.ablate) {
    for (const ModelPart& part : parts_of("--ablate", *values.ablate, model.spec()))
      edits.push_back({part});
  }
  if (values.patch) add_patch(values, model, probe, ids, encoder, edits);
  if (values.steer) add_steering(values, model, probe, encoder, edits);
  return edits;
}

std::string describe_edits(const WhatIfFlags& values) {
  std::vector<std::string> words;
  if (values.ablate) words.push_back("without " + *values.ablate);
  if (values.patch)
    words.push_back(fmt::format("with {} from {}", *values.parts, in_quotes(*values.patch)));
  if (values.steer)
    words.push_back(
        fmt::format("steered from {} to {}", in_quotes(*values.minus), in_quotes(*values.steer)));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace limpid::cli
