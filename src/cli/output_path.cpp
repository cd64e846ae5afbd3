#include "cli/output_path.h"

#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "cli/output.h"

namespace limpid::cli {

namespace fs = std::filesystem;

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") return write_out(text);
  write_file(at_end_of_links(path), text);
}

std::string at_end_of_links(const std::string& path) {
  constexpr int kMostLinks = 40;                      // as in Linux
  if (is_there(path) && !is_file(path)) return path;  // /dev/stdout leads to a pipe without a name
  fs::path file(path);
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(file, error); ++i)
    file = file.parent_path() / fs::read_symlink(file, error);  // an absolute target stands alone
  return file.string();
}

void refuse_standard_output(const std::string& path) {
  LIMPID_CHECK(ArgumentError, path != "-",
               "a model cannot be written to standard output: name a file (./- for one named -)");
}

void check_writable(const std::string& path) { const AtomicFile probe(at_end_of_links(path)); }

// Another process may remove or move a file between the listing and the look.
FolderSize size_of_folder(const fs::path& folder) {
  FolderSize size;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    ++size.n_files;
    size.n_bytes += size_of_file(it->path());
  }
  return size;
}

namespace {

// The files of a model's folder that are read besides the checkpoint's files and attachments.
constexpr const char* kUnmapped[] = {"params.json", "model.safetensors.index.json",
                                     "special_tokens_map.json", "generation_config.json"};

std::vector<fs::path> files_of(const Checkpoint& checkpoint) {
  std::vector<fs::path> files;
  for (const auto& file : checkpoint.files) files.emplace_back(file->path());
  for (const auto& [name, file] : checkpoint.attachments) files.emplace_back(file->path());
  if (!is_folder(checkpoint.path)) return files;
  for (const char* name : kUnmapped) files.push_back(fs::path(checkpoint.path) / name);
  return files;
}

}  // namespace

// `limpid convert model/ model/` would overwrite the weights while it reads them.
// Compares files and not names: a link, another spelling of a path, or the folder that holds the
// input is the input too.
void check_not_the_input(const std::string& path, const Checkpoint& checkpoint) {
  for (const fs::path& input : files_of(checkpoint)) {
    std::error_code absent;  // then they are not the same
    const bool same =
        fs::equivalent(path, input, absent) ||
        (is_folder(path) && fs::equivalent(path, fs::absolute(input).parent_path(), absent));
    LIMPID_CHECK(ArgumentError, !same,
                 "{} is where the model is read from; write to another place, so that it stays",
                 path);
  }
}

void check_not_an_input(const std::string& path, std::span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code absent;
    LIMPID_CHECK(ArgumentError, !fs::equivalent(path, input, absent),
                 "{} is read by this command; write to another place, so that it stays", path);
  }
}

void check_output(const std::string& path, const Checkpoint& checkpoint) {
  if (path.empty() || path == "-") return;
  check_not_the_input(path, checkpoint);
  check_writable(path);
}

}  // namespace limpid::cli
