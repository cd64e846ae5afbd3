// Mapped files that a signal handler can find, and files that appear when they are complete.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

namespace fs = std::filesystem;

size_t n_files(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder.folder()), {}));
}

TEST(MappedFile, IsFoundByAnyOfItsAddresses) {
  const TempFolder folder;
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const size_t n : {1U, 5000U, 100'000U})
    files.push_back(MappedFile::open(folder.write(std::to_string(n), std::string(n, 'x'))));
  for (const auto& file : files) {
    EXPECT_EQ(mapped_path_of(&file->bytes().front()), file->path());
    EXPECT_EQ(mapped_path_of(&file->bytes().back()), file->path());
  }
  const int elsewhere = 0;
  EXPECT_EQ(mapped_path_of(&elsewhere), nullptr);
  EXPECT_EQ(mapped_path_of(nullptr), nullptr);
  const std::byte* gone = &files[1]->bytes().front();
  files.erase(files.begin() + 1);
  EXPECT_EQ(mapped_path_of(gone), nullptr);
  EXPECT_EQ(mapped_path_of(&files[1]->bytes().back()), files[1]->path());
}

TEST(MappedFile, IsFoundWhileOthersComeAndGo) {
  const TempFolder folder;
  const std::string path = folder.write("kept", "kept");
  const std::string other = folder.write("other", "other");
  const auto kept = MappedFile::open(path);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done) MappedFile::open(other);
    });
  }
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(mapped_path_of(&kept->bytes().back()), path);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// A system call cannot read what was cut off either, and says EFAULT.
TEST(AtomicFile, ATruncatedSourceIsNamed) {
  const TempFolder folder;
  const std::string path = folder.write("source", std::string(1 << 16, 'x'));
  const auto source = MappedFile::open(path);
  const auto bytes = source->bytes();
  AtomicFile out(folder.path("out"));
  fs::resize_file(path, 0);
  expect_error<ResourceError>([&] { out.write(bytes); }, {path + kBecameUnreadable});
}

TEST(AtomicFile, NothingIsLeftOfOneThatIsNotCommitted) {
  const TempFolder folder;
  { AtomicFile(folder.path("out")).write("half"); }
  EXPECT_EQ(n_files(folder), 0U);
  AtomicFile file(folder.path("out"));
  AtomicFile second(folder.path("out"));
  EXPECT_EQ(n_files(folder), 2U);
  remove_temporary_files();
  EXPECT_EQ(n_files(folder), 0U);
}

// The file of a killed process has no lock. Neither a file that is being written nor one of another
// name is a remain.
TEST(AtomicFile, RemovesWhatAKilledProcessLeft) {
  const TempFolder folder;
  const AtomicFile living(folder.path("out"));
  folder.write("out.1-1.part", "half");
  for (const char* name :
       {"out.part", "out.1x.part", "out.2024-01-02.part", "out.1-.part", "other.1-1.part"})
    folder.write(name, "mine");
  const AtomicFile next(folder.path("out"));
  EXPECT_FALSE(fs::exists(folder.path("out.1-1.part")));
  EXPECT_EQ(n_files(folder), 7U);
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 0777U;
}

TEST(AtomicFile, HasTheModeThatTheUmaskLeaves) {
  const TempFolder folder;
  const mode_t before = umask(027);
  for (const mode_t mask : {0027U, 0077U, 0000U}) {
    umask(mask);
    const std::string path = folder.path(std::to_string(mask));
    AtomicFile(path).commit();
    EXPECT_EQ(mode_of(path), 0666U & ~mask);
  }
  umask(before);
}

// Nobody else may read the copy of a private file while it is written either.
TEST(AtomicFile, KeepsTheModeOfTheFileThatItReplaces) {
  const TempFolder folder;
  const std::string path = folder.write("out", "old");
  for (const mode_t mode : {0600U, 0777U, 0444U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    AtomicFile file(path);
    for (const auto& entry : fs::directory_iterator(folder.folder()))
      EXPECT_EQ(mode_of(entry.path()) & ~mode & 0077U, 0U) << entry.path();
    file.commit();
    EXPECT_EQ(mode_of(path), mode);
  }
}

// Another thread that makes a file at the same moment must find the umask as it was.
TEST(AtomicFile, TheUmaskOfTheProcessIsNeverChanged) {
  const TempFolder folder;
  const mode_t before = umask(022);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) AtomicFile(folder.path("out")).commit();
    done = true;
  });
  const std::string kLine = "Umask:\t0022";
  while (!done) {
    std::ifstream status("/proc/self/status");
    const std::string text{std::istreambuf_iterator<char>(status), {}};
    if (text.find("Umask:") != std::string::npos) {
      EXPECT_NE(text.find(kLine), std::string::npos);
    }
  }
  writer.join();
  umask(before);
}

}  // namespace
}  // namespace limpid
