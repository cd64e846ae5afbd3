// What a render may spend: work, memory, depth. Everything that a template can make large goes
// through here.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace limpid::jinja {

// A template that cannot be parsed or rendered. It never leaves the room: ChatTemplate adds line
// and column and throws the public Error or UnsupportedError.
class Fault : public std::exception {
 public:
  // kRaised: by the template's own raise_exception.
  enum class Kind : uint8_t { kError, kUnsupported, kRaised };
  explicit Fault(std::string message, Kind kind = Kind::kError)
      : message_(std::move(message)), kind_(kind) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Kind kind() const { return kind_; }

 private:
  std::string message_;
  Kind kind_;
};

class Budget {
 public:
  // A step (statement, loop iteration) costs kUnitsPerStep units, an evaluated expression one unit,
  // and reading or writing 128 bytes one unit.
  static constexpr int64_t kUnitsPerStep = 16;

  Budget(int64_t max_steps, int64_t max_bytes, int64_t max_depth)
      : units_left_(max_steps > INT64_MAX / kUnitsPerStep ? INT64_MAX : max_steps * kUnitsPerStep),
        max_bytes_(max_bytes),
        max_depth_(max_depth) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void spend(int64_t units) {
    if (units > units_left_) throw Fault("the template takes more steps than the limit allows");
    units_left_ -= units;
  }
  void spend_step() { spend(kUnitsPerStep); }
  void spend_bytes(size_t n) { spend(static_cast<int64_t>(n / 128) + 1); }

  // Call before allocating. Throws Fault when more than max_bytes would be alive.
  void check_room(size_t bytes) const {
    if (bytes > static_cast<size_t>(max_bytes_ - bytes_alive_)) {
      throw Fault("the template needs more memory than the limit allows");
    }
  }
  void hold(int64_t bytes) {
    check_room(static_cast<size_t>(bytes));
    bytes_alive_ += bytes;
  }
  void release(int64_t bytes) { bytes_alive_ -= bytes; }

  int64_t max_depth() const { return max_depth_; }

 private:
  int64_t units_left_;
  int64_t max_bytes_;
  int64_t max_depth_;
  int64_t bytes_alive_ = 0;
};

}  // namespace limpid::jinja
