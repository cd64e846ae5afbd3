#include "export/export_model.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/torch_writer.h"
#include "export/completed.h"
#include "export/gguf_description.h"
#include "export/model_config_json.h"
#include "layouts/chat_templates.h"
#include "layouts/gpt2.h"
#include "layouts/hugging_face.h"
#include "layouts/meta.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/merge_list.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_json_writer.h"

namespace limpid {
namespace {

// Returns the tokenizer of the checkpoint, or nothing if there is none that Limpid supports. Adds a
// remark then, unless the checkpoint has the tokenizer's files, which are copied as they are. The
// reason is among the text_problems.
std::optional<TokenizerSpec> find_tokenizer(const Checkpoint& checkpoint, ExportResult& result) {
  if (!has_tokenizer(checkpoint)) {
    result.remarks.emplace_back("the model has no tokenizer, so none was written");
    return std::nullopt;
  }
  try {
    return tokenizer_from(checkpoint)->spec();
  } catch (const Error&) {
    if (!has_tokenizer(checkpoint.attachments)) {
      result.remarks.emplace_back(
          "no tokenizer was written: copy the original tokenizer's files beside the weights");
    }
    return std::nullopt;
  }
}

// Folders hold texts as JSON, which must be UTF-8. GGUF does not check its texts.
void check_chat_templates(const Checkpoint& checkpoint) {
  for (const auto& [key, value] : checkpoint.metadata.below("tokenizer.chat_template")) {
    const auto* text = std::get_if<std::string>(&value.value);
    if ((text == nullptr || is_clean_utf8(*text)) && is_clean_utf8(key)) continue;
    throw_format_error(checkpoint.path, printable(key),
                       "is not UTF-8, and this layout cannot store it; write GGUF, or correct the "
                       "template");
  }
}

// Running ignores such ids, so an answer would not end where the model's files say.
void remark_on_stop_ids(const Checkpoint& checkpoint, int64_t vocab_size, ExportResult& result) {
  const auto* ids = checkpoint.metadata.integers(kStopTokenIdsKey);
  if (ids == nullptr) return;
  const bool is_gguf = checkpoint.format.starts_with("gguf");
  for (const int64_t id : *ids) {
    if (id < vocab_size) continue;
    result.remarks.push_back(
        fmt::format("{}: {} {} is outside the vocabulary of {} tokens; correct it{}",
                    checkpoint.path, is_gguf ? kStopTokenIdsKey : "eos_token_id", id, vocab_size,
                    is_gguf ? "" : " in generation_config.json or config.json"));
  }
}

// Compares the importance matrix with the tensors that are quantised. Those without an entry are
// quantised as if there were no importance matrix, and a remark states their number.
void check_importance(const Importance& importance, ExportResult& result) {
  if (importance.empty()) return;
  size_t n_quantized = 0;
  size_t n_known = 0;
  bool any = false;
  for (const PlannedTensor& tensor : result.plan.tensors) {
    const bool is_known = importance.contains(tensor.name);
    any = any || is_known;
    if (!is_quantized(tensor.to) || tensor.from == tensor.to) continue;
    ++n_quantized;
    n_known += is_known ? 1 : 0;
  }
  if (!any) {
    throw_format_error(importance.path(), "names of tensors",
                       "match no tensor of the model; does the importance matrix belong to another "
                       "model?");
  }
  if (n_known == n_quantized) return;
  result.remarks.push_back(
      fmt::format("the importance matrix {} has no entry for {} of the {} tensors that were "
                  "quantised",
                  importance.path(), n_quantized - n_known, n_quantized));
}

// The name of a type in torch, for config.json.
std::string torch_name(DType dtype) {
  if (dtype == DType::kF16) return "float16";
  return dtype == DType::kBF16 ? "bfloat16" : "float32";
}

// Returns the type of most elements. config.json has one type for the whole model, although norms
// are often f32 between matrices of bf16; the matrices decide.
DType main_type(const TensorPlan& plan) {
  std::map<DType, int64_t> n_elements{{DType::kF32, 0}};
  for (const PlannedTensor& tensor : plan.tensors)
    n_elements[tensor.to] += tensor.shape.n_elements();
  return std::ranges::max_element(n_elements, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

// The tensors under their names in the state dictionary. If `head` is not null, one more entry of
// that name shares the bytes of the embedding (TorchEntry::same_as), for models with tied weights.
std::vector<TorchEntry> torch_entries(const TensorPlan& plan, const NameTable& names,
                                      std::string_view prefix, const char* head) {
  std::vector<TorchEntry> entries;
  for (const NamedTensor& tensor : tensor_list(plan, &names)) {
    entries.push_back(
        {fmt::format("{}{}", prefix, tensor.name), tensor.view.dtype, tensor.view.shape, -1});
  }
  for (size_t i = 0; head != nullptr && i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].name != "token_embd.weight") continue;
    entries.push_back({head, entries[i].dtype, entries[i].shape, static_cast<int64_t>(i)});
    break;
  }
  return entries;
}

// Writes the folder of another program: its configuration, the weights, generation_config.json and
// the tokenizer's files. What can be refused is built before the first file is created, so that a
// model that the layout cannot express leaves no partial folder.
class FolderWriter {
 public:
  // `checkpoint` is completed and `result` has the plan.
  FolderWriter(const std::string& path, const Checkpoint& checkpoint, const ExportOptions& options,
               ExportResult& result)
      : path_(path),
        checkpoint_(checkpoint),
        options_(options),
        result_(result),
        spec_(read_spec(checkpoint)),
        tokenizer_(find_tokenizer(checkpoint, result)) {}

  // For transformers; for embedding models also the files of sentence-transformers.
  void write_hugging_face() {
    const std::string config =
        hugging_face_config(checkpoint_, spec_, tokenizer_, torch_name(main_type(result_.plan)));
    const std::string pooling = pooling_config(checkpoint_, spec_);
    const auto table = tensor_list(result_.plan, &hugging_face_names(model_class_of(checkpoint_)));
    add("config.json", config);
    if (!pooling.empty()) {
      add("1_Pooling/config.json", pooling);
      add("modules.json", embedding_modules());
    }
    SafetensorsStream file(path_ / "model.safetensors", {{"format", "pt"}}, table);
    finish(file);
  }

  // For Meta's code, which always loads an output matrix, so a tied one is there as a second name.
  void write_meta() {
    const std::string params = meta_params(checkpoint_, spec_);
    auto entries = torch_entries(result_.plan, kMetaNames, "",
                                 spec_.tied_embeddings ? "output.weight" : nullptr);
    add("params.json", params);
    TorchWriter file(path_ / "consolidated.00.pth", std::move(entries));
    finish(file);
  }

  // For nanoGPT, which has its configuration beside the weights in one file.
  void write_nano_gpt() {
    const nlohmann::ordered_json arguments = nano_gpt_arguments(checkpoint_, spec_);
    if (spec_.mlp == MlpKind::kGeluTanh) {
      result_.remarks.emplace_back(
          "nanoGPT computes the exact GELU, and this model its tanh approximation, so nanoGPT's "
          "logits differ slightly");
    }
    auto entries = torch_entries(result_.plan, kGpt2LinearNames, "transformer.", "lm_head.weight");
    make_folder(path_);
    TorchWriter file(path_ / "ckpt.pt", std::move(entries), &arguments);
    finish(file);
  }

 private:
  // Adds a file beside the weights. It is on the disk before the first file gets its name, so all
  // files get their names in one moment, the weights last: even if the conversion is killed in that
  // moment, a folder that has weights is complete.
  void add(const std::string& name, std::string_view content) {
    const std::filesystem::path path = path_ / name;
    make_folder(path.parent_path());
    AtomicFile& file = small_.emplace_back(path);
    file.write(content);
    file.sync();
  }

  // Streams the bytes of all tensors, adds what every folder has beside them, and gives all files
  // their names. generation_config.json has the tokens that end an answer and the recommended
  // samplers: Meta's code and nanoGPT's do not read it, Limpid does.
  template <typename File>
  void finish(File& weights) {
    stream_tensors(path_, checkpoint_, result_.plan, {}, options_.write,
                   [&](std::span<const std::byte> bytes) { weights.write(bytes); });
    const std::string text = generation_config(checkpoint_, tokenizer_);
    if (!text.empty()) add("generation_config.json", text);
    write_tokenizer();
    for (AtomicFile& file : small_) file.commit();
    weights.commit();
  }

  // Copies the tokenizer's files. If there are none, or the reader of the folder could not use
  // them, also writes a tokenizer.json.
  void write_tokenizer() {
    const auto& files = checkpoint_.attachments;
    const bool for_transformers = options_.layout == Layout::kHuggingFace;
    for (const auto& [name, file] : files) {
      if (is_tokenizer_file(name) || is_named_template(name)) add(name, text_of(*file));
    }
    // transformers reads tokenizer.json, or vocab.json with merges.txt. Ranks (*.tiktoken), the
    // names encoder.json and vocab.bpe, and a tokenizer.model are not enough for it.
    const bool is_enough = for_transformers
                               ? files.contains("vocab.json") && files.contains("merges.txt") &&
                                     !files.contains("tokenizer.model")
                               : has_tokenizer(files);
    if (!tokenizer_ || is_enough) return;
    // Without a class of the tokenizer, transformers takes the one of the model's type, which may
    // cut texts in another way than tokenizer.json says.
    const auto write_class = [&] {
      if (!files.contains("tokenizer_config.json"))
        add("tokenizer_config.json", tokenizer_config(checkpoint_, *tokenizer_));
    };
    if (files.contains("tokenizer.json")) {
      if (for_transformers) write_class();
      return;
    }
    try {
      add("tokenizer.json", write_tokenizer_json(*tokenizer_));
      if (const size_t n = n_equal_scores(*tokenizer_); n > 0) {
        result_.remarks.push_back(
            fmt::format("{} tokens share their score with another token; when two of them overlap, "
                        "tokenizer.json decides by id, SentencePiece by position",
                        n));
      }
      write_class();
    } catch (const UnsupportedError& error) {
      result_.remarks.push_back(fmt::format("no tokenizer.json was written ({})", error.what()));
    }
  }

  std::filesystem::path path_;
  const Checkpoint& checkpoint_;
  const ExportOptions& options_;
  ExportResult& result_;
  DecoderSpec spec_;
  std::optional<TokenizerSpec> tokenizer_;
  std::list<AtomicFile> small_;  // the files beside the weights
};

}  // namespace

// The layouts differ in what they require; each branch completes the checkpoint, plans the tensors
// and writes them.
ExportResult export_model(const std::string& path, const Checkpoint& checkpoint,
                          const ExportOptions& options) {
  const DecoderSpec spec = read_spec(checkpoint);
  weight_sources(checkpoint, spec);  // checks all shapes
  PlanOptions plan;
  plan.file_type = options.file_type;
  plan.allow_requantize = options.allow_requantize;
  ExportResult result;
  remark_on_stop_ids(checkpoint, spec.vocab_size, result);
  std::ranges::move(text_problems(checkpoint), std::back_inserter(result.remarks));
  // False when there is nothing to write.
  const auto make_plan = [&](const Checkpoint& source) {
    result.plan = plan_tensors(source, plan);
    if (options.layout == Layout::kGguf) check_importance(options.importance, result);
    return !options.on_plan || options.on_plan(result.plan);
  };
  if (options.layout == Layout::kGguf) {
    const Checkpoint described = described_for_gguf(checkpoint, result.remarks);
    plan.has_importance = !options.importance.empty();
    if (!make_plan(described)) return result;
    const InputFacts facts{options.importance, calibrate(described, result.plan, options.write)};
    if (!facts.means.not_measured.empty()) result.remarks.push_back(facts.means.not_measured);
    write_model_gguf(path, described, result.plan, options.file_type, facts, options.write);
    return result;
  }
  LIMPID_CHECK(UnsupportedError,
               options.file_type == nullptr || !is_quantized(options.file_type->dtype),
               "this layout supports f32, f16 and bf16; only GGUF supports {}",
               options.file_type == nullptr ? "" : options.file_type->name);
  check_chat_templates(checkpoint);
  plan.plain_types = true;
  Checkpoint source = with_named_scaling(completed(checkpoint));
  if (options.layout == Layout::kTorch) {
    const bool is_gpt2 = model_class_of(source).family == Family::kGpt2;
    if (!is_gpt2) plan.row_order = RowOrder::kInterleavedPairs;
    if (!make_plan(source)) return result;
    FolderWriter writer(path, source, options, result);
    is_gpt2 ? writer.write_nano_gpt() : writer.write_meta();
    return result;
  }
  const ModelClass& model_class = model_class_of(source);
  plan.row_order = model_class.row_order;
  source = completed_for_class(transposed_for(std::move(source), hugging_face_names(model_class)),
                               model_class);
  if (make_plan(source)) FolderWriter(path, source, options, result).write_hugging_face();
  return result;
}

}  // namespace limpid
