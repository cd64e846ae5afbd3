#include "cli/output_path.h"

#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/check.h"

namespace limpid::cli {

namespace fs = std::filesystem;

void check_writable(const std::string& path) { const AtomicFile probe(path); }

void check_not_the_input(const std::string& path, const Checkpoint& checkpoint) {
  for (const auto& file : checkpoint.files) {
    const fs::path input(file->path());
    std::error_code absent;  // then they are not the same
    const bool same = fs::equivalent(path, input, absent) ||
                      (fs::is_directory(path, absent) &&
                       fs::equivalent(path, fs::absolute(input).parent_path(), absent));
    LIMPID_CHECK(ArgumentError, !same,
                 "{} is where the model is read from; write to another place, so that it stays",
                 path);
  }
}

}  // namespace limpid::cli
