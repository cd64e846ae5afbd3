#include "checkpoint/llama2c.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/paths.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/metadata.h"

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

// Reads the seven numbers without judging them.
Header read_header_items(ByteReader& reader, bool legacy) {
  Header header;
  for (const HeaderItem& item : kHeaderItems) {
    header.*item.member = reader.number<int32_t>(std::string("header.") + item.name);
  }
  if (legacy) {
    header.tied = header.vocab_size > 0;
    header.vocab_size = std::abs(header.vocab_size);
  }
  return header;
}

// Reads the seven numbers and checks them. Each is an i32, so number i is at byte 4 * i.
Header read_header(ByteReader& reader, bool legacy) {
  const uint64_t start = reader.offset();
  const Header header = read_header_items(reader, legacy);
  if (const auto fault = find_fault(header)) {
    reader.fail(start + 4 * fault->item, std::string("header.") + kHeaderItems[fault->item].name,
                "{}", fault->problem);
  }
  return header;
}

// A tensor of the file. `{}` in its name is the number of a layer: the files have wq of layer 0, 1,
// 2, …, then wk of all layers, and so on.
struct Stored {
  std::string_view name;
  Shape shape;
  int64_t n_copies(const Header& header) const {
    return name.starts_with("blk.") ? header.n_layers : 1;
  }
};

// The tables of rotary angles (cos and sin). They are skipped: Limpid computes the angles.
constexpr std::string_view kTables = "freq_cis";

// All tensors, in their order. The files store no names and no offsets, so a reader must know it.
// The legacy order is that of the computation; version 1 has all norms first, and no tables.
std::vector<Stored> stored_tensors(const Header& header, bool legacy) {
  const int64_t d = header.d_model;
  const Stored embedding{"token_embd.weight", {header.vocab_size, d}};
  const Stored attn_norm{"blk.{}.attn_norm.weight", {d}};
  const Stored ffn_norm{"blk.{}.ffn_norm.weight", {d}};
  const Stored output_norm{"output_norm.weight", {d}};
  const Stored matrices[] = {
      {"blk.{}.attn_q.weight", {d, d}},
      {"blk.{}.attn_k.weight", {header.d_kv(), d}},
      {"blk.{}.attn_v.weight", {header.d_kv(), d}},
      {"blk.{}.attn_output.weight", {d, d}},
      {"blk.{}.ffn_gate.weight", {header.d_ff, d}},  // w1
      {"blk.{}.ffn_down.weight", {d, header.d_ff}},  // w2
      {"blk.{}.ffn_up.weight", {header.d_ff, d}},    // w3
  };
  std::vector<Stored> order = {attn_norm, ffn_norm, output_norm, embedding};
  if (legacy) order = {embedding, attn_norm};
  order.insert(order.end(), matrices, matrices + 4);
  if (legacy) order.push_back(ffn_norm);
  order.insert(order.end(), matrices + 4, std::end(matrices));
  if (legacy) {
    const Shape table{header.seq_len, header.head_dim() / 2};
    order.insert(order.end(), {output_norm, {"freq_cis_real", table}, {"freq_cis_imag", table}});
  }
  if (!header.tied) order.push_back({"output.weight", {header.vocab_size, d}});
  return order;
}

// The size that the header implies. The formats have no other check against a truncated file, and a
// wrong guess at the format fails here too.
uint64_t expected_size(const Header& header, const std::vector<Stored>& tensors, bool legacy) {
  int64_t floats = 0;
  for (const Stored& tensor : tensors)
    floats += tensor.shape.n_elements() * tensor.n_copies(header);
  return (legacy ? 28 : kV1HeaderBytes) + 4 * static_cast<uint64_t>(floats);
}

// Gives each tensor its bytes. The reader moves past them.
void place(const Header& header, const std::vector<Stored>& tensors, ByteReader& reader,
           Checkpoint& checkpoint) {
  for (const Stored& tensor : tensors) {
    for (int64_t i = 0; i < tensor.n_copies(header); ++i) {
      const std::string name = fmt::format(fmt::runtime(tensor.name), i);
      const std::string_view bytes = reader.take(tensor_bytes(DType::kF32, tensor.shape), name);
      if (name.starts_with(kTables)) continue;
      const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
      checkpoint.add_view(name, {DType::kF32, tensor.shape, data});
    }
  }
}

// The keys that a GGUF file of this model would have.
void set_metadata(Metadata& metadata, const Header& header) {
  metadata.set("general.architecture", {std::string("llama"), "string"});
  KeyWriter keys(metadata, "llama.");
  keys.integer("context_length", header.seq_len);
  keys.integer("embedding_length", header.d_model);
  keys.integer("block_count", header.n_layers);
  keys.integer("feed_forward_length", header.d_ff);
  keys.integer("vocab_size", header.vocab_size);
  keys.integer("rope.dimension_count", header.head_dim());
  keys.integer("attention.head_count", header.n_heads);
  keys.integer("attention.head_count_kv", header.n_kv_heads);
  // llama2.c's code has these as constants; its files do not store them.
  keys.number("attention.layer_norm_rms_epsilon", 1e-5f);
  keys.number("rope.freq_base", 10000.0f);
}

// Reads the magic number and the version, up to the seven sizes. Returns true for a legacy file.
bool read_preamble(ByteReader& reader) {
  if (reader.take(kLlama2cMagic.size(), "header.dim") != kLlama2cMagic) {
    reader.seek(0, "header.dim");
    return true;
  }
  const uint64_t start = reader.offset();
  const auto version = reader.number<int32_t>("header.version");
  if (version == 1) return false;
  LIMPID_CHECK(UnsupportedError, version != 2,
               "{}: at byte {}: header.version: llama2.c version 2 (int8) is not read; export it "
               "as version 1",
               reader.path(), start);
  reader.fail(start, "header.version", "unknown version {} of llama2.c", version);
}

// The tokenizer file beside the model, the one with the vocabulary's size in its name first; "" if
// there is none.
std::string find_tokenizer(const std::string& model_path, int64_t vocab_size) {
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  for (const std::string& name :
       {fmt::format("tok{}.bin", vocab_size), std::string("tokenizer.bin")}) {
    if (is_file(folder / name)) return (folder / name).string();
  }
  return "";
}

}  // namespace

// The limits on the seven numbers make a chance match unlikely: text, for example, gives numbers
// above 2^24.
bool looks_like_llama2c_legacy(std::span<const std::byte> bytes) {
  if (bytes.size() < 28) return false;
  ByteReader reader("", bytes);
  return !find_fault(read_header_items(reader, true));
}

Checkpoint parse_llama2c(const std::string& path, std::span<const std::byte> bytes) {
  ByteReader reader(path, bytes);
  const bool legacy = read_preamble(reader);
  Header header = read_header(reader, legacy);
  if (!legacy) {
    const uint64_t start = reader.offset();
    const auto shared = reader.number<uint8_t>("header.shared_classifier");
    if (shared > 1) reader.fail(start, "header.shared_classifier", "{}, must be 0 or 1", shared);
    header.tied = shared == 1;
  }
  const std::vector<Stored> tensors = stored_tensors(header, legacy);
  const uint64_t expected = expected_size(header, tensors, legacy);
  if (expected != bytes.size()) {
    reader.fail(reader.offset(), "weights",
                "the header implies a file of {} bytes, this one has {}{}", expected, bytes.size(),
                bytes.size() < expected ? ": download it again" : "");
  }
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = legacy ? "llama2c legacy" : "llama2c v1";
  set_metadata(checkpoint.metadata, header);
  if (!legacy) reader.seek(kV1HeaderBytes, "header");
  place(header, tensors, reader, checkpoint);
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
