#include "generate/model_sampler.h"

#include <limits>
#include <type_traits>

#include "base/check.h"

namespace limpid {
namespace {

// Reads an optional setting: an absent key leaves `value` as it is.
template <typename Number>
void read(const Metadata& metadata, const std::string& path, const char* name, int least,
          Number& value) {
  const std::string key = std::string("general.sampling.") + name;
  const auto found = [&] {
    if constexpr (std::is_integral_v<Number>)
      return metadata.integer(key);
    else
      return metadata.number(key);
  }();
  if (!found) return;
  // A NaN fails both comparisons.
  const bool fits = *found >= least && *found <= std::numeric_limits<Number>::max();
  if (!fits) throw_format_error(path, key, "is {}, out of range", *found);
  value = static_cast<Number>(*found);
}

}  // namespace

SamplerOptions model_sampler_options(const Metadata& metadata, const std::string& path) {
  SamplerOptions options;
  read(metadata, path, "temp", 0, options.temperature);
  read(metadata, path, "top_k", 0, options.top_k);
  read(metadata, path, "top_p", 0, options.top_p);
  read(metadata, path, "min_p", 0, options.min_p);
  read(metadata, path, "xtc_probability", 0, options.xtc_probability);
  read(metadata, path, "xtc_threshold", 0, options.xtc_threshold);
  read(metadata, path, "penalty_last_n", -1, options.repeat_last_n);
  read(metadata, path, "penalty_repeat", 0, options.repeat_penalty);
  if (options.repeat_penalty == 0) options.repeat_penalty = 1;  // some files write 0 for "off"
  return options;
}

}  // namespace limpid
