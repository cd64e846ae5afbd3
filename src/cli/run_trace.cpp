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

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

constexpr size_t kMostRows = 6;  // of a printed tensor: the first and the last three
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
  RowStatistics of;
  double squares = 0;
  size_t n = 0;
  for (const float value : row) {
    if (!std::isfinite(value)) {
      ++of.n_bad;
      continue;
    }
    of.min = n == 0 ? value : std::min<double>(of.min, value);
    of.max = n == 0 ? value : std::max<double>(of.max, value);
    of.mean += value;
    squares += static_cast<double>(value) * value;
    ++n;
  }
  if (n > 0) of.mean /= static_cast<double>(n);
  of.norm = std::sqrt(squares);
  return of;
}

std::span<const float> row_of(const TracedOp& op, int64_t row) {
  return std::span(op.values).subspan(static_cast<size_t>(row * op.n_cols),
                                      static_cast<size_t>(op.n_cols));
}

// A name that the user gave, and what it names.
struct Wanted {
  std::string name;
  NamedTensor tensor;

  bool is(const TracedOp& op) const { return op.place == tensor.place && op.layer == tensor.layer; }
};

std::vector<Wanted> wanted_tensors(std::span<const std::string> names, const DecoderSpec& spec) {
  std::vector<Wanted> wanted;
  for (const std::string& name : names) wanted.push_back({name, named_tensor(name, spec)});
  return wanted;
}

// Prints the ops of one step.
class TraceView {
 public:
  TraceView(const TraceFlags& flags, const DecoderSpec& spec, bool json)
      : flags_(flags),
        json_(json),
        style_(STDOUT_FILENO),
        layers_(parse_integers(flags.layers, "--layer")),
        breaks_(wanted_tensors(flags.breaks, spec)),
        tensors_(wanted_tensors(flags.tensors, spec)),
        found_(tensors_.size()) {
    for (const int64_t layer : layers_) {
      LIMPID_CHECK(ArgumentError, layer >= -1 && layer < spec.n_layers,
                   "--layer {}: the model has layers 0 to {}, and -1 is outside of them", layer,
                   spec.n_layers - 1);
    }
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
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].is(op)) found_[i] = op;
    if (is_wanted(op)) json_ ? write_json(line_as_json(op)) : write_line(op);
    for (size_t i = 0; i < breaks_.size();) {  // heads of a layer are in the same op
      if (!breaks_[i].is(op)) {
        ++i;
        continue;
      }
      const Wanted here = breaks_[i];
      breaks_.erase(breaks_.begin() + static_cast<std::ptrdiff_t>(i));
      is_over_ = breaks_.empty();
      stop_at(here, op);
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

  size_t n_shown(int64_t n_cols) const {
    const auto n = static_cast<size_t>(n_cols);
    return flags_.n_values == 0 ? n : std::min(n, static_cast<size_t>(flags_.n_values));
  }

  Json line_as_json(const TracedOp& op) const {
    const auto row = row_of(op, op.n_rows - 1);
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
            {"values", row.first(n_shown(op.n_cols))},
            {"seconds", op.seconds ? Json(*op.seconds) : Json()}};
  }

  void write_line(const TracedOp& op) const {
    const auto row = row_of(op, op.n_rows - 1);
    const RowStatistics of = statistics_of(row);
    write_out(fmt::format("{:>5}  ", op.layer < 0 ? "-" : std::to_string(op.layer)), style_.note());
    write_out(fmt::format("{:<22} ", op.op), style_.name());
    write_out(fmt::format("{:<13} ", op.place ? place_name(*op.place) : ""), style_.question());
    write_out(fmt::format("{:>13} {:>9.3g} {:>9.3g} {:>9.2g} {:>9.4g}",
                          fmt::format("[{}, {}]", op.n_rows, op.n_cols), of.min, of.max, of.mean,
                          of.norm));
    const std::string ms = op.seconds ? fmt::format("{:.3f}", 1e3 * *op.seconds) : "";
    write_out(fmt::format(" {:>8} ", ms), style_.note());
    write_values(row.first(n_shown(op.n_cols)));
    if (std::ssize(row) > std::ssize(row.first(n_shown(op.n_cols)))) write_out(" …");
    if (of.n_bad > 0) write_out(fmt::format(" {} not finite", of.n_bad), style_.alarm());
    write_out("\n");
  }

  void write_values(std::span<const float> values) const {
    for (const float value : values) {
      write_out(fmt::format(" {:>9.3g}", value), !std::isfinite(value) ? style_.alarm()
                                                 : value < 0           ? style_.negative()
                                                                       : style_.positive());
    }
  }

  void stop_at(const Wanted& here, const TracedOp& op) {
    Json list = Json::array();
    if (!json_)
      write_out(fmt::format("break at {}{}\n", here.name, is_over_ ? ": the end" : ""),
                style_.question());
    print(here, op, list);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (found_[i]) {
        print(tensors_[i], *found_[i], list);
      } else if (!json_) {
        write_out(fmt::format("{} is not computed yet\n", tensors_[i].name));
      }
    }
    if (json_) write_json({{"break", here.name}, {"tensors", std::move(list)}});
    flush_out();
  }

  void print(const Wanted& wanted, const TracedOp& op, Json& list) const {
    const auto first = static_cast<size_t>(wanted.tensor.columns.first);
    const int64_t end = wanted.tensor.columns.second < 0 ? op.n_cols : wanted.tensor.columns.second;
    const size_t n_cols = static_cast<size_t>(end) - first;
    const auto row = [&](int64_t i) { return row_of(op, i).subspan(first, n_cols); };
    if (json_) {
      Json rows = Json::array();
      for (int64_t i = 0; i < op.n_rows; ++i) rows.push_back(row(i));
      list.push_back(
          {{"name", wanted.name}, {"shape", {op.n_rows, n_cols}}, {"values", std::move(rows)}});
      return;
    }
    write_out(fmt::format("{} [{}, {}]\n", wanted.name, op.n_rows, n_cols), style_.name());
    const auto n_rows = static_cast<size_t>(op.n_rows);
    for (size_t i = 0; i < n_rows; ++i) {
      const bool is_inner = i >= kMostRows / 2 && i + kMostRows / 2 < n_rows;
      if (is_inner && n_rows > kMostRows) {
        if (i == kMostRows / 2) write_out("  …\n");
        continue;
      }
      write_out(fmt::format("{:>5} ", i), style_.note());
      const size_t n = n_shown(static_cast<int64_t>(n_cols));
      write_values(row(static_cast<int64_t>(i)).first(n));
      write_out(n < n_cols ? " …\n" : "\n");
    }
  }

  const TraceFlags& flags_;
  bool json_;
  TerminalStyle style_;
  std::vector<int64_t> layers_;
  std::vector<Wanted> breaks_;  // that are still to come
  std::vector<Wanted> tensors_;
  std::vector<std::optional<TracedOp>> found_;  // of tensors_
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

void declare_trace(CLI::App& app, TraceFlags& values) {
  group(app, "trace");
  CLI::Option* trace =
      add_switch(app, "--trace", values.trace,
                 "show how the first token is computed, op by op, and do not go on: a line for "
                 "each op, with the numbers of the last token of the text; the KV cache is f32 "
                 "unless -ctk, -ctv say otherwise");
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
  const auto cache =
      model->make_cache(std::ssize(ids), cache_dtype(model_flags.options.cache_type_k),
                        cache_dtype(model_flags.options.cache_type_v));
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
