#include "train/run_log.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "base/text.h"
#include "train/run_folder.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Returns what `read` makes of each line of a file of measurements. It may throw json::exception.
template <typename Read>
auto read_lines(const std::string& folder, const char* name, const Read& read) {
  std::vector<std::invoke_result_t<Read, const nlohmann::json&>> lines;
  const fs::path path = fs::path(folder) / name;
  if (!is_there(path)) return lines;
  const auto file = MappedFile::open(path.string());
  std::string_view text = text_of(*file);
  while (!text.empty()) {
    try {
      lines.push_back(read(nlohmann::json::parse(take_line(text))));
    } catch (const nlohmann::json::exception&) {  // cut short
    }
  }
  return lines;
}

// JSON has null in place of a number that is not finite, such as the norm of a skipped step.
double number_of(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

std::vector<LogEntry> read_log(const std::string& folder) {
  return read_lines(folder, kLogFile, [](const nlohmann::json& line) {
    LogEntry entry{line.at("step"),
                   line.at("loss"),
                   line.at("lr"),
                   number_of(line.at("grad_norm")),
                   line.at("tokens_per_second"),
                   std::nullopt};
    if (const auto found = line.find("val_loss"); found != line.end()) entry.val_loss = *found;
    return entry;
  });
}

std::vector<LoggedSample> read_samples(const std::string& folder) {
  return read_lines(folder, kSamplesFile, [](const nlohmann::json& line) {
    return LoggedSample{line.at("step"), line.at("prompt"), line.at("text")};
  });
}

std::vector<HistogramLine> read_histograms(const std::string& folder) {
  return read_lines(folder, kHistogramsFile, histogram_line);
}

}  // namespace limpid
