// Writes small valid inputs of the checkpoint readers: one file per idea, so that a mutation starts
// deep inside.
//   make_checkpoint_seeds FOLDER     fills FOLDER/gguf and FOLDER/llama2c
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/gguf_builder.h"
#include "checkpoint/llama2c_builder.h"
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_checkpoint_seeds FOLDER\n", stderr);
    return 2;
  }
  write_gguf_seeds(std::filesystem::path(argv[1]) / "gguf");
  write_llama2c_seeds(std::filesystem::path(argv[1]) / "llama2c");
  return 0;
}
