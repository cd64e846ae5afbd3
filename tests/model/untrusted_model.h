// What must hold for any file of a model folder: the library throws an Error of ours, or it opens
// the model far enough to know its spec, its tensors and its tokenizer. Any other exception, and
// whatever a sanitizer sees, is a finding. Shared by the fuzz targets and by the tests that replay
// their corpus.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "checkpoint/temp_file.h"
#include "checkpoint/torch_writer.h"
#include "checkpoint/untrusted_check.h"
#include "layouts/canonical.h"
#include "layouts/meta.h"
#include "model/decoder_from_checkpoint.h"
#include "model/hugging_face_builder.h"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "quantize/importance.h"

namespace limpid {

// One head of four, one layer: a folder that is opened in well under a millisecond.
inline testing::TinyShape untrusted_shape() {
  testing::TinyShape shape;
  shape.n_layers = 1;
  shape.d_model = 8;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  shape.head_dim = 4;
  shape.d_ff = 16;
  shape.vocab_size = 10;
  shape.n_ctx = 16;
  return shape;
}

inline constexpr std::string_view kUntrustedParams =
    R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"vocab_size":10,"multiple_of":16,)"
    R"("ffn_dim_multiplier":0.5,"norm_eps":1e-05,"rope_theta":10000.0,"max_seq_len":16})";

// kRefused for an Error; kAccepted when `open` returns.
template <typename Open>
Verdict verdict_of(Open&& open) {
  try {
    open();
    return Verdict::kAccepted;
  } catch (const Error&) {
    return Verdict::kRefused;
  }
}

// All that is known of a model before its weights are loaded.
inline void open_whole(const Checkpoint& checkpoint) {
  const DecoderSpec spec = read_spec(checkpoint);
  tensor_table(checkpoint, spec);
  if (has_tokenizer(checkpoint)) tokenizer_from(checkpoint)->encode("ab cd<s>\n");
}

inline Verdict check_model_at(const std::string& path) {
  return verdict_of([&] {
    ModelFiles files;
    files.path = path;
    open_whole(open_model_files(files));
  });
}

// A whole GGUF file: its keys become a spec, its vocabulary a tokenizer.
inline Verdict check_gguf_model(std::string_view input) {
  static const TempFolder folder;
  return check_model_at(folder.write("model.gguf", input));
}

// Two parts of one GGUF model. The first four bytes of the input are the size of the first part.
inline Verdict check_gguf_split(std::string_view input) {
  static const TempFolder folder;
  uint32_t n_first = 0;
  if (input.size() < sizeof(n_first)) return Verdict::kRefused;
  std::memcpy(&n_first, input.data(), sizeof(n_first));
  input.remove_prefix(sizeof(n_first));
  const auto first = input.substr(0, n_first);
  folder.write("m-00002-of-00002.gguf", input.substr(first.size()));
  return check_model_at(folder.write("m-00001-of-00002.gguf", first));
}

// model.safetensors.index.json of a folder with two shards.
inline Verdict check_safetensors_index(std::string_view input) {
  static const testing::HuggingFaceFolder folder(untrusted_shape(), 2);
  folder.files().write("model.safetensors.index.json", input);
  return check_model_at(folder.path());
}

inline void write_meta_weights(const std::string& path) {
  const auto tiny = testing::tiny_checkpoint(untrusted_shape());
  std::vector<TorchEntry> entries;
  for (const std::string& name : tiny->tensor_order) {
    const TensorView& tensor = *tiny->find(name);
    entries.push_back({*their_name(kMetaNames, name), tensor.dtype, tensor.shape});
  }
  TorchWriter writer(path, std::move(entries));
  for (const std::string& name : tiny->tensor_order) {
    const TensorView& tensor = *tiny->find(name);
    writer.write({tensor.data, tensor.n_bytes()});
  }
  writer.commit();
}

// A configuration beside weights. The first byte of the input chooses: params.json of a folder of
// Meta's, or config.json of one of Hugging Face's, or its generation_config.json.
inline Verdict check_configuration(std::string_view input) {
  if (input.empty()) return Verdict::kRefused;
  const int choice = static_cast<unsigned char>(input.front()) % 3;
  input.remove_prefix(1);
  if (choice == 0) {
    static const TempFolder folder;
    static const bool written = (write_meta_weights(folder.path("consolidated.00.pth")), true);
    static_cast<void>(written);
    folder.write("params.json", input);
    return check_model_at(folder.folder());
  }
  static testing::HuggingFaceFolder folder(untrusted_shape());
  folder.set_config(testing::config_of(untrusted_shape()));
  folder.files().write("generation_config.json", "{}");
  folder.files().write(choice == 1 ? "config.json" : "generation_config.json", input);
  return check_model_at(folder.path());
}

inline Verdict check_importance(std::string_view input) {
  static const TempFolder folder;
  const std::string path = folder.write("importance", input);
  return verdict_of([&] { Importance::open(path); });
}

// A state dictionary as lines: `NAME SIZE…` is a tensor of zeros, a line that begins with `{` the
// file's other entries as JSON.
inline Verdict check_state_dict(std::string_view input) {
  static const std::array<float, 1 << 16> kZeros{};
  Checkpoint checkpoint;
  checkpoint.path = "input";
  checkpoint.format = "torch";
  checkpoint.naming = Naming::kStateDict;
  return verdict_of([&] {
    std::istringstream lines{std::string(input)};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('{')) {
        add_json("input", line, "state.", checkpoint.metadata);
        continue;
      }
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<int64_t> sizes;
      for (int64_t size = 0; words >> size;) sizes.push_back(size);
      const Shape shape{std::span<const int64_t>(sizes)};
      if (shape.n_elements() > std::ssize(kZeros) || checkpoint.tensors.contains(name)) continue;
      checkpoint.tensor_order.push_back(name);
      checkpoint.tensors[name] = {DType::kF32, shape,
                                  reinterpret_cast<const std::byte*>(kZeros.data())};
    }
    open_whole(to_canonical(std::move(checkpoint)));
  });
}

}  // namespace limpid
