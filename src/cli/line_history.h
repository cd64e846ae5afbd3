// The lines that a person typed, also those of earlier conversations.
#pragma once

#include <histedit.h>

#include <filesystem>
#include <memory>
#include <string>

namespace limpid::cli {

// ${XDG_STATE_HOME:-~/.local/state}/limpid/chat_history, or "" when neither variable is set.
std::filesystem::path chat_history_path();

// At most 1000 entries. The lines are private: the file has mode 0600, and a folder that is made
// for it 0700. If the file cannot be read or written, only the history is lost.
class LineHistory {
 public:
  // Reads the file at `path`; "" keeps nothing beyond this object.
  explicit LineHistory(std::filesystem::path path);

  // Also appends `entry` to the file at once, so conversations that run at the same time each add
  // theirs. An entry that begins with a space stays out of the file.
  void add(const std::string& entry);
  // For libedit, as long as this object lives.
  History* get() { return history_.get(); }

 private:
  struct End {
    void operator()(History* history) const { history_end(history); }
  };

  void append_to_file(const std::string& entry) const;

  std::filesystem::path path_;
  std::unique_ptr<History, End> history_;
};

}  // namespace limpid::cli
