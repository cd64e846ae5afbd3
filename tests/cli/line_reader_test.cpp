#include "cli/line_reader.h"

#include <gtest/gtest.h>

#include <clocale>

namespace limpid::cli {
namespace {

void expect_place(std::wstring_view text, int start, int columns, TextPlace expected) {
  const TextPlace place = place_after(text, start, columns);
  EXPECT_EQ(place.row, expected.row);
  EXPECT_EQ(place.column, expected.column);
}

TEST(PlaceAfter, RowsAreFilledAndThenLeft) {
  expect_place(L"", 2, 10, {0, 2});
  expect_place(L"1234567", 2, 10, {0, 9});
  expect_place(L"12345678", 2, 10, {1, 0});
  expect_place(std::wstring(28, L'x'), 2, 10, {3, 0});
  expect_place(std::wstring(28, L'x'), 2, 20, {1, 10});
}

TEST(PlaceAfter, NewlinesBeginRows) {
  expect_place(L"one\ntwo", 2, 10, {1, 3});
  expect_place(L"one\n\n", 2, 10, {2, 0});
  expect_place(L"12345678\nx", 2, 10, {2, 1});  // the full row was left already
}

TEST(PlaceAfter, CountsColumnsNotCharacters) {
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  expect_place(L"日本", 0, 10, {0, 4});
  expect_place(L"日本", 1, 4, {1, 2});      // half of a wide character does not fit
  expect_place(L"e\u0301", 0, 10, {0, 1});  // a combining accent
  expect_place(L"\x1b", 0, 10, {0, 2});     // shown as ^[
}

TEST(PlaceAfter, WithoutAWidthThereIsOneRow) { expect_place(L"123456", 2, 0, {0, 8}); }

}  // namespace
}  // namespace limpid::cli
