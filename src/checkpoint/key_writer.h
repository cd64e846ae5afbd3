// Sets keys below a prefix ("llama.") with the types that writers of GGUF use. A model then has the
// same values whether it was opened from its own layout or from a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoint/metadata.h"

namespace limpid {

// Keeps a reference to `metadata`.
class KeyWriter {
 public:
  KeyWriter(Metadata& metadata, std::string_view prefix) : metadata_(metadata), prefix_(prefix) {}
  void integer(std::string_view name, int64_t value) { set(name, {value, "u32"}); }
  // Rounds the value to f32.
  void number(std::string_view name, double value) {
    set(name, {double{static_cast<float>(value)}, "f32"});
  }
  void flag(std::string_view name, bool value) { set(name, {value, "bool"}); }
  void string(std::string_view name, std::string_view value) {
    set(name, {std::string(value), "string"});
  }

 private:
  void set(std::string_view name, MetadataValue value) {
    metadata_.set(prefix_ + std::string(name), std::move(value));
  }

  Metadata& metadata_;
  std::string prefix_;
};

}  // namespace limpid
