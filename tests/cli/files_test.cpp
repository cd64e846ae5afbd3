// Files that the program writes and reads besides models: digests and .npy arrays.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.h"
#include "cli/npy_file.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class TempFile {
 public:
  explicit TempFile(const std::string& content = {})
      : path_(fs::temp_directory_path() /
              (std::string("limpid-") + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  std::string content() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  fs::path path_;
};

// FIPS 180-4's own examples (CSRC "SHA-256" test vectors).
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSameDigest) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>(i * 7);
  const std::string expected = sha256_of(text);
  for (const size_t n : {1U, 3U, 63U, 64U, 65U, 130U}) {
    Sha256 pieces;
    for (size_t at = 0; at < text.size(); at += n) pieces.update(bytes_of(text.substr(at, n)));
    EXPECT_EQ(pieces.hex(), expected) << n;
  }
}

TEST(NpyFile, HeaderAndRowsInAnyOrder) {
  const TempFile file;
  {
    NpyFile npy(file.path(), 2, 3);
    npy.write_row(1, std::vector<float>{4, 5, 6});
    npy.write_row(0, std::vector<float>{1, 2, 3});
    npy.finish();
  }
  const std::string content = file.content();
  ASSERT_EQ(content.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t n_header = static_cast<uint8_t>(content[8]) + 256 * static_cast<uint8_t>(content[9]);
  EXPECT_EQ((10 + n_header) % 64, 0U);
  EXPECT_NE(content.find("'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), "),
            std::string::npos);
  ASSERT_EQ(content.size(), 10 + n_header + 6 * sizeof(float));
  std::vector<float> values(6);
  std::memcpy(values.data(), content.data() + 10 + n_header, 6 * sizeof(float));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(NpyFile, UnfinishedLeavesWhatWasThere) {
  const TempFile file("old");
  { const NpyFile npy(file.path(), 2, 3); }
  EXPECT_EQ(file.content(), "old");
  fs::remove(file.path());
  { const NpyFile npy(file.path(), 2, 3); }
  EXPECT_FALSE(fs::exists(file.path()));
}

}  // namespace
}  // namespace limpid::cli
