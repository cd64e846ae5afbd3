// Writes small valid inputs of the checkpoint readers: one file per idea, so that a mutation starts
// deep inside.
//   make_checkpoint_seeds FOLDER     fills FOLDER/gguf, FOLDER/llama2c and FOLDER/torch
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/gguf_builder.h"
#include "checkpoint/llama2c_builder.h"
#include "checkpoint/safetensors_builder.h"
#include "checkpoint/torch_builder.h"
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
  return 0;
}
