#include "jinja/name_table.h"

#include <gtest/gtest.h>

#include <string>

namespace limpid::jinja {
namespace {

int64_t n_comparisons = 0;

struct CountingName {
  std::string text;
  operator std::string_view() const { return text; }
  friend bool operator==(const CountingName& name, std::string_view other) {
    ++n_comparisons;
    return name.text == other;
  }
};

struct Row {
  CountingName name;
  int value;
};

TEST(JinjaNameTable, FindsWhatWasAdded) {
  for (const int n : {0, 1, 8, 9, 200}) {
    NameTable<Row> table;
    for (int i = 0; i < n; ++i) table.add({{"name" + std::to_string(i)}, i});
    for (int i = 0; i < n; ++i) {
      ASSERT_NE(table.find("name" + std::to_string(i)), nullptr) << i << " of " << n;
      EXPECT_EQ(table.find("name" + std::to_string(i))->value, i);
    }
    EXPECT_EQ(table.find("name" + std::to_string(n)), nullptr);
    int next = 0;
    for (const Row& row : table) EXPECT_EQ(row.value, next++);
    EXPECT_EQ(next, n);
  }
}

TEST(JinjaNameTable, ComparesAConstantNumberOfNames) {
  constexpr int kRows = 20000;
  NameTable<Row> table;
  n_comparisons = 0;
  for (int i = 0; i < kRows; ++i) {
    const std::string name = "name" + std::to_string(i);
    if (table.find(name) == nullptr) table.add({{name}, i});
  }
  for (int i = 0; i < kRows; ++i) table.find("name" + std::to_string(i));
  // One comparison for each name that is there; the first few are searched in order.
  EXPECT_LE(n_comparisons, kRows + 100);
}

}  // namespace
}  // namespace limpid::jinja
