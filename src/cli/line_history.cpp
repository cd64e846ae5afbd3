#include "cli/line_history.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>

#include "base/check.h"
#include "base/paths.h"
#include "cli/flags.h"
#include "cli/output.h"

// The file is libedit's: a line "_HiStOrY_V2_", then an entry a line, the oldest first. Characters
// that would break a line are written as backslash and three octal digits: a space is \040.
namespace limpid::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kEntries = 1000;
constexpr size_t kLongestInFile = 1 << 16;  // bytes of an entry
constexpr uint64_t kLargestFile = 1 << 20;  // bytes; a larger one is rewritten

}  // namespace

// XDG_STATE_HOME is for what should outlive a session and need not be backed up (XDG Base Directory
// Specification 0.8).
fs::path chat_history_path() {
  fs::path folder = environment("XDG_STATE_HOME");
  if (folder.empty()) {
    const fs::path home = environment("HOME");
    if (home.empty()) return {};
    folder = home / ".local" / "state";
  }
  return folder / "limpid" / "chat_history";
}

// Loads what earlier conversations wrote. libedit keeps the newest kEntries of them.
LineHistory::LineHistory(fs::path path) : path_(std::move(path)), history_(history_init()) {
  LIMPID_CHECK(ResourceError, history_ != nullptr, "no memory for a history of lines");
  HistEvent event;
  history(history_.get(), &event, H_SETSIZE, kEntries);
  history(history_.get(), &event, H_SETUNIQUE, 1);
  if (path_.empty()) return;
  history(history_.get(), &event, H_LOAD, path_.c_str());
  if (size_of_file(path_) <= kLargestFile) return;
  // The file only ever grows; libedit kept its newest entries.
  const fs::path smaller = path_.string() + ".new";
  if (history(history_.get(), &event, H_SAVE, smaller.c_str()) < 0) return;
  std::error_code ignored;
  fs::rename(smaller, path_, ignored);
}

void LineHistory::add(const std::string& entry) {
  HistEvent event;
  if (entry.empty() || history(history_.get(), &event, H_ENTER, entry.c_str()) < 0) return;
  if (path_.empty() || entry.starts_with(' ') || entry.size() > kLongestInFile) return;
  append_to_file(entry);
}

// Through a history of its own: H_NSAVE_FP of libedit 3.1 writes one entry more than it is asked
// for.
void LineHistory::append_to_file(const std::string& entry) const {
  const fs::path folder = path_.parent_path();
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  mkdir(folder.c_str(), S_IRWXU);  // fails when it is there
  const int descriptor =
      open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return;
  fchmod(descriptor, S_IRUSR | S_IWUSR);
  const OpenFile file(fdopen(descriptor, "a"));
  const std::unique_ptr<History, End> one(history_init());
  if (file == nullptr || one == nullptr) return;
  std::fseek(file.get(), 0, SEEK_END);  // libedit begins an empty file with its signature
  HistEvent event;
  history(one.get(), &event, H_SETSIZE, 1);
  history(one.get(), &event, H_ENTER, entry.c_str());
  history(one.get(), &event, H_SAVE_FP, file.get());
}

}  // namespace limpid::cli
