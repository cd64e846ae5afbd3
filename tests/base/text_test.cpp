#include "base/text.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"

namespace limpid {
namespace {

TEST(Text, IsTrimmed) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed_left(" a "), "a ");
  EXPECT_EQ(trimmed_right(" a "), " a");
  for (const auto* blank : {"", " ", "\r\n\t "}) EXPECT_EQ(trimmed(blank), "");
}

TEST(Text, ListsAreSplit) {
  EXPECT_EQ(split_list(",a,, b c ,  ,"), (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(split_list("a,b;c", ';'), (std::vector<std::string>{"a,b", "c"}));
  EXPECT_TRUE(split_list("").empty());
  EXPECT_EQ(split_full_list(" a,b ", "--x"), (std::vector<std::string>{"a", "b"}));
  for (const char* list : {"", " ", ",", "a,", "a,,b"})
    EXPECT_THROW(split_full_list(list, "--x"), ArgumentError) << list;
}

TEST(Text, PartsAreReplaced) {
  EXPECT_EQ(replaced("a-b--c-", "-", "+"), "a+b++c+");
  EXPECT_EQ(replaced("aaaaa", "aa", "a"), "aaa");  // what was put in is not read again
  EXPECT_EQ(replaced("-n -nn", "-n", ""), " n");
  EXPECT_EQ(replaced("abc", "abcd", "x"), "abc");
  EXPECT_EQ(replaced("", "a", "b"), "");
}

}  // namespace
}  // namespace limpid
