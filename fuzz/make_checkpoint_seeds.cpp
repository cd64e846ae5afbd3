// Writes small valid inputs of the checkpoint readers and of what opens a model: one file per idea,
// so that a mutation starts deep inside.
//   make_checkpoint_seeds FOLDER     fills FOLDER/gguf, FOLDER/llama2c, …
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/gguf_builder.h"
#include "checkpoint/llama2c_builder.h"
#include "checkpoint/safetensors_builder.h"
#include "checkpoint/torch_builder.h"
#include "fuzz/gguf_mutator.h"
#include "generate/tiny_model.h"
#include "model/untrusted_model.h"
#include "tensor/tensor.h"

namespace {

using limpid::DType;
using limpid::gguf_test::GgufSketch;
using limpid::gguf_test::number;

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

GgufSketch blocks_of(DType dtype, uint32_t id) {
  GgufSketch sketch;
  sketch.add_tensor("w", {256}, id, std::string(limpid::tensor_bytes(dtype, {256}), '\x3c'));
  return sketch;
}

void write_gguf_seeds(const std::filesystem::path& folder) {
  GgufSketch sketch = limpid::gguf_test::small_sketch();
  write(folder / "every_type_v3", serialize(sketch));
  sketch.version = 2;
  write(folder / "every_type_v2", serialize(sketch));
  GgufSketch vocabulary;
  vocabulary.add_string("tokenizer.ggml.model", "gpt2");
  write(folder / "vocabulary", serialize(vocabulary));
  GgufSketch aligned;
  aligned.alignment = 8;
  aligned.add_u32("general.alignment", 8);
  for (const char* name : {"a", "b", "c"}) aligned.add_tensor(name, {1, 1, 1, 1}, 0, number(1.0f));
  write(folder / "alignment_8", serialize(aligned));
  write(folder / "q4_k", serialize(blocks_of(DType::kQ4_K, 12)));
  write(folder / "iq4_xs", serialize(blocks_of(DType::kIQ4_XS, 23)));
}

void write_llama2c_seeds(const std::filesystem::path& folder) {
  limpid::llama2c_test::Sizes sizes;
  sizes.dim = 4;
  sizes.hidden_dim = 2;
  sizes.n_layers = 1;
  sizes.n_heads = 2;
  sizes.n_kv_heads = 1;
  sizes.vocab_size = 3;
  sizes.seq_len = 2;
  // The first byte tells the target which reader to use.
  write(folder / "legacy_tied", '\0' + limpid::llama2c_test::legacy_file(sizes, true));
  write(folder / "legacy_untied", '\0' + limpid::llama2c_test::legacy_file(sizes, false));
  write(folder / "v1_untied", '\0' + limpid::llama2c_test::v1_file(sizes, false));
  write(folder / "tokenizer", '\1' + limpid::llama2c_test::tokenizer_file());
}

// The first byte tells the target what the rest is: an archive, or a pickle.
void write_torch_seeds(const std::filesystem::path& folder) {
  namespace torch = limpid::torch_test;
  torch::ZipSketch zip = torch::small_archive();
  write(folder / "archive_open", '\0' + serialize(zip));
  zip.zip64 = false;
  for (auto& record : zip.records) record.open = false;
  write(folder / "archive_sized", '\0' + serialize(zip));
  torch::TensorSketch tensor;
  write(folder / "pickle_state_dict", '\1' + torch::state_dict(serialize(tensor)));
  tensor.sizes = torch::tuple({3, 2});
  tensor.strides = torch::tuple({1, 3});
  const std::string parameter = torch::global("torch._utils", "_rebuild_parameter") + "(" +
                                serialize(tensor) + "\x88" + torch::kOrderedDict + "tR";
  write(folder / "pickle_parameter", '\1' + torch::state_dict(parameter));
  write(folder / "pickle_wrapped",
        '\1' + torch::kProto + "}q\x05(" + torch::text("model") + torch::kOrderedDict + "(" +
            torch::text("w") + serialize(torch::TensorSketch{}) + "u}" + torch::text("_metadata") +
            "}sb" + torch::text("args") + "}(" + torch::text("dim") + torch::integer(4) +
            torch::text("betas") + "(K\x09M\x03\x01t" + torch::text("on") + "\x88" +
            torch::text("off") + "\x89" + torch::text("none") + "N" + torch::text("long") +
            "\x8a\x02\xff\x7f" + torch::text("real") + "G" + std::string(8, '\x3f') + "u" +
            torch::text("itos") + "}K" + std::string(1, '\0') + torch::text("a") + "s" +
            torch::text("list") + "](" + torch::integer(1) + "e" + torch::integer(2) + "au.");
}

void write_safetensors_seeds(const std::filesystem::path& folder) {
  using limpid::safetensors_test::file_of;
  write(folder / "two_tensors", limpid::safetensors_test::small_file());
  write(folder / "empty", file_of("{}", 0));
  std::string header;
  size_t end = 0;
  for (const auto& [name, n_bytes] : limpid::safetensors_test::kDTypes) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[1],"data_offsets":[{},{}]}})",
                          header.empty() ? "{" : ",", name, name, end, end + n_bytes);
    end += n_bytes;
  }
  write(folder / "every_dtype", file_of(header + "}", end));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string tiny_gguf(const limpid::testing::TinyShape& shape, const limpid::Metadata& more = {}) {
  const limpid::TempFolder folder;
  return bytes_of(limpid::testing::write_tiny_gguf(folder, shape, more));
}

limpid::Metadata sentence_piece_vocabulary() {
  limpid::Metadata m;
  m.set("tokenizer.ggml.model", {std::string("llama"), "string"});
  m.set("tokenizer.ggml.tokens",
        {std::vector<std::string>{"<unk>", "<s>", "</s>", "a", "b", "ab", "\u2581", "c"},
         "array of string"});
  m.set("tokenizer.ggml.token_type",
        {std::vector<int64_t>{2, 3, 3, 1, 1, 1, 1, 1}, "array of i32"});
  m.set("tokenizer.ggml.scores",
        {std::vector<double>{0, 0, 0, -1, -2, -3, -4, -5}, "array of f32"});
  m.set("tokenizer.ggml.unknown_token_id", {int64_t{0}, "u32"});
  m.set("tokenizer.ggml.bos_token_id", {int64_t{1}, "u32"});
  m.set("tokenizer.ggml.eos_token_id", {int64_t{2}, "u32"});
  return m;
}

void write_gguf_model_seeds(const std::filesystem::path& folder) {
  limpid::testing::TinyShape shape = limpid::untrusted_shape();
  for (const char* family : {"llama", "qwen2", "qwen3", "ernie4_5"}) {
    shape.architecture = family;
    shape.biases = shape.architecture == "qwen2";
    shape.qk_norm = shape.architecture == "qwen3";
    write(folder / family, tiny_gguf(shape));
  }
  shape = limpid::untrusted_shape();
  shape.architecture = "gpt2";
  shape.n_kv_heads = shape.n_heads;
  shape.biases = true;
  write(folder / "gpt2", tiny_gguf(shape));
  shape = limpid::untrusted_shape();
  shape.vocab_size = 8;
  write(folder / "sentence_piece", tiny_gguf(shape, sentence_piece_vocabulary()));
  limpid::Metadata byte_level;
  limpid::testing::add_vocabulary(byte_level);
  shape.vocab_size = limpid::testing::kTinyVocabulary;
  write(folder / "byte_level", tiny_gguf(shape, byte_level));
}

void write_split_seeds(const std::filesystem::path& folder) {
  const auto tiny = limpid::testing::tiny_checkpoint(limpid::untrusted_shape());
  std::array<std::vector<limpid::NamedTensor>, 2> parts;
  for (const std::string& name : tiny->tensor_order)
    parts[name.starts_with("blk.")].push_back({name, *tiny->find(name)});
  // The writer leaves out `split.*`, so the keys are put in by a sketch of the file.
  const limpid::TempFolder scratch;
  std::array<std::string, 2> files;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string path = scratch.path("part");
    limpid::testing::write_gguf(path, i == 0 ? tiny->metadata : limpid::Metadata{}, parts[i]);
    GgufSketch sketch = limpid::fuzz::parse_sketch(bytes_of(path));
    sketch.add("split.no", 2, number(static_cast<uint16_t>(i)));
    sketch.add("split.count", 2, number(uint16_t{2}));
    sketch.add("split.tensors.count", 5, number(static_cast<int32_t>(tiny->tensor_order.size())));
    files[i] = serialize(sketch);
  }
  write(folder / "two_parts", number(static_cast<uint32_t>(files[0].size())) + files[0] + files[1]);
}

void write_folder_seeds(const std::filesystem::path& folder) {
  const limpid::testing::TinyShape shape = limpid::untrusted_shape();
  const limpid::testing::HuggingFaceFolder shards(shape, 2);
  write(folder / "safetensors_index" / "two_shards",
        bytes_of(shards.files().path("model.safetensors.index.json")));
  write(folder / "configuration" / "params", '\0' + std::string(limpid::kUntrustedParams));
  write(folder / "configuration" / "config", '\1' + limpid::testing::config_of(shape).dump());
  write(folder / "configuration" / "generation",
        '\2' + std::string(R"({"eos_token_id":[2,3],"temperature":0.6,"top_p":0.9})"));
  std::string dat = number(int32_t{1}) + number(int32_t{1}) + "w" + number(int32_t{2});
  dat += number(int32_t{2}) + number(1.5F) + number(2.5F);
  write(folder / "importance" / "dat", dat);
  GgufSketch imatrix;
  imatrix.add_string("general.type", "imatrix");
  imatrix.add_tensor("w.in_sum2", {2, 1}, 0, number(1.5F) + number(2.5F));
  imatrix.add_tensor("w.counts", {1, 1}, 0, number(2.0F));
  write(folder / "importance" / "gguf", serialize(imatrix));
}

void write_state_dict_seeds(const std::filesystem::path& folder) {
  write(folder / "nano_gpt", R"({"model_args":{"n_layer":1,"n_head":2,"n_embd":8,"block_size":16,)"
                             R"("bias":true,"vocab_size":10,"activation_function":"gelu"}}
transformer.wte.weight 10 8
transformer.wpe.weight 16 8
transformer.h.0.ln_1.weight 8
transformer.h.0.ln_1.bias 8
transformer.h.0.attn.c_attn.weight 24 8
transformer.h.0.attn.c_attn.bias 24
transformer.h.0.attn.c_proj.weight 8 8
transformer.h.0.attn.c_proj.bias 8
transformer.h.0.ln_2.weight 8
transformer.h.0.ln_2.bias 8
transformer.h.0.mlp.c_fc.weight 32 8
transformer.h.0.mlp.c_fc.bias 32
transformer.h.0.mlp.c_proj.weight 8 32
transformer.h.0.mlp.c_proj.bias 8
transformer.ln_f.weight 8
transformer.ln_f.bias 8
lm_head.weight 10 8
)");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_checkpoint_seeds FOLDER\n", stderr);
    return 2;
  }
  write_gguf_seeds(std::filesystem::path(argv[1]) / "gguf");
  write_llama2c_seeds(std::filesystem::path(argv[1]) / "llama2c");
  write_torch_seeds(std::filesystem::path(argv[1]) / "torch");
  write_safetensors_seeds(std::filesystem::path(argv[1]) / "safetensors");
  write_gguf_model_seeds(std::filesystem::path(argv[1]) / "gguf_model");
  write_split_seeds(std::filesystem::path(argv[1]) / "gguf_split");
  write_state_dict_seeds(std::filesystem::path(argv[1]) / "state_dict");
  write_folder_seeds(argv[1]);
  return 0;
}
