// An op is a line:
//
//   layer  op                place       shape        min     max     mean   norm  ms     values
//       0  rms_norm          attn_norm   [5, 576]   -1.72    1.93   0.0021  11.8   0.009  0.12 …
//       0  linear attn_q                 [5, 576]   …
//
// Rows are tokens. The numbers of a line are those of the last row, from which the next token is
// predicted; a break prints whole tensors.
#include "cli/run_trace.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/terminal_text.h"
#include "generate/engine.h"
#include "insight/explanation_json.h"
#include "insight/prediction.h"
#include "insight/step_tracer.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

constexpr int64_t kEndRows = 3;  // of a printed tensor: as many of the first and of the last rows
constexpr int64_t kNextTokens = 5;

// A row in short. Values that are not finite are counted and stay out of the rest.
struct RowStatistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double norm = 0;
  size_t n_bad = 0;
};

RowStatistics statistics_of(std::span<const float> row) {
  std::vector<float> finite;
  std::ranges::copy_if(row, std::back_inserter(finite), [](float x) { return std::isfinite(x); });
  RowStatistics of{.n_bad = row.size() - finite.size()};
  if (finite.empty()) return of;
  of.min = std::ranges::min(finite);
  of.max = std::ranges::max(finite);
  const double sum = std::accumulate(finite.begin(), finite.end(), 0.0);
  of.mean = sum / static_cast<double>(finite.size());
  for (const float x : finite) of.norm += static_cast<double>(x) * x;
  of.norm = std::sqrt(of.norm);
  return of;
}

// A name that the user gave, and what it names.
struct Wanted {
  std::string name;
  ModelPart tensor;
  std::optional<TracedOp> found = {};

  bool is(const TracedOp& op) const { return op.place == tensor.place && op.layer == tensor.layer; }
};

// Prints the ops of one step.
class TraceView {
 public:
  TraceView(const TraceFlags& flags, const DecoderSpec& spec, bool json)
      : flags_(flags),
        json_(json),
        style_(STDOUT_FILENO),
        layers_(parse_integers(flags.layers, "--layer")) {
    for (const int64_t layer : layers_) {
      LIMPID_CHECK(ArgumentError, layer >= -1 && layer < spec.n_layers,
                   "--layer {}: the model has layers 0 to {}, and -1 is outside of them", layer,
                   spec.n_layers - 1);
    }
    for (const std::string& name : flags.breaks)
      breaks_.push_back({name, named_tensor(name, spec)});
    for (const std::string& name : flags.tensors)
      tensors_.push_back({name, named_tensor(name, spec)});
  }

  bool is_over() const { return is_over_; }

  // `title` says what is traced.
  void begin(const std::string& title) const {
    if (json_) return;
    write_out(title + "\n");
    write_out(
        fmt::format("{:>5}  {:<22} {:<13} {:>13} {:>9} {:>9} {:>9} {:>9} {:>8}  {}\n", "layer",
                    "op", "place", "shape", "min", "max", "mean", "norm", "ms", "first values"),
        style_.note());
  }

  void show(const TracedOp& op) {
    if (is_over_) return;
    for (Wanted& each : tensors_)
      if (each.is(op)) each.found = op;
    if (is_wanted(op)) json_ ? write_json(line_as_json(op)) : write_line(op);
    for (const Wanted& each : breaks_) {  // heads of a layer are in the same op
      if (!each.is(op)) continue;
      is_over_ = ++n_breaks_passed_ == breaks_.size();
      stop_at(each, op);
    }
  }

  void end(const Prediction& next, const Tokenizer* tokenizer) const {
    if (is_over_) return;
    if (json_) return write_json({{"next", chances_to_json(next.likeliest, tokenizer)}});
    std::string text = "next:";
    for (const TokenChance& each : next.likeliest)
      text += fmt::format(" {} {:.1f} %", in_quotes(token_bytes(tokenizer, each.id)),
                          100 * each.probability);
    write_out(text + "\n");
  }

 private:
  bool is_wanted(const TracedOp& op) const {
    if (!layers_.empty() && std::ranges::find(layers_, op.layer) == layers_.end()) return false;
    return flags_.ops.empty() || std::ranges::any_of(flags_.ops, [&](const std::string& name) {
             return op.op == name || op.op.starts_with(name + " ") || op.op.ends_with(" " + name) ||
                    (op.place && place_name(*op.place) == name);
           });
  }

  // The values of a row that are shown.
  std::span<const float> shown(std::span<const float> row) const {
    const size_t n = flags_.n_values == 0 ? row.size() : size_of(flags_.n_values);
    return row.first(std::min(n, row.size()));
  }

  Json line_as_json(const TracedOp& op) const {
    const auto row = row_of(op.values, op.n_rows - 1, op.n_cols);
    const RowStatistics of = statistics_of(row);
    return {{"layer", op.layer < 0 ? Json() : Json(op.layer)},
            {"op", op.op},
            {"place", op.place ? Json(place_name(*op.place)) : Json()},
            {"shape", {op.n_rows, op.n_cols}},
            {"min", of.min},
            {"max", of.max},
            {"mean", of.mean},
            {"norm", of.norm},
            {"not_finite", of.n_bad},
            {"values", shown(row)},
            {"seconds", op.seconds ? Json(*op.seconds) : Json()}};
  }

  void write_line(const TracedOp& op) const {
    const auto row = row_of(op.values, op.n_rows - 1, op.n_cols);
    const RowStatistics of = statistics_of(row);
    write_out(fmt::format("{:>5}  ", op.layer < 0 ? "-" : std::to_string(op.layer)), style_.note());
    write_out(fmt::format("{:<22} ", op.op), style_.name());
    write_out(fmt::format("{:<13} ", op.place ? place_name(*op.place) : ""), style_.question());
    write_out(fmt::format("{:>13} {:>9.3g} {:>9.3g} {:>9.2g} {:>9.4g}",
                          fmt::format("[{}, {}]", op.n_rows, op.n_cols), of.min, of.max, of.mean,
                          of.norm));
    const std::string ms = op.seconds ? fmt::format("{:.3f}", 1e3 * *op.seconds) : "";
    write_out(fmt::format(" {:>8} ", ms), style_.note());
    write_values(row);
    if (of.n_bad > 0) write_out(fmt::format(" {} not finite", of.n_bad), style_.alarm());
    write_out("\n");
  }

  void write_values(std::span<const float> row) const {
    for (const float value : shown(row)) {
      write_out(fmt::format(" {:>9.3g}", value), !std::isfinite(value) ? style_.alarm()
                                                 : value < 0           ? style_.negative()
                                                                       : style_.positive());
    }
    if (shown(row).size() < row.size()) write_out(" …");
  }

  void stop_at(const Wanted& here, const TracedOp& op) {
    Json list = Json::array();
    if (!json_)
      write_out(fmt::format("break at {}{}\n", here.name, is_over_ ? ": the end" : ""),
                style_.question());
    print(here, op, list);
    for (const Wanted& each : tensors_) {
      if (each.found) {
        print(each, *each.found, list);
      } else if (!json_) {
        write_out(fmt::format("{} is not computed yet\n", each.name));
      }
    }
    if (json_) write_json({{"break", here.name}, {"tensors", std::move(list)}});
    flush_out();
  }

  void print(const Wanted& wanted, const TracedOp& op, Json& list) const {
    const auto row = [&](int64_t i) { return wanted.tensor.of(row_of(op.values, i, op.n_cols)); };
    const size_t n_cols = row(0).size();
    if (json_) {
      Json rows = Json::array();
      for (int64_t i = 0; i < op.n_rows; ++i) rows.push_back(row(i));
      list.push_back(
          {{"name", wanted.name}, {"shape", {op.n_rows, n_cols}}, {"values", std::move(rows)}});
      return;
    }
    write_out(fmt::format("{} [{}, {}]\n", wanted.name, op.n_rows, n_cols), style_.name());
    for (int64_t i = 0; i < op.n_rows; ++i) {
      if (i == kEndRows && op.n_rows > 2 * kEndRows) {
        write_out("  …\n");
        i = op.n_rows - kEndRows;
      }
      write_out(fmt::format("{:>5} ", i), style_.note());
      write_values(row(i));
      write_out("\n");
    }
  }

  const TraceFlags& flags_;
  bool json_;
  TerminalStyle style_;
  std::vector<int64_t> layers_;
  std::vector<Wanted> breaks_;
  std::vector<Wanted> tensors_;
  size_t n_breaks_passed_ = 0;
  bool is_over_ = false;
};

void check_ops(std::span<const std::string> wanted, const std::vector<std::string>& known) {
  for (const std::string& name : wanted) {
    LIMPID_CHECK(ArgumentError, std::ranges::find(known, name) != known.end(),
                 "--op {}: unknown op, matrix or activation{} (known are {})", name,
                 did_you_mean(name, known), fmt::join(known, ", "));
  }
}

}  // namespace

void declare_trace(CLI::App& app, TraceFlags& values, OpenOptions& options) {
  group(app, "trace");
  CLI::Option* trace =
      add_switch(app, "--trace", values.trace,
                 "show how the first token is computed, op by op, and do not go on: a line for "
                 "each op, with the numbers of the last token of the text; the KV cache is f32 "
                 "unless -ctk, -ctv say otherwise")
          ->each([&](const std::string& is_on) {
            if (is_on == "true") options.cache_type_k = options.cache_type_v = "f32";
          });
  needs(add_option(app, "--layer LIST", values.layers,
                   "with --trace: these layers only, between commas; -1 is outside the layers"),
        trace);
  needs(add_option(app, "--op NAME", values.ops,
                   "with --trace: this op only (attention), or this matrix (attn_q), or this "
                   "activation (attn_heads); may be repeated"),
        trace);
  CLI::Option* stop =
      add_option(app, "--break NAME", values.breaks,
                 "with --trace: stop at an activation and print it: L2.attn_output, L2.H5, L2.mlp, "
                 "L2 as in explain, or L2.query, output_norm as in verify; may be repeated");
  needs(stop, trace);
  needs(add_option(app, "--show NAME", values.tensors,
                   "with --break: print this activation too; may be repeated"),
        stop);
  needs(add_option(app, "--values N", values.n_values, Range{.least = 0},
                   "with --trace: values shown of each row (4); 0: all"),
        trace);
}

void run_trace(const ModelFlags& model_flags, const TraceFlags& values, const std::string& prompt,
               bool json) {
  const auto checkpoint = open_header(model_flags);
  const auto tokenizer = tokenizer_from(*checkpoint);
  const std::vector<TokenId> ids = tokenizer->encode(prompt);
  LIMPID_CHECK(ArgumentError, !ids.empty(), "the text has no tokens: there is nothing to trace");
  StepTracer* tracer = nullptr;
  const auto model = load_weights_only(model_flags, checkpoint, wrap_in(tracer));
  check_ops(values.ops, tracer->op_names());
  TraceView view(values, model->spec(), json);
  const OpenOptions& options = model_flags.options;
  const auto cache = model->make_cache_for_one(std::ssize(ids), cache_dtype(options.cache_type_k),
                                               cache_dtype(options.cache_type_v));
  const StepItem item{cache->add_sequence(), ids, StepItem::Outputs::kLast};
  view.begin(fmt::format("{} in one step; the numbers are those of the last one, {}",
                         count(ids.size(), "token"),
                         in_quotes(token_bytes(tokenizer.get(), ids.back()))));
  tracer->set_show([&](const TracedOp& op) { view.show(op); });
  const auto logits = model->step(*cache, {&item, 1});
  view.end(predict(logits, kNextTokens), tokenizer.get());
  flush_out();
}

}  // namespace limpid::cli
