#include "model/spec_reader.h"

#include <cmath>

#include "base/check.h"

namespace limpid {

SpecReader::SpecReader(const Checkpoint& checkpoint, std::string prefix)
    : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

std::string SpecReader::key(std::string_view name) {
  std::string full = prefix_ + "." + std::string(name);
  asked_.insert(full);
  return full;
}

void SpecReader::fail(std::string_view name, const std::string& problem) const {
  throw FormatError(checkpoint_.path, FormatError::kNoOffset, prefix_ + "." + std::string(name),
                    problem);
}

int64_t SpecReader::required_size(std::string_view name, int64_t largest) {
  if (!checkpoint_.metadata.contains(key(name)))
    fail(name, "is missing; the model cannot be run without it");
  return size_or(name, 0, largest);
}

int64_t SpecReader::size_or(std::string_view name, int64_t fallback, int64_t largest) {
  const std::optional<int64_t> value = checkpoint_.metadata.integer(key(name));
  if (!value) return fallback;
  if (*value < 1 || *value > largest)
    fail(name, fmt::format("is {}, expected 1 to {}", *value, largest));
  return *value;
}

double SpecReader::positive_or(std::string_view name, double fallback) {
  const double value = checkpoint_.metadata.number(key(name)).value_or(fallback);
  if (!std::isfinite(value) || value <= 0)
    fail(name, fmt::format("is {}, expected a number above 0", value));
  return value;
}

std::string SpecReader::string_or(std::string_view name, std::string_view fallback) {
  return std::string(checkpoint_.metadata.string(key(name)).value_or(fallback));
}

void SpecReader::ignore(std::string_view name) { key(name); }

void SpecReader::require_neutral(std::string_view name, double neutral) {
  const std::string full = key(name);
  const MetadataValue* found = checkpoint_.metadata.find(full);
  if (found == nullptr) return;
  const bool* flag = std::get_if<bool>(&found->value);
  const double value =
      flag != nullptr ? static_cast<double>(*flag) : checkpoint_.metadata.number(full).value();
  LIMPID_CHECK(UnsupportedError, value == neutral,
               "{}: {} is {}; Limpid runs only models where it is {}", checkpoint_.path, full,
               value, neutral);
}

void SpecReader::refuse_the_rest() const {
  for (const auto& [name, value] : checkpoint_.metadata.all()) {
    const bool ours =
        name.starts_with(prefix_) && name.size() > prefix_.size() && name[prefix_.size()] == '.';
    LIMPID_CHECK(UnsupportedError, !ours || asked_.contains(name),
                 "{}: the key {} may change the result and Limpid does not know it",
                 checkpoint_.path, name);
  }
}

}  // namespace limpid
