// A tensor inside a forward pass: [rows, cols] f32, in memory that only its executor can read.
#pragma once

#include <cstdint>
#include <utility>

namespace limpid {

class Executor;

// Move-only handle. When it dies the executor may use its memory again, so the decoder just lets
// names go out of scope; an executor that must keep everything (a tape) ignores the release.
class Activation {
 public:
  Activation() = default;
  Activation(Executor* executor, int32_t id, int64_t rows, int64_t cols)
      : executor_(executor), id_(id), rows_(rows), cols_(cols) {}
  Activation(Activation&& other) noexcept
      : executor_(std::exchange(other.executor_, nullptr)),
        id_(other.id_),
        rows_(other.rows_),
        cols_(other.cols_) {}
  Activation& operator=(Activation&& other) noexcept {
    std::swap(executor_, other.executor_);
    std::swap(id_, other.id_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
    return *this;
  }
  ~Activation();  // calls Executor::release

  int32_t id() const { return id_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  explicit operator bool() const { return executor_ != nullptr; }

 private:
  Executor* executor_ = nullptr;
  int32_t id_ = -1;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

}  // namespace limpid
