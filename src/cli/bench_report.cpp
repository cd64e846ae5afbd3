#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/utf8.h"
#include "cli/bench.h"
#include "cli/output.h"
#include "insight/explanation_json.h"
#include "model/decoder_from_checkpoint.h"

// The figures of a test, from one repetition of `n` tokens in `s` seconds:
//   tokens/s           n / s; mean and deviation over the repetitions
//   GB/s               bytes that must be read at least, over the mean of s
//   of read limit      that, over what reading an array reaches on this machine
//   of compute limit   the time that the operations would take at the limits of their
//                      instructions, over the mean of s
// A program that decodes cannot exceed 100 % of the read limit: every weight is read for each
// token. Weights that fit in the cache stay there, so that limit does not apply to them.
namespace limpid::cli {

// Decoding reads every weight once per token and multiplies it once, so the bytes of the weights
// bound its speed from above; the head counts apart, since a prompt needs it for its last token
// only.
TokenCost cost_of(const Checkpoint& checkpoint, const DecoderSpec& spec, DType k_dtype,
                  DType v_dtype) {
  TokenCost cost;
  const int64_t kv_width = spec.n_layers * spec.n_kv_heads * spec.head_dim;
  cost.kv_bytes_per_position = static_cast<uint64_t>(kv_width) *
                               (dtype_info(k_dtype).block_bytes + dtype_info(v_dtype).block_bytes);
  // A dot product for the score and a weighted sum, for each query head.
  cost.kv_flops_per_position = 4 * spec.n_layers * spec.n_heads * spec.head_dim;
  for (const WeightSource& weight : weight_sources(checkpoint, spec)) {
    if (weight.use == WeightUse::kLookup) continue;  // one row of it is read
    const TensorView& tensor = weight.tensor;
    cost.weight_bytes += tensor.n_bytes();
    if (!is_matrix(weight.use)) continue;
    if (is_head(weight.use)) cost.head_bytes += tensor.n_bytes();
    FlopCount& flops = is_head(weight.use) ? cost.head_flops : cost.weight_flops;
    flops.of(tensor.dtype) += 2 * static_cast<double>(tensor.shape.n_elements());
  }
  return cost;
}

double BenchResult::mean_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

// The mean of the rates, not the rate of the mean time: as llama-bench does, so that both compare.
double BenchResult::tokens_per_second() const {
  double sum = 0;
  for (const double s : seconds) sum += static_cast<double>(n_tokens()) / s;
  return sum / static_cast<double>(seconds.size());
}

// The standard deviation of a sample, with n - 1 in the denominator.
double BenchResult::deviation() const {
  if (seconds.size() < 2) return 0;
  const double mean = tokens_per_second();
  double squares = 0;
  for (const double s : seconds) squares += std::pow(static_cast<double>(n_tokens()) / s - mean, 2);
  return std::sqrt(squares / static_cast<double>(seconds.size() - 1));
}

namespace {

// The rates of a test, and their shares of the machine's limits.
struct Rates {
  double bytes_per_second;
  double flops_per_second;
  double share_of_read;  // of the measured limits
  double share_of_compute;
};

// The share of compute is the time that the operations would take at the limits of their
// instructions, over the time that they took.
Rates rates_of(double n_bytes, const FlopCount& flops, double seconds,
               const MachineLimits& limits) {
  return {n_bytes / seconds, flops.sum() / seconds,
          n_bytes / seconds / limits.read_bytes_per_second,
          flops.seconds_at(limits.flops_per_second) / seconds};
}

// "46 %", or "-" where the limit was not measured.
std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", share * 100) : "-";
}

// The speed of memory does not limit weights that stay in the cache.
bool is_in_cache(const BenchReport& report) { return report.n_bytes <= report.machine.cache_bytes; }

// The last four columns of both tables: what was read and computed in `seconds`, if anything was.
std::string rate_columns(const BenchReport& report, double n_bytes, const FlopCount& flops,
                         double seconds) {
  const Rates rates = rates_of(n_bytes, flops, seconds, report.limits);
  const bool in_cache = is_in_cache(report) && std::isfinite(rates.share_of_read);
  const std::string reading = fmt::format(" {:.2f} | {} |", rates.bytes_per_second / 1e9,
                                          in_cache ? "in cache" : percent(rates.share_of_read));
  const std::string computing = fmt::format(" {:.1f} | {} |\n", rates.flops_per_second / 1e9,
                                            percent(rates.share_of_compute));
  return (n_bytes > 0 ? reading : " | |") + (flops.sum() > 0 ? computing : " | |\n");
}

// The time of one repetition, by op; the last entry is the time between the ops.
std::string ops_to_markdown(const BenchReport& report, const BenchResult& result) {
  const auto n = static_cast<double>(result.seconds.size());
  const double total = result.mean_seconds();
  std::string text = fmt::format(
      "\n{}: {:.3f} ms\n\n"
      "| op | calls | ms | share | GB/s | of read limit | GFLOP/s | of compute limit |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|\n",
      result.test, total * 1e3);
  double rest = total;
  for (const OpTime& op : result.ops) {
    const double seconds = op.seconds / n;
    rest -= seconds;
    text += fmt::format("| {} | {:.0f} | {:.3f} | {:.1f} % |", op.op,
                        static_cast<double>(op.n_calls) / n, seconds * 1e3, seconds / total * 100);
    text += rate_columns(report, static_cast<double>(op.n_weight_bytes), op.flops, op.seconds);
  }
  return text + fmt::format("| between ops | | {:.3f} | {:.1f} % | | | | |\n", rest * 1e3,
                            rest / total * 100);
}

// Names as in llama-bench, so that scripts written for it read this too.
Json to_json(const BenchReport& report, const BenchResult& result) {
  const Rates rates =
      rates_of(result.n_bytes, result.n_flops, result.mean_seconds(), report.limits);
  const FlopCount& limits = report.limits.flops_per_second;
  return {{"model_type", report.model},
          {"model_size", report.n_bytes},
          {"model_n_params", report.n_parameters},
          {"cpu_info", report.machine.cpu},
          {"device", report.device},
          {"isa", report.machine.isa},
          {"n_threads", report.limits.n_threads},
          {"n_prompt", result.n_prompt},
          {"n_gen", result.n_generated},
          {"n_depth", result.depth},
          {"repetitions", result.seconds.size()},
          {"avg_ts", result.tokens_per_second()},
          {"stddev_ts", result.deviation()},
          {"bytes_per_second", rates.bytes_per_second},
          {"share_of_read", is_in_cache(report) ? Json() : Json(rates.share_of_read)},
          {"flops_per_second", rates.flops_per_second},
          {"share_of_compute", rates.share_of_compute},
          {"limit_bytes_per_second", report.limits.read_bytes_per_second},
          {"limit_flops_per_second", limits.f32},
          {"limit_bf16_flops_per_second", report.limits.has_bf16() ? Json(limits.bf16) : Json()},
          {"limit_int8_flops_per_second", limits.int8}};
}

// A text is between quotes, and a quote in it is doubled (RFC 4180). What JSON has as null is
// empty; so is a number that is not finite.
std::string csv_field(const Json& value) {
  if (!value.is_string()) {
    std::string number = dump_json(value);
    return number == "null" ? "" : number;
  }
  std::string text = unicode::replace_invalid(value.get<std::string>());
  for (size_t i = 0; (i = text.find('"', i)) != std::string::npos; i += 2) text.insert(i, 1, '"');
  return fmt::format("\"{}\"", text);
}

}  // namespace

// A table as llama-bench prints it, with a column for each limit beside the rate that it bounds.
std::string to_markdown(const BenchReport& report) {
  std::string text = fmt::format(
      "{}, {}; device {}, {}, {}\n"
      "{}\n\n"
      "| model | size | params | test | tokens/s | GB/s | of read limit | GFLOP/s | "
      "of compute limit |\n"
      "|---|---:|---:|---|---:|---:|---:|---:|---:|\n",
      report.machine.cpu, count(report.machine.n_cores, "core"), report.device, report.machine.isa,
      count(report.limits.n_threads, "thread"), limits_text(report.limits));
  for (const BenchResult& result : report.results) {
    text +=
        fmt::format("| {} | {} | {:.2f} M | {} | {:.2f} ± {:.2f} |", report.model,
                    format_bytes(report.n_bytes), static_cast<double>(report.n_parameters) / 1e6,
                    result.test, result.tokens_per_second(), result.deviation());
    text += rate_columns(report, result.n_bytes, result.n_flops, result.mean_seconds());
  }
  for (const BenchResult& result : report.results) {
    if (!result.ops.empty()) text += ops_to_markdown(report, result);
  }
  return text;
}

// One header line and one line per test, from the keys and values of the JSON.
std::string to_csv(const BenchReport& report) {
  std::string text;
  for (const BenchResult& result : report.results) {
    std::vector<std::string> keys;
    std::vector<std::string> fields;
    const Json json = to_json(report, result);
    for (const auto& [key, value] : json.items()) {
      keys.push_back(key);
      fields.push_back(csv_field(value));
    }
    if (text.empty()) text = fmt::format("{}\n", fmt::join(keys, ","));
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

// The keys and values of the CSV, and the time of each repetition and of each op.
std::string to_json_text(const BenchReport& report) {
  auto array = Json::array();
  for (const BenchResult& result : report.results) {
    Json& json = array.emplace_back(to_json(report, result));
    json["samples_ns"] =
        list_of(result.seconds, [](double seconds) { return std::llround(seconds * 1e9); });
    if (result.ops.empty()) continue;
    Json& ops = json["ops"] = times_to_json(result.ops);
    for (size_t i = 0; i < ops.size(); ++i)
      ops[i]["int8_flops"] = static_cast<int64_t>(result.ops[i].flops.int8);
  }
  return dump_json(array, 2) + "\n";
}

}  // namespace limpid::cli
