#include "train/run_log.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "base/text.h"
#include "train/run_folder.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Gives each line of a file of measurements that is an object to `read`, which may throw
// json::exception.
template <typename Read>
void for_each_line(const std::string& folder, const char* name, Read&& read) {
  const fs::path path = fs::path(folder) / name;
  if (!is_there(path)) return;
  const auto file = MappedFile::open(path.string());
  std::string_view text = text_of(*file);
  while (!text.empty()) {
    try {
      read(nlohmann::json::parse(take_line(text)));
    } catch (const nlohmann::json::exception&) {  // cut short
    }
  }
}

// JSON has null in place of a number that is not finite, such as the norm of a skipped step.
double number_of(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

std::vector<LogEntry> read_log(const std::string& folder) {
  std::vector<LogEntry> entries;
  for_each_line(folder, kLogFile, [&](const nlohmann::json& line) {
    LogEntry entry{line.at("step"),
                   line.at("loss"),
                   line.at("lr"),
                   number_of(line.at("grad_norm")),
                   line.at("tokens_per_second"),
                   std::nullopt};
    if (const auto found = line.find("val_loss"); found != line.end()) entry.val_loss = *found;
    entries.push_back(entry);
  });
  return entries;
}

std::vector<LoggedSample> read_samples(const std::string& folder) {
  std::vector<LoggedSample> samples;
  for_each_line(folder, kSamplesFile, [&](const nlohmann::json& line) {
    samples.push_back({line.at("step"), line.at("prompt"), line.at("text")});
  });
  return samples;
}

std::vector<HistogramLine> read_histograms(const std::string& folder) {
  std::vector<HistogramLine> lines;
  for_each_line(folder, kHistogramsFile,
                [&](const nlohmann::json& line) { lines.push_back(histogram_line(line)); });
  return lines;
}

}  // namespace limpid
