#include "generate/model_sampler.h"

#include <cmath>

#include "base/check.h"

namespace limpid {
namespace {

// Reads optional settings: an absent key leaves the value as it is.
class Reader {
 public:
  Reader(const Metadata& metadata, const std::string& path) : metadata_(metadata), path_(path) {}

  void number(const char* name, float& value) const {
    const std::string key = full(name);
    const std::optional<double> found = metadata_.number(key);
    if (!found) return;
    const auto rounded = static_cast<float>(*found);
    if (!std::isfinite(rounded) || rounded < 0) fail(key, fmt::format("is {}", *found));
    value = rounded;
  }

  void integer(const char* name, int32_t least, int32_t& value) const {
    const std::string key = full(name);
    const std::optional<int64_t> found = metadata_.integer(key);
    if (!found) return;
    if (*found < least || *found > INT32_MAX) fail(key, fmt::format("is {}", *found));
    value = static_cast<int32_t>(*found);
  }

 private:
  static std::string full(const char* name) { return std::string("general.sampling.") + name; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw FormatError(path_, FormatError::kNoOffset, key, problem + ", out of range");
  }

  const Metadata& metadata_;
  const std::string& path_;
};

}  // namespace

SamplerOptions model_sampler_options(const Metadata& metadata, const std::string& path) {
  SamplerOptions options;
  const Reader reader(metadata, path);
  reader.number("temp", options.temperature);
  reader.integer("top_k", 0, options.top_k);
  reader.number("top_p", options.top_p);
  reader.number("min_p", options.min_p);
  reader.number("xtc_probability", options.xtc_probability);
  reader.number("xtc_threshold", options.xtc_threshold);
  reader.integer("penalty_last_n", -1, options.repeat_last_n);
  reader.number("penalty_repeat", options.repeat_penalty);
  if (options.repeat_penalty == 0) options.repeat_penalty = 1;  // some files write 0 for "off"
  return options;
}

}  // namespace limpid
