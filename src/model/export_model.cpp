#include "model/export_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/check.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/torch_writer.h"
#include "model/gguf_metadata.h"
#include "model/hugging_face.h"
#include "model/meta.h"
#include "model/model_config_json.h"
#include "model/registry.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_json_writer.h"

namespace limpid {
namespace {

constexpr int64_t kQuantizationVersion = 2;  // of ggml's block formats, since May 2023

// Streams every tensor of the plan into `write`, with progress.
void stream_all(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                const Importance& importance, const WriteOptions& options, const ByteSink& write) {
  ThreadPool pool(options.n_threads);
  uint64_t done = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    const uint64_t before = tensor_bytes(tensor.from, tensor.shape);
    const uint64_t after = tensor_bytes(tensor.to, tensor.shape);
    uint64_t written = 0;
    stream_tensor(checkpoint, tensor, importance, pool, [&](std::span<const std::byte> bytes) {
      write(bytes);
      written += bytes.size();
      const auto part = static_cast<double>(written) / static_cast<double>(after);
      const uint64_t so_far = done + static_cast<uint64_t>(part * static_cast<double>(before));
      LIMPID_CHECK(ResourceError, !options.progress || options.progress(so_far, plan.bytes_before),
                   "{}: writing was cancelled", path);
    });
    done += before;
  }
}

std::vector<NamedTensor> table_of(const TensorPlan& plan, const NameTable* names) {
  std::vector<NamedTensor> table;
  for (const PlannedTensor& tensor : plan.tensors) {
    std::string name = tensor.name;
    if (names != nullptr) {
      const auto theirs = their_name(*names, tensor.name);
      LIMPID_CHECK(UnsupportedError, theirs.has_value(), "the layout has no name for {}",
                   tensor.name);
      name = *theirs;
    }
    table.push_back({std::move(name), {tensor.to, tensor.shape, nullptr}});
  }
  return table;
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  LIMPID_CHECK(ResourceError, !error, "cannot make the folder {}: {}", path, error.message());
}

void copy_tokenizer(const std::string& folder, const Checkpoint& checkpoint, ExportResult& result) {
  for (const auto& [name, file] : checkpoint.attachments) {
    const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()),
                                   file->size());
    if (name != "config.json" && name != "params.json")
      write_file((std::filesystem::path(folder) / name).string(), content);
  }
  if (has_tokenizer(checkpoint.attachments)) return;
  const auto model = checkpoint.metadata.string("tokenizer.ggml.model").value_or("no_vocab");
  if (model == "no_vocab") {
    result.remarks.emplace_back("the model carries no tokenizer, so none was written");
    return;
  }
  try {
    const TokenizerSpec spec = tokenizer_from(checkpoint)->spec();
    write_file((std::filesystem::path(folder) / "tokenizer.json").string(),
               write_tokenizer_json(spec));
    write_file((std::filesystem::path(folder) / "tokenizer_config.json").string(),
               tokenizer_config(checkpoint, spec));
  } catch (const Error& error) {
    result.remarks.push_back(
        fmt::format("no tokenizer was written ({}): put the original's files beside the weights",
                    error.what()));
  }
}

std::string torch_name(DType dtype) {
  if (dtype == DType::kF16) return "float16";
  return dtype == DType::kBF16 ? "bfloat16" : "float32";
}

// Of most elements.
DType main_type(const TensorPlan& plan) {
  int64_t count[3] = {};
  for (const PlannedTensor& tensor : plan.tensors) {
    count[static_cast<size_t>(tensor.to) % 3] += tensor.shape.n_elements();
  }
  return static_cast<DType>(std::max_element(count, count + 3) - count);
}

void write_hugging_face(const std::string& path, const Checkpoint& checkpoint,
                        const ExportOptions& options, ExportResult& result) {
  const DecoderSpec spec = read_spec(checkpoint);
  const std::string config =
      hugging_face_config(checkpoint, spec, torch_name(main_type(result.plan)));
  const auto table = table_of(result.plan, find_hugging_face_family(spec.architecture)->names);
  make_folder(path);
  const std::filesystem::path folder(path);
  SafetensorsStream stream((folder / "model.safetensors").string(), {{"format", "pt"}}, table);
  stream_all(path, checkpoint, result.plan, {}, options.write,
             [&](std::span<const std::byte> bytes) { stream.write(bytes); });
  stream.commit();
  write_file((folder / "config.json").string(), config);
  copy_tokenizer(path, checkpoint, result);
}

void write_meta(const std::string& path, const Checkpoint& checkpoint, const ExportOptions& options,
                ExportResult& result) {
  const DecoderSpec spec = read_spec(checkpoint);
  const std::string params = meta_params(checkpoint, spec);
  std::vector<TorchEntry> entries;
  for (const NamedTensor& tensor : table_of(result.plan, &meta_name_table())) {
    entries.push_back({tensor.name, tensor.view.dtype, tensor.view.shape, -1});
  }
  // Meta's code always loads an output matrix; a tied one is the embedding's own bytes.
  for (size_t i = 0; spec.tied_embeddings && i < result.plan.tensors.size(); ++i) {
    if (result.plan.tensors[i].name != "token_embd.weight") continue;
    entries.push_back(
        {"output.weight", entries[i].dtype, entries[i].shape, static_cast<int64_t>(i)});
    break;
  }
  make_folder(path);
  const std::filesystem::path folder(path);
  TorchWriter stream((folder / "consolidated.00.pth").string(), std::move(entries));
  stream_all(path, checkpoint, result.plan, {}, options.write,
             [&](std::span<const std::byte> bytes) { stream.write(bytes); });
  stream.commit();
  write_file((folder / "params.json").string(), params);
  copy_tokenizer(path, checkpoint, result);
}

}  // namespace

void write_model_gguf(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                      const FileType* file_type, const Importance& importance,
                      const WriteOptions& options) {
  Metadata metadata = checkpoint.metadata;
  if (file_type != nullptr) {
    metadata.set("general.file_type", {file_type->id, "u32"});
    metadata.set("general.quantization_version", {kQuantizationVersion, "u32"});
  }
  GgufStream stream(path, metadata, table_of(plan, nullptr));
  stream_all(path, checkpoint, plan, importance, options,
             [&](std::span<const std::byte> bytes) { stream.write(bytes); });
  stream.commit();
}

ExportResult export_model(const std::string& path, const Checkpoint& checkpoint,
                          const ExportOptions& options) {
  const bool is_gguf = options.layout == Layout::kGguf;
  const Checkpoint source = is_gguf ? described_for_gguf(checkpoint) : checkpoint;
  PlanOptions plan;
  plan.file_type = options.file_type;
  plan.allow_requantize = options.allow_requantize;
  ExportResult result;
  if (is_gguf) {
    result.plan = plan_tensors(source, plan);
    write_model_gguf(path, source, result.plan, options.file_type, {}, options.write);
    return result;
  }
  LIMPID_CHECK(UnsupportedError,
               options.file_type == nullptr || !is_quantized(options.file_type->dtype),
               "this layout holds f32, f16 and bf16; {} goes into GGUF only",
               options.file_type == nullptr ? "" : options.file_type->name);
  plan.keep_vectors = true;
  plan.dequantize = true;
  plan.head_rows = HeadRows::kInterleavedPairs;  // Meta's
  if (options.layout == Layout::kHuggingFace) {
    const HuggingFaceFamily* family = find_hugging_face_family(read_spec(source).architecture);
    plan.head_rows = family == nullptr ? HeadRows::kHalfSplit : family->head_rows;
  }
  result.plan = plan_tensors(source, plan);
  if (options.layout == Layout::kHuggingFace) {
    write_hugging_face(path, source, options, result);
  } else {
    write_meta(path, source, options, result);
  }
  return result;
}

}  // namespace limpid
