// `limpid convert` and `limpid quantize`: a model in another layout, or in fewer bits. Both are one
// job, export_model(): quantize always writes GGUF, and needs a type.
//
// What happens in a run of either:
//   open the header   names, shapes and types, no weights
//   plan              a new type and row order for each tensor; --dry-run ends here
//   calibrate         below eight bits the model reads a short text
//   write             tensor by tensor, into a file that gets its name when it is complete
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "base/atomic_file.h"
#include "base/folder_lock.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "checkpoint/gguf_types.h"
#include "cli/command.h"
#include "cli/output_path.h"
#include "cli/signals.h"
#include "export/export_model.h"
#include "generate/engine.h"
#include "layouts/chat_templates.h"
#include "model/merge_adapters.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer_files.h"

namespace limpid::cli {
namespace {

struct ConvertFlags {
  ModelFlags model;
  std::string out;
  std::string layout;      // of convert
  std::string importance;  // of quantize
  std::string type;
  bool allow_requantize = false;
  bool no_calibrate = false;
  bool dry_run = false;
};

void declare_files(CLI::App& app, ConvertFlags& values, std::string out) {
  add_option(app, "in IN", values.model.model,
             "a model: a file, a folder as downloaded, or a name");
  add_option(app, "out OUT", values.out, std::move(out));
}

void declare_rest(CLI::App& app, ConvertFlags& values) {
  add_option(app, "--tokenizer FILE", values.model.options.tokenizer_path,
             "a tokenizer that is not in the model's folder");
  declare_overrides(app, values.model);
  add_switch(app, "--allow-requantize", values.allow_requantize,
             "quantise also what is quantised already");
  add_switch(app, "--no-calibrate", values.no_calibrate,
             "do not first run the model over a short text to measure the inputs of its matrices");
  declare_threads(app, values.model);
}

void declare_convert(CLI::App& app, ConvertFlags& values) {
  declare_files(app, values, "the file or folder to write");
  add_one_of(app, "--to LAYOUT", values.layout, {"gguf", "safetensors", "pth"},
             "gguf, safetensors (a folder for transformers) or pth (a folder for "
             "PyTorch: a Llama like Meta's, a GPT-2 like nanoGPT's)");
  add_choice(app, "--dtype TYPE", values.type, file_type_list(),
             "type of the matrices in OUT: f32, f16, bf16, or for GGUF any type of limpid "
             "quantize (default: what they are; f32 for a quantised matrix that --lora changes)");
  declare_rest(app, values);
}

void declare_quantize(CLI::App& app, ConvertFlags& values) {
  declare_files(app, values, "the file to write");
  add_choice(app, "type TYPE", values.type, file_type_list(), "what to write");
  add_option(app, "--imatrix FILE", values.importance,
             "an importance matrix as llama.cpp's imatrix writes (.gguf or .dat)");
  add_switch(app, "--dry-run", values.dry_run, "say what every tensor would become, write nothing");
  declare_rest(app, values);
}

// The layout that --to names, or GGUF when OUT ends with .gguf.
Layout layout_of(const ConvertFlags& values) {
  const bool ends_with_gguf = std::filesystem::path(values.out).extension() == ".gguf";
  const std::string name = values.layout.empty() && ends_with_gguf ? "gguf" : values.layout;
  LIMPID_CHECK(ArgumentError, !name.empty(),
               "{} does not end with .gguf: say --to gguf, safetensors or pth", values.out);
  if (name == "gguf") return Layout::kGguf;
  LIMPID_CHECK(ArgumentError, !ends_with_gguf,
               "{} ends with .gguf, but --to {} writes a folder: name a folder", values.out, name);
  return name == "pth" ? Layout::kTorch : Layout::kHuggingFace;
}

// The first file in the folder `out` that is part of a model or its tokenizer; "" if there is none.
// A folder of such a name is not one of them: writing the file fails then.
std::string model_file_in(const std::string& out) {
  const std::filesystem::path folder(out);
  for (const char* name : {"config.json", "params.json", "ckpt.pt", "generation_config.json"}) {
    if (is_there(folder / name)) return (folder / name).string();
  }
  for (const std::filesystem::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const bool has_weights = name.ends_with(".safetensors") || name.ends_with(".pth") ||
                             name.ends_with(".safetensors.index.json");
    if ((has_weights || is_tokenizer_file(name)) && is_file(entry)) return entry.string();
  }
  for (const std::filesystem::path& entry : entries_of(folder / kNamedTemplates)) {
    const std::string name = entry.filename().string();
    if (is_named_template(fmt::format("{}{}", kNamedTemplates, name))) return entry.string();
  }
  return "";
}

// A new file may have any name. A file that is there is replaced only by one of its kind, so that a
// mistyped OUT costs no configuration and no text. An empty file is a new one (mktemp makes it).
void check_is_gguf_or_new(const std::string& out) {
  if (size_of_file(out) == 0 || !is_file(out)) return;
  LIMPID_CHECK(ArgumentError, text_of(*MappedFile::open(out)).starts_with(kGgufMagic),
               "{} is there already and is not a GGUF file: name another file, or remove it", out);
}

// Refuses, before a model is read for minutes, a place where it cannot or must not be written. A
// folder that has files of another model would be a mixture of both afterwards.
void check_out(const ConvertFlags& values, Layout layout, const Checkpoint& checkpoint) {
  refuse_standard_output(values.out);
  check_not_the_input(values.out, checkpoint);
  const OpenOptions& options = values.model.options;
  const std::array inputs = {values.importance, options.tokenizer_path, options.config};
  check_not_an_input(values.out, inputs);
  if (layout == Layout::kGguf) {
    check_is_gguf_or_new(values.out);
    return check_writable(values.out);
  }
  const std::string found = model_file_in(values.out);
  LIMPID_CHECK(ArgumentError, found.empty(),
               "{} belongs to a model that is there already: name another folder, or remove it",
               found);
}

// Removes the files of a model that could not be completed, so that the next try finds none. All of
// them are new: check_out has refused a folder that had any.
void remove_unfinished(const std::string& out) {
  std::error_code ignored;
  for (std::string file = model_file_in(out); !file.empty(); file = model_file_in(out)) {
    if (!std::filesystem::remove(file, ignored)) return;
  }
}

// K types hold blocks of 256 weights. A tensor whose rows are not a multiple of that gets a type of
// blocks of 32 instead. A line for each pair of types reports this, since a small model may have
// hundreds of such tensors. --dry-run lists them all.
void report_fallbacks(const TensorPlan& plan) {
  // By type wanted, type used and row length.
  std::map<std::tuple<DType, DType, int64_t>, uint64_t> counts;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.wanted != tensor.to) ++counts[{tensor.wanted, tensor.to, tensor.shape.cols()}];
  }
  for (const auto& [fallback, n] : counts) {
    const auto& [wanted, used, n_cols] = fallback;
    print_log(fmt::format("{}: rows of {} are not a multiple of the block size of {}: {} instead",
                          count(n, "tensor"), n_cols, dtype_info(wanted).name,
                          dtype_info(used).name));
  }
}

// Writes the model, with progress on a terminal. Afterwards the remarks, and a line with the sizes.
void write(const ConvertFlags& values, ExportOptions options, const char* doing) {
  if (!values.type.empty()) options.file_type = &file_type_from_name(values.type);
  if (!values.importance.empty()) options.importance = Importance::open(values.importance);
  options.allow_requantize = values.allow_requantize;
  options.write.n_threads = std::max(values.model.options.n_threads, 0);
  options.write.calibrate = !values.no_calibrate;
  options.on_plan = [&](const TensorPlan& plan) {
    report_fallbacks(plan);
    if (!values.dry_run) return true;
    for (const PlannedTensor& tensor : plan.tensors)
      write_out(fmt::format("{:28} {:18} {} -> {}\n", tensor.name, tensor.shape.to_string(),
                            dtype_info(tensor.from).name, dtype_info(tensor.to).name));
    return false;
  };
  auto checkpoint = with_adapters(open_header(values.model), to_open_options(values.model));
  if (!values.model.options.lora.empty()) {
    const MergedType type = values.type.empty() ? MergedType::kOfBase : MergedType::kF32;
    checkpoint = std::make_shared<const Checkpoint>(merge_adapters(*checkpoint, type));
  }
  if (!values.model.options.tokenizer_path.empty())
    check_tokenizer_fits(*checkpoint, tokenizer_spec_from(*checkpoint));
  const bool is_file = options.layout == Layout::kGguf;
  // With the deepest folder of any layout, which is that of an embedding model.
  const NewFolder folder((std::filesystem::path(values.out) / "1_Pooling").string());
  std::optional<FolderLock> lock;  // before the check, so that two commands do not both pass it
  if (!is_file) {
    make_folder(values.out);
    lock.emplace(values.out);
  }
  if (!values.dry_run) check_out(values, options.layout, *checkpoint);
  ProgressBar calibration("calibrating");
  options.write.calibration_progress = [&calibration](uint64_t done, uint64_t total) {
    calibration.show(done, total, fmt::format("{} of {} tokens", done, total));
    return true;
  };
  ProgressBar bar(doing);
  options.write.progress = bar.of_bytes();
  const Stopwatch watch;
  ExportResult result;
  try {
    result = export_model(is_file ? at_end_of_links(values.out) : values.out, *checkpoint, options);
  } catch (...) {
    if (!values.dry_run && !is_file) remove_unfinished(values.out);
    throw;
  }
  if (values.dry_run) return;
  calibration.wipe();
  bar.wipe();
  for (const std::string& remark : result.remarks) print_log(remark);
  const TensorPlan& plan = result.plan;
  int64_t n_weights = 0;
  for (const PlannedTensor& tensor : plan.tensors) n_weights += tensor.shape.n_elements();
  // Of the whole file: Q4_K_M is more than Q4_K's 4.5 bits, because some of its tensors are Q6_K.
  const double bits = 8.0 * static_cast<double>(plan.bytes_after) / static_cast<double>(n_weights);
  print_log(fmt::format("{}: {}, {:.2f} bits a weight, from {} in {:.1f} s", values.out,
                        format_bytes(plan.bytes_after), bits, format_bytes(plan.bytes_before),
                        watch.seconds()));
}

void convert(const ConvertFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.model.model.empty() && !values.out.empty(),
               "give the model and where to write it: limpid convert IN OUT");
  write(values, {.layout = layout_of(values)}, "converting");
}

void quantize(const ConvertFlags& values) {
  LIMPID_CHECK(ArgumentError,
               !values.model.model.empty() && !values.out.empty() && !values.type.empty(),
               "give the model, the file to write and a type: limpid quantize IN OUT TYPE");
  write(values, {.layout = Layout::kGguf}, "quantising");
}

}  // namespace

Command convert_command() {
  return {"a model in another layout", "convert IN OUT [options]",
          "Writes the model IN in another layout. If OUT ends with .gguf, it becomes a GGUF file; "
          "otherwise --to names the layout: gguf (a file), safetensors or pth (folders). One piece "
          "of one tensor is in memory at a time.",
          "limpid convert SmolLM2-135M/ smollm2.gguf --dtype q8_0\n"
          "limpid convert model.gguf folder/ --to safetensors\n"
          "limpid convert SmolLM2-135M/ torch/ --to pth",
          bind<ConvertFlags, declare_convert, convert>};
}

Command quantize_command() {
  return {"a model in fewer bits", "quantize IN OUT TYPE [options]",
          "Writes the model IN in fewer bits to OUT, a GGUF file. Which tensor gets which type "
          "follows llama.cpp's mixtures; scales are searched for. Below eight bits, the model "
          "reads a short text first, so that rounding errors are small for the inputs that its "
          "matrices get. TYPE is one of " +
              fmt::format("{}.", fmt::join(file_type_list(), ", ")),
          "limpid quantize model-f16.gguf model-q4_k_m.gguf q4_k_m\n"
          "limpid quantize model-f16.gguf out.gguf q2_k --imatrix imatrix.gguf",
          bind<ConvertFlags, declare_quantize, quantize>};
}

}  // namespace limpid::cli
