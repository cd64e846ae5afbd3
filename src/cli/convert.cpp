// `limpid convert`: a model in another layout.
#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "export/export_model.h"
#include "generate/engine.h"
#include "model/merge_adapters.h"

namespace limpid::cli {
namespace {

struct ConvertFlags {
  ModelFlags model;
  std::string out;
  std::string layout;
  std::string dtype;
  bool allow_requantize = false;
  bool no_calibrate = false;
};

void declare(CLI::App& app, ConvertFlags& values) {
  add_option(app, "in IN", values.model.model,
             "a model: a file, a folder as downloaded, or a name");
  add_option(app, "out OUT", values.out, "the file or folder to write");
  suggest(add_option(app, "--to LAYOUT", values.layout,
                     "gguf, safetensors (a folder for transformers) or pth (a folder as Meta's)"),
          {"gguf", "safetensors", "pth"});
  suggest(add_option(app, "--dtype TYPE", values.dtype,
                     "what matrices become: f32, f16, bf16, or for GGUF any type of limpid "
                     "quantize (default: what they are)"),
          file_type_list());
  add_option(app, "--tokenizer FILE", values.model.options.tokenizer_path,
             "a tokenizer that does not lie beside the model");
  declare_overrides(app, values.model);
  add_switch(app, "--allow-requantize", values.allow_requantize,
             "quantise also what is quantised already");
  add_switch(app, "--no-calibrate", values.no_calibrate,
             "do not run the model over a short text first to learn what its matrices meet");
  declare_threads(app, values.model);
}

// What --to says, or GGUF when OUT ends so.
Layout layout_of(const ConvertFlags& values) {
  const std::string extension = std::filesystem::path(values.out).extension().string();
  const std::string name = values.layout.empty() && extension == ".gguf" ? "gguf" : values.layout;
  if (name == "gguf") return Layout::kGguf;
  if (name == "safetensors") return Layout::kHuggingFace;
  if (name == "pth") return Layout::kMeta;
  throw ArgumentError(name.empty()
                          ? fmt::format("{} does not end with .gguf: say --to gguf, safetensors or "
                                        "pth",
                                        values.out)
                          : fmt::format("--to {}: there are gguf, safetensors and pth", name));
}

// A folder that describes another model already would describe both afterwards.
void check_no_other_model(const std::string& out, Layout layout) {
  if (layout == Layout::kGguf) return;
  const auto found =
      std::filesystem::path(out) / (layout == Layout::kHuggingFace ? "config.json" : "params.json");
  std::error_code absent;
  LIMPID_CHECK(ArgumentError, !std::filesystem::exists(found, absent),
               "{} is there already and would be overwritten: name another folder, or remove it",
               found.string());
}

int run(const ConvertFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.model.model.empty() && !values.out.empty(),
               "give the model and where to write it: limpid convert IN OUT");
  ExportOptions options;
  options.layout = layout_of(values);
  if (!values.dtype.empty()) options.file_type = &file_type_from_name(values.dtype);
  options.allow_requantize = values.allow_requantize;
  options.write.n_threads = std::max(values.model.options.n_threads, 0);
  options.write.calibrate = !values.no_calibrate;
  auto checkpoint = with_adapters(open_header(values.model), values.model.options);
  if (!values.model.options.lora.empty())
    checkpoint = std::make_shared<const Checkpoint>(merge_adapters(*checkpoint));
  refuse_standard_output(values.out);
  check_not_the_input(values.out, *checkpoint);
  check_no_other_model(values.out, options.layout);
  ProgressBar bar("converting");
  options.write.progress = bar.of_bytes();
  options.write.calibration_progress = [&bar](uint64_t done, uint64_t total) {
    bar.show(done, total, fmt::format("{} of {} tokens read before", done, total));
    return true;
  };
  const Stopwatch watch;
  const ExportResult result = export_model(values.out, *checkpoint, options);
  bar.wipe();
  for (const std::string& remark : result.remarks) print_log(remark);
  print_log(fmt::format("{}: {} from {} in {:.1f} s", values.out,
                        format_bytes(result.plan.bytes_after),
                        format_bytes(result.plan.bytes_before), watch.seconds()));
  return kExitOk;
}

}  // namespace

Command convert_command() {
  return {"convert",
          "a model in another layout",
          "convert IN OUT [options]",
          "Writes the model IN in another layout. OUT ends with .gguf: a GGUF file; else a "
          "folder, as --to says.\nOne piece of one tensor is in memory at a time.",
          "limpid convert SmolLM2-135M/ smollm2.gguf --dtype q8_0\n"
          "limpid convert model.gguf folder/ --to safetensors\n"
          "limpid convert SmolLM2-135M/ folder/ --to pth",
          bind<ConvertFlags, declare, run>};
}

}  // namespace limpid::cli
