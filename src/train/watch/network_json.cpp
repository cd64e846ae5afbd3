#include "train/watch/network_json.h"

#include "base/base64.h"

namespace limpid {

std::string packed_f32(std::span<const float> numbers) { return base64(std::as_bytes(numbers)); }

std::string packed_f32(std::span<const double> numbers) {
  const std::vector<float> rounded(numbers.begin(), numbers.end());
  return packed_f32(rounded);
}

int NetworkJson::add_group(const std::string& name, int64_t column, int64_t size,
                           const std::vector<std::string>& labels) {
  groups_.push_back({{"name", name}, {"column", column}, {"size", size}, {"labels", labels}});
  return static_cast<int>(groups_.size()) - 1;
}

void NetworkJson::add_connections(const std::string& name, int from, int to,
                                  const microgpt::Matrix& matrix, bool is_embedding) {
  connections_.push_back({{"name", name},
                          {"from", from},
                          {"to", to},
                          {"offset", matrix.offset},
                          {"rows", matrix.rows},
                          {"cols", matrix.cols},
                          {"is_embedding", is_embedding}});
}

Json NetworkJson::json(const char* kind, int64_t n_weights, const microgpt::Config& config) const {
  return {{"groups", groups_},
          {"connections", connections_},
          {"kind", kind},
          {"n_weights", n_weights},
          {"n_steps", config.num_steps},
          {"learning_rate", config.learning_rate}};
}

}  // namespace limpid
