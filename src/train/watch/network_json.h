// How the numbers of a network that learns are written for the page that draws them.
//
// A network is {"groups", "connections"}: groups of neurons in columns from left to right, and
// matrices of weights between them. A snapshot of it has
//   weights, gradients                  [n_weights], at the offsets of the connections
//   activations, activation_gradients   [n_positions, n_neurons], neurons in the order of groups
//   attention                           [n_positions, n_layers, n_heads, n_positions]: the weights
//                                       with which a position (first) reads others; of microgpt
// as base64 of little-endian f32.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/microgpt/parameters.h"

namespace limpid {

using Json = nlohmann::ordered_json;

std::string packed_f32(std::span<const double> numbers);
std::string packed_f32(std::span<const float> numbers);

class NetworkJson {
 public:
  // Returns the number of the group. `labels` are names of its neurons, or empty.
  int add_group(const std::string& name, int64_t column, int64_t size,
                const std::vector<std::string>& labels = {});
  // Rows of the matrix belong to the neurons of `to`, columns to those of `from`; the other way
  // round where it is an embedding, whose row is chosen by an input.
  void add_connections(const std::string& name, int from, int to, const microgpt::Matrix& matrix,
                       bool is_embedding = false);

  // Returns the network with what a page shows of its run.
  Json json(const char* kind, int64_t n_weights, const microgpt::Config& config) const;

 private:
  Json groups_ = Json::array();
  Json connections_ = Json::array();
};

}  // namespace limpid
