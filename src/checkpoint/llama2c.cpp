#include "checkpoint/llama2c.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "checkpoint/byte_reader.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr uint64_t kV1HeaderBytes = 256;

// The seven i32 of both headers, in file order. A legacy file has a negative vocab_size when the
// output matrix is separate from the embedding (not tied).
struct Header {
  int64_t d_model = 0;
  int64_t d_ff = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t vocab_size = 0;
  int64_t seq_len = 0;
  bool tied = true;

  int64_t head_dim() const { return d_model / n_heads; }
  int64_t d_kv() const { return n_kv_heads * head_dim(); }
};

// A number of the header: its name for errors, where it is kept, and its largest value.
struct HeaderItem {
  const char* name;
  int64_t Header::*member;
  int64_t largest;  // the limits keep all products of sizes below 2^63
};
constexpr std::array<HeaderItem, 7> kHeaderItems = {{{"dim", &Header::d_model, 1 << 20},
                                                     {"hidden_dim", &Header::d_ff, 1 << 20},
                                                     {"n_layers", &Header::n_layers, 1 << 12},
                                                     {"n_heads", &Header::n_heads, 1 << 20},
                                                     {"n_kv_heads", &Header::n_kv_heads, 1 << 20},
                                                     {"vocab_size", &Header::vocab_size, 1 << 24},
                                                     {"seq_len", &Header::seq_len, 1 << 24}}};

struct HeaderFault {
  size_t item;  // index into kHeaderItems
  std::string problem;
};

// The first number that a model cannot have, if any. This check is also how a legacy file is
// recognised, so it must refuse what other formats begin with.
std::optional<HeaderFault> find_fault(const Header& header) {
  for (size_t i = 0; i < kHeaderItems.size(); ++i) {
    const int64_t value = header.*kHeaderItems[i].member;
    if (value < 1 || value > kHeaderItems[i].largest) {
      return HeaderFault{i, fmt::format("{} is not from 1 to {}", value, kHeaderItems[i].largest)};
    }
  }
  if (header.d_model % header.n_heads != 0 || header.head_dim() % 2 != 0) {
    return HeaderFault{3, fmt::format("dim {} in {} heads does not give an even head size",
                                      header.d_model, header.n_heads)};
  }
  if (header.n_heads % header.n_kv_heads != 0) {
    return HeaderFault{4, fmt::format("{} heads are not a multiple of {} key/value heads",
                                      header.n_heads, header.n_kv_heads)};
  }
  return std::nullopt;
}

// Reads the seven numbers as they are, without judging them.
Header read_header_items(ByteReader& reader) {
  Header header;
  for (const HeaderItem& item : kHeaderItems) {
    header.*item.member = reader.number<int32_t>(std::string("header.") + item.name);
  }
  return header;
}

// Reads the seven numbers and checks them. Each is an i32, so number i is at byte 4 * i.
Header read_header(ByteReader& reader, bool legacy) {
  const uint64_t start = reader.offset();
  Header header = read_header_items(reader);
  if (legacy) {
    header.tied = header.vocab_size > 0;
    header.vocab_size = std::abs(header.vocab_size);
  }
  if (const auto fault = find_fault(header)) {
    reader.fail(start + 4 * fault->item, std::string("header.") + kHeaderItems[fault->item].name,
                fault->problem);
  }
  return header;
}

// Gives each tensor its bytes. The files store no names and no offsets, only matrices in a fixed
// order, so a reader must place them in exactly that order.
class Placer {
 public:
  Placer(ByteReader& reader, Checkpoint& checkpoint) : reader_(reader), checkpoint_(checkpoint) {}

  // The next tensor. The reader moves past its bytes.
  void place(const std::string& name, Shape shape) {
    const std::string_view bytes = reader_.take(tensor_bytes(DType::kF32, shape), name);
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    checkpoint_.tensors.emplace(name, TensorView{DType::kF32, shape, data});
    checkpoint_.tensor_order.push_back(name);
  }

  // The same matrix of all layers: both formats store wq of layer 0, 1, 2, …, then wk, and so on.
  void place_layers(const char* suffix, int64_t n_layers, Shape shape) {
    for (int64_t i = 0; i < n_layers; ++i) place(fmt::format("blk.{}.{}", i, suffix), shape);
  }

 private:
  ByteReader& reader_;
  Checkpoint& checkpoint_;
};

void place_attention(Placer& placer, const Header& header) {
  const int64_t d = header.d_model;
  placer.place_layers("attn_q.weight", header.n_layers, {d, d});
  placer.place_layers("attn_k.weight", header.n_layers, {header.d_kv(), d});
  placer.place_layers("attn_v.weight", header.n_layers, {header.d_kv(), d});
  placer.place_layers("attn_output.weight", header.n_layers, {d, d});
}

void place_feed_forward(Placer& placer, const Header& header) {
  const int64_t d = header.d_model;
  placer.place_layers("ffn_gate.weight", header.n_layers, {header.d_ff, d});  // w1
  placer.place_layers("ffn_down.weight", header.n_layers, {d, header.d_ff});  // w2
  placer.place_layers("ffn_up.weight", header.n_layers, {header.d_ff, d});    // w3
}

// The legacy order is that of the computation. Its two tables of rotary angles (cos and sin, each
// seq_len * head_dim / 2 floats) are skipped: Limpid computes the angles.
void place_legacy(Placer& placer, const Header& header, ByteReader& reader) {
  const int64_t d = header.d_model;
  placer.place("token_embd.weight", {header.vocab_size, d});
  placer.place_layers("attn_norm.weight", header.n_layers, {d});
  place_attention(placer, header);
  placer.place_layers("ffn_norm.weight", header.n_layers, {d});
  place_feed_forward(placer, header);
  placer.place("output_norm.weight", {d});
  const auto table = static_cast<uint64_t>(header.seq_len * header.head_dim() / 2) * 4;
  reader.take(table, "freq_cis_real");
  reader.take(table, "freq_cis_imag");
  if (!header.tied) placer.place("output.weight", {header.vocab_size, d});
}

// Version 1 stores all norms first, and no tables.
void place_v1(Placer& placer, const Header& header) {
  const int64_t d = header.d_model;
  placer.place_layers("attn_norm.weight", header.n_layers, {d});
  placer.place_layers("ffn_norm.weight", header.n_layers, {d});
  placer.place("output_norm.weight", {d});
  placer.place("token_embd.weight", {header.vocab_size, d});
  place_attention(placer, header);
  place_feed_forward(placer, header);
  if (!header.tied) placer.place("output.weight", {header.vocab_size, d});
}

// The size that the header implies. The formats have no other check against a truncated file, and a
// wrong guess at the format fails here too. A layer has two norms (2 d), wq and wo (2 d^2), wk and
// wv (2 d_kv d), and three feed-forward matrices (3 d d_ff).
uint64_t expected_size(const Header& header, bool legacy) {
  const int64_t d = header.d_model;
  const int64_t layer = 2 * d + 2 * d * d + 2 * header.d_kv() * d + 3 * d * header.d_ff;
  const int64_t embeddings = (header.tied ? 1 : 2) * header.vocab_size * d;
  const int64_t tables = legacy ? header.seq_len * header.head_dim() : 0;
  const int64_t floats = embeddings + header.n_layers * layer + d + tables;
  return (legacy ? 28 : kV1HeaderBytes) + 4 * static_cast<uint64_t>(floats);
}

// The keys that a GGUF file of this model would have.
void set_metadata(Metadata& metadata, const Header& header) {
  const auto set_u32 = [&](const char* key, int64_t value) { metadata.set(key, {value, "u32"}); };
  const auto set_f32 = [&](const char* key, float value) {
    metadata.set(key, {double{value}, "f32"});
  };
  metadata.set("general.architecture", {std::string("llama"), "string"});
  set_u32("llama.context_length", header.seq_len);
  set_u32("llama.embedding_length", header.d_model);
  set_u32("llama.block_count", header.n_layers);
  set_u32("llama.feed_forward_length", header.d_ff);
  set_u32("llama.vocab_size", header.vocab_size);
  set_u32("llama.rope.dimension_count", header.head_dim());
  set_u32("llama.attention.head_count", header.n_heads);
  set_u32("llama.attention.head_count_kv", header.n_kv_heads);
  // llama2.c's code has these as constants; its files do not store them.
  set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  set_f32("llama.rope.freq_base", 10000.0f);
}

// Reads the magic number and the version, up to the seven sizes. Returns true for a legacy file.
bool read_preamble(ByteReader& reader) {
  const auto magic = reader.number<uint32_t>("header.dim");
  if (magic != kLlama2cMagic) {
    reader.seek(0, "header.dim");
    return true;
  }
  const uint64_t start = reader.offset();
  const auto version = reader.number<int32_t>("header.version");
  if (version == 1) return false;
  if (version == 2) {
    throw UnsupportedError(
        fmt::format("{}: at byte {}: header.version: llama2.c version 2 (int8) is not read; export "
                    "it as version 1",
                    reader.path(), start));
  }
  reader.fail(start, "header.version", fmt::format("unknown version {} of llama2.c", version));
}

// The tokenizer file beside the model, the one with the vocabulary's size in its name first; "" if
// there is none.
std::string find_tokenizer(const std::string& model_path, int64_t vocab_size) {
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  for (const std::string& name :
       {fmt::format("tok{}.bin", vocab_size), std::string("tokenizer.bin")}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder / name, ignored)) return (folder / name).string();
  }
  return "";
}

}  // namespace

// The limits on the seven numbers make a chance match unlikely: text, for example, gives numbers
// above 2^24.
bool looks_like_llama2c_legacy(std::span<const std::byte> bytes) {
  if (bytes.size() < 28) return false;
  ByteReader reader("", bytes);
  Header header = read_header_items(reader);
  header.vocab_size = std::abs(header.vocab_size);
  return !find_fault(header);
}

Checkpoint parse_llama2c(const std::string& path, std::span<const std::byte> bytes) {
  ByteReader reader(path, bytes);
  const bool legacy = read_preamble(reader);
  Header header = read_header(reader, legacy);
  if (!legacy) {
    const uint64_t start = reader.offset();
    const auto shared = reader.number<uint8_t>("header.shared_classifier");
    if (shared > 1)
      reader.fail(start, "header.shared_classifier", fmt::format("{}, must be 0 or 1", shared));
    header.tied = shared == 1;
  }
  const uint64_t expected = expected_size(header, legacy);
  if (expected != bytes.size()) {
    reader.fail(reader.offset(), "weights",
                fmt::format("the header asks for a file of {} bytes, this one has {}{}", expected,
                            bytes.size(), bytes.size() < expected ? ": download it again" : ""));
  }
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = legacy ? "llama2c legacy" : "llama2c v1";
  set_metadata(checkpoint.metadata, header);
  Placer placer(reader, checkpoint);
  if (legacy) {
    place_legacy(placer, header, reader);
  } else {
    reader.seek(kV1HeaderBytes, "header");
    place_v1(placer, header);
  }
  return checkpoint;
}

Checkpoint open_llama2c(const std::string& path, const std::string& tokenizer_path) {
  auto mapped = MappedFile::open(path);
  Checkpoint checkpoint = parse_llama2c(path, mapped->bytes());
  checkpoint.files.push_back(std::move(mapped));
  const int64_t vocab_size = *checkpoint.metadata.integer("llama.vocab_size");
  const std::string found =
      tokenizer_path.empty() ? find_tokenizer(path, vocab_size) : tokenizer_path;
  if (!found.empty()) {
    const auto tokenizer = MappedFile::open(found);
    parse_llama2c_tokenizer(found, tokenizer->bytes(), vocab_size, checkpoint.metadata);
  }
  return checkpoint;
}

}  // namespace limpid
