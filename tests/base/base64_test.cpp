#include "base/base64.h"

#include <gtest/gtest.h>

#include <string_view>

namespace limpid {
namespace {

// The vectors of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const std::pair<std::string_view, const char*> cases[] = {{"", ""},
                                                            {"f", "Zg=="},
                                                            {"fo", "Zm8="},
                                                            {"foo", "Zm9v"},
                                                            {"foob", "Zm9vYg=="},
                                                            {"fooba", "Zm9vYmE="},
                                                            {"foobar", "Zm9vYmFy"},
                                                            {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : cases)
    EXPECT_EQ(base64(std::as_bytes(std::span(bytes))), text) << bytes;
}

}  // namespace
}  // namespace limpid
