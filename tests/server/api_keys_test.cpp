#include "server/api_keys.h"

#include <gtest/gtest.h>

#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"

namespace limpid::testing {
namespace {

HttpRequest with_header(const std::string& name, const std::string& value) {
  HttpRequest request;
  request.headers.emplace_back(name, value);
  return request;
}

TEST(ApiKeys, WithoutKeysAllIsAllowed) { EXPECT_TRUE(ApiKeys().allow({})); }

TEST(ApiKeys, AKeyComesInOneOfTwoHeaders) {
  ApiKeys keys;
  keys.add("first");
  keys.add("second");
  for (const char* key : {"first", "second"}) {
    EXPECT_TRUE(keys.allow(with_header("Authorization", std::string("Bearer ") + key)));
    EXPECT_TRUE(keys.allow(with_header("authorization", std::string("bearer ") + key)));
    EXPECT_TRUE(keys.allow(with_header("X-API-Key", key)));
  }
  for (const char* key : {"", "firs", "first ", "firstsecond", "third"}) {
    EXPECT_FALSE(keys.allow(with_header("Authorization", std::string("Bearer ") + key))) << key;
    EXPECT_FALSE(keys.allow(with_header("X-API-Key", key))) << key;
  }
  EXPECT_FALSE(keys.allow({}));
  EXPECT_FALSE(keys.allow(with_header("Authorization", "first")));
  EXPECT_FALSE(keys.allow(with_header("Authorization", "Basic first")));
}

TEST(ApiKeys, ReadsAFile) {
  const TempFolder folder;
  ApiKeys keys;
  keys.add_file(folder.write("keys", "# comment\r\n\nfirst\r\n \tsecond key\t \n \n  # x\nthird"));
  for (const char* key : {"first", "second key", "third"}) EXPECT_TRUE(keys.contains(key)) << key;
  EXPECT_FALSE(keys.contains("# x"));
  EXPECT_FALSE(keys.contains("# comment"));
  EXPECT_FALSE(keys.contains(""));
  EXPECT_THROW(keys.add_file(folder.write("none", "# none\n")), ArgumentError);
  EXPECT_THROW(keys.add_file("/no/such/file"), ResourceError);
}

}  // namespace
}  // namespace limpid::testing
