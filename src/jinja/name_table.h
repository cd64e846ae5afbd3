// Rows with names, kept in the order in which they came.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace limpid::jinja {

// `Row` has a member `name` that converts to std::string_view and compares with one. A scope or a
// namespace mostly has a handful of names, for which comparing one by one is fastest; but a
// template may define thousands, and then look-ups in a list would take quadratic time. So few rows
// are searched in order, and from the ninth on there is an index by hash. Pointers to rows are
// valid until the next add.
template <typename Row>
class NameTable {
 public:
  // Up to here rows are compared one by one.
  static constexpr size_t kFew = 8;
  // What a row occupies, its entry in the index included.
  static constexpr size_t kBytesPerRow = sizeof(Row) + 6 * sizeof(void*);

  // Null when there is no such row.
  const Row* find(std::string_view name) const {
    if (index_.empty()) {
      for (const Row& row : rows_) {
        if (row.name == name) return &row;
      }
      return nullptr;
    }
    const auto [first, last] = index_.equal_range(hash(name));
    for (auto entry = first; entry != last; ++entry) {
      if (rows_[entry->second].name == name) return &rows_[entry->second];
    }
    return nullptr;
  }
  Row* find(std::string_view name) { return const_cast<Row*>(std::as_const(*this).find(name)); }
  // The name must not be there yet.
  void add(Row row) {
    rows_.push_back(std::move(row));
    if (rows_.size() <= kFew) return;
    for (size_t i = index_.empty() ? 0 : rows_.size() - 1; i < rows_.size(); ++i)
      index_.emplace(hash(rows_[i].name), i);
  }

  size_t size() const { return rows_.size(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  static size_t hash(std::string_view name) { return std::hash<std::string_view>{}(name); }

  std::vector<Row> rows_;
  std::unordered_multimap<size_t, size_t> index_;  // hash -> position; only when there are many
};

}  // namespace limpid::jinja
