// `limpid doctor`: whether Limpid can work on this machine, and what would make it work better.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/checkup.h"
#include "cli/command.h"
#include "cli/machine_report.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

std::string state_text(const FirstModel& model) {
  switch (model.state) {
    case FirstModel::State::kAbsent:
      return fmt::format("{} is not here", model.name);
    case FirstModel::State::kVerified:
      return fmt::format("{}, verified: {}", model.name, model.path);
    case FirstModel::State::kDamaged:
      return fmt::format("{}, damaged: {}", model.name, model.path);
  }
  return "";
}

std::string state_name(FirstModel::State state) {
  switch (state) {
    case FirstModel::State::kAbsent:
      return "absent";
    case FirstModel::State::kVerified:
      return "verified";
    case FirstModel::State::kDamaged:
      return "damaged";
  }
  return "";
}

// Facts first, then the findings, then the verdict in one line.
std::string to_text(const Checkup& checkup, const std::vector<Finding>& findings) {
  const Build& build = checkup.build;
  std::string text =
      fmt::format("limpid    {}, {}, {}\n", build.version, build.type, build.compiler);
  text += machine_text(checkup.machine, checkup.isas, checkup.isa, checkup.limits);
  if (checkup.limits.n_threads == 0) text += "limits    not measured\n";
  if (!checkup.governor.empty()) text += fmt::format("governor  {}\n", checkup.governor);
  const CacheState& cache = checkup.cache;
  text += fmt::format("cache     {}, {}, {} free\n", cache.path.empty() ? "nowhere" : cache.path,
                      cache.problem.empty() ? "writable" : "not writable",
                      format_bytes(cache.free_bytes));
  for (const CacheState::Entry& entry : cache.entries) {
    text += fmt::format("          {:18} {:>10}, {} {}\n", entry.name, format_bytes(entry.n_bytes),
                        entry.n_files, entry.n_files == 1 ? "file" : "files");
  }
  text += fmt::format("model     {}\n\n", state_text(checkup.model));
  for (const Finding& finding : findings)
    text += fmt::format("{}: {}\n", finding.is_problem ? "problem" : "note", finding.text);
  const auto n_problems = std::ranges::count_if(findings, &Finding::is_problem);
  text += n_problems == 0   ? "healthy\n"
          : n_problems == 1 ? "1 problem\n"
                            : fmt::format("{} problems\n", n_problems);
  return text;
}

nlohmann::ordered_json to_json(const Checkup& checkup, const std::vector<Finding>& findings) {
  nlohmann::ordered_json json;
  json["healthy"] = std::ranges::none_of(findings, &Finding::is_problem);
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json["findings"].push_back(
        {{"kind", finding.is_problem ? "problem" : "note"}, {"text", finding.text}});
  }
  const Build& build = checkup.build;
  json["build"] = {{"version", build.version},
                   {"type", build.type},
                   {"compiler", build.compiler},
                   {"optimised", build.is_optimised},
                   {"sanitised", build.is_sanitised}};
  json["machine"] = machine_json(checkup.machine, checkup.isas, checkup.isa, checkup.limits);
  json["machine"]["governor"] = checkup.governor;
  json["machine"]["cpu_quota"] = checkup.cpu_quota;
  const CacheState& cache = checkup.cache;
  json["cache"] = {{"path", cache.path},
                   {"writable", cache.problem.empty()},
                   {"free_bytes", cache.free_bytes},
                   {"entries", nlohmann::ordered_json::array()}};
  for (const CacheState::Entry& entry : cache.entries) {
    json["cache"]["entries"].push_back(
        {{"name", entry.name}, {"files", entry.n_files}, {"bytes", entry.n_bytes}});
  }
  json["model"] = {{"name", checkup.model.name},
                   {"path", checkup.model.path},
                   {"state", state_name(checkup.model.state)}};
  return json;
}

struct DoctorFlags {
  bool json = false;
  bool measure = true;
};

void declare(CLI::App& app, DoctorFlags& values) {
  add_switch(app, "--measure,!--no-measure", values.measure,
             "measure the machine's limits, a second (on)");
  add_switch(app, "--json", values.json, "for machines");
}

int run(const DoctorFlags& values) {
  const Checkup checkup = check_up(values.measure);
  const std::vector<Finding> findings = judge(checkup);
  write_out(values.json ? to_json(checkup, findings).dump(2) + "\n" : to_text(checkup, findings));
  return std::ranges::any_of(findings, &Finding::is_problem) ? kExitError : kExitOk;
}

}  // namespace

Command doctor_command() {
  return {"doctor",
          "whether all is well on this machine, and what to do if not",
          "doctor [options]",
          "Whether Limpid can work here: CPU and kernels, limits as measured, memory, the cache "
          "and the first model.\nSays what is wrong and what to do; exit code 1 when something "
          "does not work.",
          "limpid doctor\nlimpid doctor --no-measure --json",
          bind<DoctorFlags, declare, run>};
}

}  // namespace limpid::cli
