// `limpid inspect --plan`, and -v of other commands: where a model lies, and how fast memory lets
// it be.
//
// The time of a token is the sum over the devices of (bytes that a token reads there) / (bytes a
// second that the device reads). For 600 MB on a GPU of 300 GB/s and 400 MB on a CPU of 20 GB/s:
//
//   0.6 / 300 + 0.4 / 20  =  0.002 s + 0.020 s  =  0.022 s, at most 45 tokens a second
//
// So the slow part decides, and a layer more on the GPU pays off by what it takes off the CPU.
// Rates are measured when they are wanted, not looked up.
#include "cli/error_words.h"
#include "cli/inspect.h"
#include "cli/json_format.h"
#include "cli/machine.h"
#include "executor/gpu/gpu_devices.h"
#include "generate/memory_plan.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid::cli {
namespace {

// Bytes a second; 0 for a device that is not bound by memory (reference).
double measure_rate(const std::string& device, int n_threads) {
  return device == "cpu" ? measure_read_limit(n_threads) : measure_gpu_copy(device);
}

Json part_to_json(const DevicePlan& part, double rate) {
  return {{"device", part.device},
          {"first_layer", part.first_layer},
          {"end_layer", part.end_layer},
          {"weights", part.weights},
          {"weights_in_file", part.weights_in_file},
          {"kv_cache", part.kv_cache},
          {"activations", part.activations},
          {"allocated", part.allocated()},
          {"available", part.available},
          {"bytes_per_token", part.bytes_per_token},
          {"bytes_per_second", rate > 0 ? Json(rate) : Json()}};
}

}  // namespace

std::string speed_text(double tokens_per_second) {
  return fmt::format(fmt::runtime(tokens_per_second < 1 ? "{:.2g}" : "{:.1f}"), tokens_per_second);
}

std::string in_file_note(const MemoryPlan& plan) {
  if (plan.first_layer_in_file == MemoryPlan::kNoLayer) return "";
  const DevicePlan& last = plan.devices.back();
  return fmt::format(
      "memory has no room for the weights from layer {} on; each token reads them from the file "
      "and unpacks them, which is slow ({}); a model of fewer bits or a smaller context needs less",
      plan.first_layer_in_file, format_bytes(last.weights_in_file));
}

PlanSpeed measure_speed(const MemoryPlan& plan, int n_threads) {
  PlanSpeed speed;
  double seconds = 0;
  bool is_known = true;
  for (const DevicePlan& part : plan.devices) {
    const double rate = speed.rates.emplace_back(measure_rate(part.device, n_threads));
    is_known = is_known && rate > 0;
    if (rate > 0) seconds += static_cast<double>(part.bytes_per_token) / rate;
  }
  if (is_known && seconds > 0) speed.tokens_per_second = 1 / seconds;
  return speed;
}

Json inspect_plan(const Checkpoint& checkpoint, const OpenOptions& options) {
  const MemoryPlan plan = make_memory_plan(checkpoint, read_spec(checkpoint), options);
  Json report = {{"path", checkpoint.path},
                 {"n_ctx", plan.n_ctx},
                 {"n_ctx_train", plan.n_ctx_train},
                 {"n_ctx_reduced", plan.n_ctx_reduced},
                 {"weights_in_file", plan.weights_in_file},
                 {"allocated", plan.allocated()},
                 {"devices", Json::array()},
                 {"tokens_per_second", Json()},
                 {"note", Json()},
                 {"problem", Json()}};
  if (const std::string note = in_file_note(plan); !note.empty()) report["note"] = note;
  const PlanSpeed speed = measure_speed(plan, options.n_threads);
  for (size_t i = 0; i < plan.devices.size(); ++i)
    report["devices"].push_back(part_to_json(plan.devices[i], speed.rates[i]));
  if (speed.tokens_per_second > 0) report["tokens_per_second"] = speed.tokens_per_second;
  try {
    check_memory_plan(plan);
  } catch (const ResourceError& error) {
    report["problem"] = in_program_words(error);
  }
  return report;
}

std::string plan_report_text(const Json& report) {
  std::string text = fmt::format(
      "{}\ncontext {}{}; sizes in bytes\n\n  {:10} {:10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10} "
      "{:>12} {:>12}\n",
      report["path"], report["n_ctx"],
      report["n_ctx_reduced"] == true ? " (reduced to fit; -c N sets it)" : "", "layers", "device",
      "weights", "in file", "KV cache", "activations", "allocated", "available", "a token reads",
      "rate");
  for (const Json& part : report["devices"]) {
    const auto size = [&](const char* key) { return format_bytes(part[key]); };
    const Json& rate = part["bytes_per_second"];
    text += fmt::format(
        "  {:10} {:10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10} {:>13} {:>12}\n",
        fmt::format("{} to {}", part["first_layer"], part["end_layer"].get<int64_t>() - 1),
        part["device"], size("weights"), size("weights_in_file"), size("kv_cache"),
        size("activations"), size("allocated"),
        part["available"] == 0 ? "unknown" : size("available"), size("bytes_per_token"),
        rate.is_null() ? "unknown" : fmt::format("{:.1f} GB/s", rate.get<double>() / 1e9));
  }
  const Json& speed = report["tokens_per_second"];
  text += speed.is_null()
              ? "\ntokens a second: unknown\n"
              : fmt::format(
                    "\nat most {} tokens a second, by the rates that were measured now: "
                    "each token reads all matrices once\n",
                    speed_text(speed.get<double>()));
  if (!report["note"].is_null()) text += fmt::format("\n{}\n", report["note"]);
  if (!report["problem"].is_null()) text += fmt::format("\ndoes not fit: {}\n", report["problem"]);
  return text;
}

}  // namespace limpid::cli
