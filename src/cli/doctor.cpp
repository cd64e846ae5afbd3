// `limpid doctor`: whether Limpid can work on this machine, and what would make it work better.
//
//   limpid    0.1.0, Release, GCC 12.2.0
//   CPU       AMD EPYC, 2 cores
//   …
//   cache     /home/you/.cache/limpid, writable, 60.00 GB free
//             models                98.4 MB, 1 file
//   model     smollm2, verified: /home/you/.cache/limpid/models/SmolLM2-135M-Instruct.Q4_1.gguf
//
//   healthy
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/checkup.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/model_path.h"

namespace limpid::cli {
namespace {

// Facts first, then the findings, then the verdict in one line.
std::string to_text(const Checkup& checkup, const std::vector<Finding>& findings) {
  const Build& build = checkup.build;
  std::string text = fmt::format(
      "limpid    {}, {}, {}\nMPI       {}\n", LIMPID_VERSION, LIMPID_BUILD_TYPE, build.compiler,
      build.mpi.empty() ? "none: training runs in one process" : build.mpi);
  text += machine_text(checkup.machine, checkup.limits);
  if (checkup.limits.n_threads == 0) text += "limits    not measured\n";
  if (!checkup.governor.empty()) text += fmt::format("governor  {}\n", checkup.governor);
  const CacheState& cache = checkup.cache;
  text += fmt::format("cache     {}, {}, {} free\n", cache.path.empty() ? "nowhere" : cache.path,
                      cache.problem.empty() ? "writable" : "not writable",
                      format_bytes(cache.free_bytes));
  for (const CacheState::Entry& entry : cache.entries) {
    text += fmt::format("          {:18} {:>10}, {}\n", entry.name,
                        format_bytes(entry.size.n_bytes), count(entry.size.n_files, "file"));
  }
  const FirstModel& model = checkup.model;
  text +=
      model.state == "absent"
          ? fmt::format("model     {} is not here\n\n", kNamedModels[0].name)
          : fmt::format("model     {}, {}: {}\n\n", kNamedModels[0].name, model.state, model.path);
  for (const Finding& finding : findings)
    text += fmt::format("{}: {}\n", finding.is_problem ? "problem" : "note", finding.text);
  const auto n_problems =
      static_cast<uint64_t>(std::ranges::count_if(findings, &Finding::is_problem));
  return text + (n_problems == 0 ? "healthy" : count(n_problems, "problem")) + "\n";
}

// Scripts may rely on the names healthy, findings, build, machine, cache and model.
Json to_json(const Checkup& checkup, const std::vector<Finding>& findings) {
  const auto& [build, machine, governor, has_nvidia, cpu_quota, limits, cache, model] = checkup;
  Json json = {
      {"healthy", std::ranges::none_of(findings, &Finding::is_problem)},
      {"findings", Json::array()},
      {"build",
       {{"version", LIMPID_VERSION},
        {"type", LIMPID_BUILD_TYPE},
        {"compiler", build.compiler},
        {"optimised", build.is_optimised},
        {"sanitised", build.is_sanitised},
        {"mpi", build.mpi}}},
      {"machine", machine_json(machine, limits)},
      {"cache",
       {{"path", cache.path},
        {"writable", cache.problem.empty()},
        {"free_bytes", cache.free_bytes},
        {"entries", Json::array()}}},
      {"model", {{"name", kNamedModels[0].name}, {"path", model.path}, {"state", model.state}}}};
  json["machine"].update(
      {{"governor", governor}, {"has_nvidia", has_nvidia}, {"cpu_quota", cpu_quota}});
  for (const auto& [is_problem, text] : findings)
    json["findings"].push_back({{"kind", is_problem ? "problem" : "note"}, {"text", text}});
  for (const auto& [name, size] : cache.entries) {
    json["cache"]["entries"].push_back(
        {{"name", name}, {"files", size.n_files}, {"bytes", size.n_bytes}});
  }
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
  values.json ? write_json(to_json(checkup, findings), 2) : write_out(to_text(checkup, findings));
  return std::ranges::any_of(findings, &Finding::is_problem) ? kExitError : kExitOk;
}

}  // namespace

Command doctor_command() {
  return {"whether all is well on this machine, and what to do if not", "doctor [options]",
          "Whether Limpid can work here: CPU and kernels, limits as measured, memory, the cache "
          "and the first model.\nSays what is wrong and what to do; exit code 1 when something "
          "does not work.",
          "limpid doctor\nlimpid doctor --no-measure --json", bind<DoctorFlags, declare, run>};
}

}  // namespace limpid::cli
