#include "layouts/lora_adapter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/model_folder.h"
#include "base/parse_number.h"
#include "base/paths.h"
#include "base/printable.h"
#include "checkpoint/metadata.h"
#include "checkpoint/safetensors.h"
#include "layouts/hugging_face.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"

namespace limpid {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kA = ".lora_A.weight";
constexpr std::string_view kB = ".lora_B.weight";

const NameTable& names_of(const Checkpoint& canonical) {
  return hugging_face_names(model_class_of(canonical));
}

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
// Keys that say how the adapter was made or is used, and not what it computes.
constexpr std::array kBookkeeping = {"auto_mapping",
                                     "base_model_name_or_path",
                                     "inference_mode",
                                     "init_lora_weights",
                                     "lora_dropout",
                                     "peft_version",
                                     "revision",
                                     "task_type",
                                     "target_modules",
                                     "exclude_modules",
                                     "fan_in_fan_out",
                                     "qalora_group_size",
                                     "layers_pattern",
                                     "layers_to_transform",
                                     "eva_config",
                                     "corda_config",
                                     "loftq_config",
                                     "megatron_core",
                                     "ensure_weight_tying",
                                     "(null)"};
// For these initialisations PEFT takes the adapter's first values away from the model's own
// weights, or quantises them, also when it loads the adapter.
constexpr std::array kChangesModel = {"pissa", "corda", "olora", "loftq"};
constexpr std::array kNeutral = {"use_dora", "use_qalora", "lora_bias", "alora_invocation_tokens"};

// The rank and the scale of an adapter in PEFT: alpha / r, or alpha / sqrt(r) (Kalajdzievski 2023,
// arXiv:2312.03732). Every key is read or refused.
struct LoraConfig {
  int64_t rank;
  double scale;
};

LoraConfig read_config(const std::string& path, std::string_view json) {
  Checkpoint given;
  given.path = path;
  add_json(path, json, "adapter.", given.metadata);
  SpecReader config(given, "adapter");
  const std::string type = config.string_or("peft_type", "LORA");
  if (type != "LORA") config.refuse("peft_type", "is `{}`, not LORA", printable(type));
  const std::string bias = config.string_or("bias", "none");
  if (bias != "none") config.refuse("bias", "is `{}`; only `none` is supported", printable(bias));
  const MetadataValue* init = given.metadata.find("adapter.init_lora_weights");
  const auto* method = init == nullptr ? nullptr : std::get_if<std::string>(&init->value);
  const auto begins = [&](const char* name) { return method->starts_with(name); };
  if (method != nullptr && std::ranges::any_of(kChangesModel, begins)) {
    config.refuse(
        "init_lora_weights",
        "is `{}`: the adapter belongs to changed weights of its model; save it again with "
        "PEFT's path_initial_model_for_weight_conversion",
        printable(*method));
  }
  const int64_t r = config.required_size("r", kLargestSize);
  const double alpha = config.positive_or("lora_alpha", 8);
  const bool by_root = config.flag_or("use_rslora", false);
  for (const char* name : {"rank_pattern", "alpha_pattern"}) {
    if (!given.metadata.below(fmt::format("adapter.{}.", name)).empty())
      config.refuse(name, "gives modules another rank or scale; patterns are not supported");
  }
  if (const auto* whole = config.strings("modules_to_save")) {
    config.refuse("modules_to_save",
                  "is {}: modules that were trained as a whole are not supported; merge the "
                  "adapter into its model with PEFT's merge_and_unload",
                  printable(fmt::format("{}", fmt::join(*whole, ", "))));
  }
  for (const char* name : kNeutral) config.require_neutral(name, 0);
  for (const char* name : kBookkeeping) {
    config.ignore(name);
    config.ignore_all_below(name);
  }
  config.refuse_the_rest();
  const auto rank = static_cast<double>(r);
  return {r, alpha / (by_root ? std::sqrt(rank) : rank)};
}

// Refuses tensors of an adapter that other modules than matrices of blocks have: of the embedding
// and of the output matrix.
void refuse_ends_of_model(const std::string& file, std::string_view name, std::string_view target) {
  const bool is_end = target == "token_embd.weight" || target == "position_embd.weight" ||
                      target == "output.weight";
  LIMPID_CHECK(UnsupportedError,
               !is_end && name.find("embed_tokens") == std::string_view::npos &&
                   name.find("lm_head") == std::string_view::npos &&
                   name.find("lora_embedding_") == std::string_view::npos,
               "{}: {}: adapters of the embedding and of the output matrix are not supported; make "
               "the adapter without them in target_modules and modules_to_save",
               file, printable(name));
}

// The canonical name of the tensor that "base_model.model.X.lora_A.weight" changes, or of X.lora_B.
std::string target_of(const Checkpoint& canonical, const std::string& file, std::string_view name,
                      std::string_view suffix) {
  std::optional<std::string> target;
  if (name.starts_with(kPrefix) && name.ends_with(suffix)) {
    const std::string_view module =
        name.substr(kPrefix.size(), name.size() - kPrefix.size() - suffix.size());
    target = our_name(names_of(canonical), std::string(module) + std::string(kWeight));
  }
  refuse_ends_of_model(file, name, target.value_or(""));
  if (!target || canonical.find(*target) == nullptr) {
    throw_format_error(file, name, "belongs to no matrix of {}; is the adapter of another model?",
                       canonical.path);
  }
  return *target;
}

}  // namespace

std::string lora_scale_key(int64_t adapter) { return fmt::format("lora.{}.scale", adapter); }

int64_t n_lora_adapters(const Checkpoint& canonical) {
  int64_t n = 0;
  while (canonical.metadata.contains(lora_scale_key(n))) ++n;
  return n;
}

LoraNames lora_names(std::string_view tensor, int64_t adapter) {
  return {fmt::format("{}.lora_a.{}", tensor, adapter),
          fmt::format("{}.lora_b.{}", tensor, adapter)};
}

void add_lora_adapter(Checkpoint& canonical, const std::string& path, double scale) {
  LIMPID_CHECK(UnsupportedError, !is_file(path),
               "{} is a file; an adapter is a folder with {} and {}", path, kConfigFile,
               kTensorFile);
  const ModelFolder folder(path);
  const auto config_file = folder.open(kConfigFile);
  const LoraConfig config =
      read_config((std::filesystem::path(path) / kConfigFile).string(), text_of(*config_file));
  const std::string file = (std::filesystem::path(path) / kTensorFile).string();
  const Checkpoint given = open_safetensors(folder.resolve(kTensorFile));
  if (given.tensor_order.empty()) {
    throw_format_error(file, "file", "contains no matrices; save the adapter again");
  }
  const double whole_scale = config.scale * scale;
  LIMPID_CHECK(ArgumentError, std::abs(whole_scale) <= std::numeric_limits<float>::max(),
               "{}: the scale of the adapter is {}, which is too large: give a smaller one", path,
               whole_scale);
  const int64_t number = n_lora_adapters(canonical);
  for (const std::string& name : given.tensor_order) {
    const bool is_a = name.ends_with(kA);
    const std::string target = target_of(canonical, file, name, is_a ? kA : kB);
    const Shape& whole = canonical.find(target)->shape;
    const LoraNames names = lora_names(target, number);
    const TensorView& tensor = *given.find(name);
    const Shape wanted = is_a ? Shape{config.rank, whole.cols()} : Shape{whole.rows(), config.rank};
    if (tensor.shape != wanted) {
      throw_format_error(file, name, "is {}, expected {}; is the adapter of another model?",
                         tensor.to_string(), wanted.to_string());
    }
    if (!is_plain_float(tensor.dtype)) {
      throw_format_error(file, name, "is {}; adapters are read in f32, f16 and bf16",
                         tensor.to_string());
    }
    const std::string& ours = is_a ? names.a : names.b;
    if (canonical.tensors.contains(ours)) throw_format_error(file, name, "is a second {}", ours);
    const int64_t head_dim = is_a ? 0 : peft_paired_head_dim(canonical, target);
    if (head_dim == 0) {
      canonical.add_from(given, name, ours);
      continue;
    }
    Tensor storage;
    canonical.add(ours,
                  with_rows_in_order(given.read(name, storage), RowOrder::kHalfSplit, head_dim));
  }
  canonical.files.insert(canonical.files.end(), given.files.begin(), given.files.end());
  canonical.metadata.set(lora_scale_key(number), {whole_scale, "f64"});
  for (const auto& [name, tensor] : canonical.tensors) {
    const LoraNames names = lora_names(name, number);
    const bool has_a = canonical.find(names.a) != nullptr;
    if (has_a == (canonical.find(names.b) != nullptr)) continue;
    throw_format_error(file, has_a ? names.a : names.b,
                       "is one of the two matrices of an adapter; the other one is missing");
  }
}

// A path may contain '=', so only a number after the last '=' is a scale.
LoraSource read_lora_source(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || is_folder(text)) return {text};
  const std::string path = text.substr(0, equals);
  const auto scale = parse_number<double>(std::string_view(text).substr(equals + 1));
  if (scale && std::isfinite(*scale)) return {path, *scale};
  LIMPID_CHECK(ArgumentError, !is_folder(path),
               "OpenOptions::lora {}: the scale after = must be a number, as in {}=0.5", text,
               path);
  return {text};
}

void add_lora_adapters(Checkpoint& canonical, std::span<const std::string> adapters) {
  for (const std::string& text : adapters) {
    const LoraSource source = read_lora_source(text);
    add_lora_adapter(canonical, source.path, source.scale);
  }
}

std::string peft_module_name(const Checkpoint& canonical, std::string_view tensor) {
  std::string name = their_name(names_of(canonical), tensor).value_or(std::string(tensor));
  if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
  return fmt::format("{}{}{}", kPrefix, model_class_of(canonical).module_prefix, name);
}

std::string peft_target(const Checkpoint& canonical, std::string_view tensor) {
  const std::string module = peft_module_name(canonical, tensor);
  return module.substr(module.rfind('.') + 1);
}

int64_t peft_paired_head_dim(const Checkpoint& canonical, std::string_view tensor) {
  const ModelClass& model_class = model_class_of(canonical);
  const bool is_paired = tensor.ends_with(".attn_q.weight") || tensor.ends_with(".attn_k.weight");
  if (model_class.row_order == RowOrder::kHalfSplit || !is_paired) return 0;
  SpecReader reader(canonical, std::string(model_class.architecture));
  const auto stated = reader.size("attention.key_length", kLargestSize);
  const int64_t head_dim =
      stated.value_or(reader.required_size("embedding_length", kLargestSize) /
                      reader.required_size("attention.head_count", kLargestSize));
  const int64_t n_rows = canonical.find(tensor)->shape.rows();
  if (head_dim == 0 || head_dim % 2 != 0 || n_rows % head_dim != 0) {
    reader.fail("attention.key_length",
                "gives heads of {} elements, but {} has {} rows; are configuration and "
                "weights of the same model?",
                head_dim, tensor, n_rows);
  }
  return head_dim;
}

Tensor with_rows_in_order(const TensorView& b, RowOrder order, int64_t head_dim) {
  Tensor result(b.dtype, b.shape);
  for (int64_t row = 0; row < b.shape.rows(); ++row) {
    const int64_t from = order == RowOrder::kHalfSplit ? interleaved_row(row, head_dim, head_dim)
                                                       : half_split_row(row, head_dim, head_dim);
    std::memcpy(result.data() + static_cast<uint64_t>(row) * b.row_bytes(), b.row(from),
                b.row_bytes());
  }
  return result;
}

bool is_lora_tensor(std::string_view name) {
  return name.find(".lora_a.") != std::string_view::npos ||
         name.find(".lora_b.") != std::string_view::npos;
}

}  // namespace limpid
