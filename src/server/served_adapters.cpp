#include "server/served_adapters.h"

#include <fmt/format.h>

namespace limpid {

std::vector<AdapterScale> read_adapter_scales(const JsonField& field) {
  std::vector<AdapterScale> scales;
  for (const JsonField& entry : field.elements()) {
    entry.allow_only({"id", "scale"});
    const JsonField id = entry.required("id");
    const auto scale = entry.find("scale");
    scales.push_back({id.integer(0, INT32_MAX), scale ? scale->number(-1e6, 1e6) : 1, id.name()});
  }
  return scales;
}

std::vector<ServedAdapter> ServedAdapters::list() const {
  const std::lock_guard lock(mutex_);
  return adapters_;
}

// A request that names some adapters turns the others off, as in llama-server. Otherwise its answer
// would depend on the scales that other clients have set.
std::vector<double> ServedAdapters::factors(
    const std::optional<std::vector<AdapterScale>>& asked) const {
  const std::lock_guard lock(mutex_);
  std::vector<double> factors(adapters_.size(), 0);
  if (!asked) {
    for (size_t i = 0; i < factors.size(); ++i) factors[i] = adapters_[i].scale;
    return factors;
  }
  for (const AdapterScale& scale : *asked) {
    if (scale.id >= std::ssize(factors))
      throw ApiError(400,
                     fmt::format("{} is {}, and the model has {} adapters", scale.name, scale.id,
                                 factors.size()),
                     scale.name);
    factors[static_cast<size_t>(scale.id)] = scale.scale;
  }
  return factors;
}

// factors() takes the mutex too, so it comes first. Scales that another request sets in between are
// overwritten, as if that request had come a moment earlier.
void ServedAdapters::set_scales(const std::vector<AdapterScale>& asked) {
  const std::vector<double> scales = factors(asked);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < scales.size(); ++i) adapters_[i].scale = scales[i];
}

}  // namespace limpid
