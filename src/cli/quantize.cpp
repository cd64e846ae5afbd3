// `limpid quantize`: a model in fewer bits, as GGUF.
#include <fmt/format.h>

#include "base/check.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "export/export_model.h"
#include "export/gguf_description.h"

namespace limpid::cli {
namespace {

struct QuantizeFlags {
  ModelFlags model;
  std::string out;
  std::string type;
  std::string importance;
  bool no_calibrate = false;
  bool allow_requantize = false;
  bool dry_run = false;
};

void declare(CLI::App& app, QuantizeFlags& values) {
  add_option(app, "in IN", values.model.model,
             "a model: a file, a folder as downloaded, or a name");
  add_option(app, "out OUT", values.out, "the file to write");
  suggest(add_option(app, "type TYPE", values.type, "what to write"), file_type_list());
  add_option(app, "--tokenizer FILE", values.model.options.tokenizer_path,
             "a tokenizer that does not lie beside the model");
  declare_overrides(app, values.model);
  add_option(app, "--imatrix FILE", values.importance,
             "an importance matrix as llama.cpp's imatrix writes (.gguf or .dat)");
  add_switch(app, "--no-calibrate", values.no_calibrate,
             "do not run the model over a short text first to learn what its matrices meet");
  add_switch(app, "--allow-requantize", values.allow_requantize,
             "quantise also what is quantised already");
  add_switch(app, "--dry-run", values.dry_run, "say what every tensor would become, write nothing");
  declare_threads(app, values.model);
}

// K types hold blocks of 256 weights. A tensor whose rows are not a multiple of that gets a type of
// blocks of 32 instead, and the user is told.
void report_fallbacks(const TensorPlan& plan) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.wanted == tensor.to) continue;
    print_log(fmt::format("{}: rows of {} are not a multiple of the block size of {}: {} instead",
                          tensor.name, tensor.shape.cols(), dtype_info(tensor.wanted).name,
                          dtype_info(tensor.to).name));
  }
}

void print_plan(const TensorPlan& plan) {
  for (const PlannedTensor& tensor : plan.tensors) {
    write_out(fmt::format("{:28} {:18} {} -> {}\n", tensor.name, tensor.shape.to_string(),
                          dtype_info(tensor.from).name, dtype_info(tensor.to).name));
  }
}

double bits_per_weight(const TensorPlan& plan) {
  int64_t n = 0;
  for (const PlannedTensor& tensor : plan.tensors) n += tensor.shape.n_elements();
  return 8.0 * static_cast<double>(plan.bytes_after) / static_cast<double>(n);
}

int run(const QuantizeFlags& values) {
  LIMPID_CHECK(ArgumentError,
               !values.model.model.empty() && !values.out.empty() && !values.type.empty(),
               "give the model, the file to write and a type: limpid quantize IN OUT TYPE");
  const FileType& type = file_type_from_name(values.type);
  Importance importance =
      values.importance.empty() ? Importance{} : Importance::open(values.importance);
  const auto [checkpoint, remarks] = described_for_gguf(*open_header(values.model));
  PlanOptions options;
  options.file_type = &type;
  options.has_importance = !importance.empty();
  options.allow_requantize = values.allow_requantize;
  const TensorPlan plan = plan_tensors(checkpoint, options);
  report_fallbacks(plan);
  if (values.dry_run) return print_plan(plan), kExitOk;
  refuse_standard_output(values.out);
  check_not_the_input(values.out, checkpoint);
  ProgressBar bar("quantising");
  WriteOptions write;
  write.n_threads = std::max(values.model.options.n_threads, 0);
  write.progress = bar.of_bytes();
  write.calibrate = !values.no_calibrate;
  ProgressBar calibration("calibrating");
  write.calibration_progress = [&calibration](uint64_t done, uint64_t total) {
    calibration.show(done, total, fmt::format("{} of {} tokens", done, total));
    return true;
  };
  const Stopwatch watch;
  const InputFacts facts{std::move(importance), calibrate(checkpoint, plan, write)};
  calibration.wipe();
  write_model_gguf(values.out, checkpoint, plan, &type, facts, write);
  bar.wipe();
  for (const std::string& remark : remarks) print_log(remark);
  if (!facts.means.not_measured.empty()) print_log(facts.means.not_measured);
  print_log(fmt::format("{}: {}, {:.2f} bits a weight, from {} in {:.1f} s", values.out,
                        format_bytes(plan.bytes_after), bits_per_weight(plan),
                        format_bytes(plan.bytes_before), watch.seconds()));
  return kExitOk;
}

}  // namespace

Command quantize_command() {
  return {"quantize",
          "a model in fewer bits",
          "quantize IN OUT TYPE [options]",
          "Writes the model IN in fewer bits to OUT, a GGUF file. Which tensor gets which type "
          "follows llama.cpp's\nmixtures; scales are searched for. Below eight bits, the model "
          "reads a short text first, so that\nerrors of rounding do not fall along what its "
          "matrices meet. TYPE is one of\n" +
              file_type_names() + ".",
          "limpid quantize model-f16.gguf model-q4_k_m.gguf q4_k_m\n"
          "limpid quantize model-f16.gguf out.gguf q2_k --imatrix imatrix.gguf",
          bind<QuantizeFlags, declare, run>};
}

}  // namespace limpid::cli
