#include "export/lora_export.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.h"
#include "base/check.h"
#include "checkpoint/safetensors_writer.h"
#include "layouts/lora_adapter.h"
#include "layouts/model_classes.h"

namespace limpid {
namespace {

// B with its rows in PEFT's order. `storage` owns what is not in the checkpoint.
TensorView read_b(const Checkpoint& canonical, const std::string& target, const std::string& name,
                  Tensor& storage) {
  const TensorView b = canonical.read(name, storage);
  const int64_t head_dim = peft_paired_head_dim(canonical, target);
  if (head_dim == 0) return b;
  Tensor paired = with_rows_in_order(b, RowOrder::kInterleavedPairs, head_dim);
  storage = std::move(paired);
  return storage.view();
}

}  // namespace

void export_lora_adapter(const std::string& path, const Checkpoint& canonical, int64_t number,
                         const std::string& base_model) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> targets;
  // Owns tensors that are computed when they are read. A and B are tensors of the checkpoint too,
  // so it has room for all of them; it must not grow, because `tensors` has views into it.
  std::vector<Tensor> storage(canonical.tensors.size());
  size_t n_read = 0;
  int64_t rank = 0;
  for (const auto& [name, view] : canonical.tensors) {
    const LoraNames names = lora_names(name, number);
    if (canonical.find(names.a) == nullptr) continue;
    rank = canonical.find(names.a)->shape.rows();
    const std::string module = peft_module_name(canonical, name);
    targets.insert(peft_target(canonical, name));
    tensors.push_back({module + ".lora_A.weight", canonical.read(names.a, storage[n_read++])});
    tensors.push_back(
        {module + ".lora_B.weight", read_b(canonical, name, names.b, storage[n_read++])});
  }
  LIMPID_CHECK(ArgumentError, !tensors.empty(), "{} has no adapter {}", canonical.path, number);
  // `fan_in_fan_out` tells PEFT that the matrices of GPT-2 are stored as [inputs, outputs]. PEFT
  // computes the scale as lora_alpha / r, so lora_alpha is the scale times the rank.
  const double scale = canonical.metadata.number(lora_scale_key(number)).value_or(1.0);
  const nlohmann::ordered_json config{{"peft_type", "LORA"},
                                      {"task_type", "CAUSAL_LM"},
                                      {"base_model_name_or_path", base_model},
                                      {"r", rank},
                                      {"lora_alpha", scale * static_cast<double>(rank)},
                                      {"lora_dropout", 0.0},
                                      {"target_modules", targets},
                                      {"bias", "none"},
                                      {"fan_in_fan_out", model_class_of(canonical).stores_in_out},
                                      {"use_rslora", false},
                                      {"inference_mode", true}};
  make_folder(path);
  const std::filesystem::path folder(path);
  write_safetensors((folder / "adapter_model.safetensors").string(), {{"format", "pt"}}, tensors);
  write_file((folder / "adapter_config.json").string(), config.dump(2) + "\n");
}

}  // namespace limpid
