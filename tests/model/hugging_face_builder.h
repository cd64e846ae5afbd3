// The tiny checkpoints of tiny_checkpoint.h as Hugging Face folders, and as GGUF files.
#pragma once

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/temp_file.h"
#include "checkpoint/write_gguf.h"
#include "layouts/hugging_face_llama.h"
#include "layouts/name_table.h"
#include "model/tiny_checkpoint.h"

namespace limpid::testing {

struct HuggingFaceNames {
  const char* class_name;
  const char* model_type;
};

inline HuggingFaceNames hugging_face_names(const std::string& architecture) {
  if (architecture == "qwen2") return {"Qwen2ForCausalLM", "qwen2"};
  if (architecture == "qwen3") return {"Qwen3ForCausalLM", "qwen3"};
  if (architecture == "ernie4_5") return {"Ernie4_5ForCausalLM", "ernie4_5"};
  return {"LlamaForCausalLM", "llama"};
}

// config.json of such a checkpoint, as transformers 4 writes it.
inline nlohmann::json config_of(const TinyShape& shape) {
  const HuggingFaceNames names = hugging_face_names(shape.architecture);
  nlohmann::json config = {{"architectures", {names.class_name}},
                           {"model_type", names.model_type},
                           {"hidden_size", shape.d_model},
                           {"num_hidden_layers", shape.n_layers},
                           {"num_attention_heads", shape.n_heads},
                           {"num_key_value_heads", shape.n_kv_heads},
                           {"head_dim", shape.head_dim},
                           {"intermediate_size", shape.d_ff},
                           {"vocab_size", shape.vocab_size},
                           {"max_position_embeddings", shape.n_ctx},
                           {"rms_norm_eps", 1e-5},
                           {"rope_theta", 10000.0},
                           {"rope_scaling", nullptr},
                           {"hidden_act", "silu"},
                           {"tie_word_embeddings", shape.tied},
                           {"torch_dtype", "float32"},
                           {"transformers_version", "4.57.1"},
                           {"use_cache", true}};
  if (shape.architecture == "ernie4_5") {
    config["use_bias"] = false;
    return config;
  }
  if (shape.architecture != "qwen2") config["attention_bias"] = shape.biases;
  if (shape.architecture == "llama") config["mlp_bias"] = false;
  return config;
}

// Rows of Q or K from GGUF's order for `llama` to half-split: pair 2i, 2i + 1 -> i, i + head_dim
// / 2.
inline Tensor half_split(const TensorView& view, int64_t head_dim) {
  Tensor result(view.dtype, view.shape);
  const uint64_t row_bytes =
      view.shape.rank() == 1 ? dtype_info(view.dtype).block_bytes : view.row_bytes();
  for (int64_t row = 0; row < view.shape[0]; ++row) {
    const int64_t in_head = row % head_dim;
    const int64_t to = row - in_head + in_head / 2 + (in_head % 2) * (head_dim / 2);
    std::memcpy(result.data() + static_cast<uint64_t>(to) * row_bytes,
                view.data + static_cast<uint64_t>(row) * row_bytes, row_bytes);
  }
  return result;
}

// Writes config.json and the weights, in `n_shards` files.
class HuggingFaceFolder {
 public:
  explicit HuggingFaceFolder(const TinyShape& shape = {}, int n_shards = 1)
      : HuggingFaceFolder(shape, config_of(shape), n_shards) {}

  HuggingFaceFolder(const TinyShape& shape, const nlohmann::json& config, int n_shards = 1)
      : checkpoint_(tiny_checkpoint(shape)), shape_(shape) {
    set_config(config);
    std::vector<NamedTensor> tensors;
    for (const std::string& name : checkpoint_->tensor_order)
      tensors.push_back({*their_name(kHuggingFaceLlamaNames, name), in_their_order(name)});
    write(tensors, n_shards);
  }

  std::string path() const { return folder_.folder(); }
  const TempFolder& files() const { return folder_; }
  void set_config(const nlohmann::json& config) { folder_.write("config.json", config.dump()); }
  void add(const std::string& name, const std::string& text) { folder_.write(name, text); }

  // The weights once more, with one that was not there.
  void write_with(const std::string& name, const Tensor& tensor) {
    std::vector<NamedTensor> tensors;
    for (const std::string& ours : checkpoint_->tensor_order)
      tensors.push_back({*their_name(kHuggingFaceLlamaNames, ours), in_their_order(ours)});
    tensors.push_back({name, tensor});
    write(tensors, 1);
  }
  void write_without(const std::string& left_out) {
    std::vector<NamedTensor> tensors;
    for (const std::string& ours : checkpoint_->tensor_order) {
      const std::string theirs = *their_name(kHuggingFaceLlamaNames, ours);
      if (theirs != left_out) tensors.push_back({theirs, in_their_order(ours)});
    }
    write(tensors, 1);
  }

 private:
  TensorView in_their_order(const std::string& name) {
    const TensorView view = checkpoint_->tensors.at(name);
    const bool paired = shape_.architecture == "llama" &&
                        (name.find("attn_q.") != name.npos || name.find("attn_k.") != name.npos);
    if (!paired) return view;
    owned_.push_back(std::make_shared<Tensor>(half_split(view, shape_.head_dim)));
    return owned_.back()->view();
  }

  void write(const std::vector<NamedTensor>& tensors, int n_shards) {
    const std::map<std::string, std::string> metadata = {{"format", "pt"}};
    if (n_shards == 1)
      return write_safetensors(folder_.path("model.safetensors"), metadata, tensors);
    nlohmann::json map;
    std::vector<std::vector<NamedTensor>> shards(static_cast<size_t>(n_shards));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const size_t shard = i % shards.size();
      shards[shard].push_back(tensors[i]);
      map[tensors[i].name] = shard_name(shard, shards.size());
    }
    for (size_t i = 0; i < shards.size(); ++i)
      write_safetensors(folder_.path(shard_name(i, shards.size())), metadata, shards[i]);
    folder_.write("model.safetensors.index.json",
                  nlohmann::json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
  }

  static std::string shard_name(size_t i, size_t n) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, n);
  }

  TempFolder folder_;
  std::shared_ptr<Checkpoint> checkpoint_;
  std::vector<std::shared_ptr<Tensor>> owned_;
  TinyShape shape_;
};

// The same checkpoint as a GGUF file, with more metadata or tensors if wanted.
inline std::string write_tiny_gguf(const TempFolder& folder, const TinyShape& shape,
                                   const Metadata& more = {},
                                   const std::vector<NamedTensor>& more_tensors = {}) {
  const auto checkpoint = tiny_checkpoint(shape);
  std::vector<NamedTensor> tensors = more_tensors;
  for (const std::string& name : checkpoint->tensor_order)
    tensors.push_back({name, checkpoint->tensors.at(name)});
  for (const auto& [key, value] : more.all()) checkpoint->metadata.set(key, value);
  std::string path = folder.path("model.gguf");
  write_gguf(path, checkpoint->metadata, tensors);
  return path;
}

}  // namespace limpid::testing
