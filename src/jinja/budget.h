// What a render may spend: work, memory, depth. Everything that a template can make large is
// charged here.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace limpid::jinja {

inline constexpr const char* kNotSupported = " is not supported in chat templates";

// A template that cannot be parsed or rendered. It is not seen outside of src/jinja/ and its
// callers: ChatTemplate catches it, adds line and column, and throws the public Error or
// UnsupportedError. There are three kinds. kError is a mistake, such as adding a number to a text;
// kUnsupported is a part of Jinja that this interpreter lacks; kRaised is a refusal by the template
// itself, which is not a mistake.
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

// Throws a Fault with a formatted message.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault(fmt::format(format, std::forward<Args>(args)...));
}
// Throws a Fault for something that Jinja has and this interpreter lacks: "filter 'xmlattr'".
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault(fmt::format(format, std::forward<Args>(args)...) + kNotSupported,
              Fault::Kind::kUnsupported);
}

// The limits of one render. A template comes from a stranger, and a short one can ask for hours or
// for terabytes ({{ 'a' * 1000000000000 }}), so two accounts are kept:
//   - Steps are spent and never come back. Work is charged where it happens: the walk over the tree
//     charges statements and expressions, a builtin the bytes that it reads and writes.
//   - Memory is held and released. Each Object adds its size when it is made and takes it back
//     when it goes, so the account is the sum of what is alive. A large buffer that is not yet an
//     Object is announced with check_room first; then the limit holds before the allocation.
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

  // For a buffer that is not an Object yet: call before allocating. Throws Fault when more than
  // max_bytes would be alive.
  void check_room(size_t bytes) const {
    if (bytes > static_cast<size_t>(max_bytes_ - bytes_alive_)) {
      throw Fault("the template needs more memory than the limit allows");
    }
  }
  // The same, and the steps of filling the buffer.
  void pay_for_buffer(size_t bytes) {
    check_room(bytes);
    spend_bytes(bytes);
  }
  void hold(int64_t bytes) {
    check_room(static_cast<size_t>(bytes));
    bytes_alive_ += bytes;
  }
  // Never fails: subtracts bytes that hold() has added.
  void release(int64_t bytes) { bytes_alive_ -= bytes; }

  int64_t max_depth() const { return max_depth_; }

 private:
  int64_t units_left_;
  int64_t max_bytes_;
  int64_t max_depth_;
  int64_t bytes_alive_ = 0;
};

// Counts a level of nesting while it lives.
class Level {
 public:
  explicit Level(int64_t& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int64_t& depth_;
};

}  // namespace limpid::jinja
