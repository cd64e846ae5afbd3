#include "generate/prefix_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "layouts/lora_adapter.h"

namespace limpid {
namespace {

constexpr const char* kMadeFor = "limpid.kv_cache";

// A digest of the names, the shapes and the first bytes of all tensors, of how much the adapters
// count, and of the rotary frequencies, which options can replace.
std::string fingerprint(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  constexpr size_t kFirstBytes = 256;
  Sha256 digest;
  const auto add = [&](std::string_view text) { digest.update(std::as_bytes(std::span(text))); };
  for (const auto& [name, tensor] : checkpoint.tensors) {
    add(name);
    add(dtype_info(tensor.dtype).name);
    add(tensor.shape.to_string());
    if (tensor.data != nullptr)
      digest.update({tensor.data, std::min<size_t>(kFirstBytes, tensor.n_bytes())});
  }
  for (int64_t i = 0; i < n_lora_adapters(checkpoint); ++i)
    add(fmt::format("{}", checkpoint.metadata.number(lora_scale_key(i)).value_or(1)));
  digest.update(std::as_bytes(std::span(spec.rope.inverse_frequencies)));
  return digest.hex();
}

// The facts that must be equal for the blocks of a file to be valid.
std::string origin_of(Engine& engine, const KvCache& cache) {
  const KvLayout& layout = cache.layout();
  return fmt::format("model {}, executor {}, {} layers, {} KV heads of {}, K {}, V {}",
                     fingerprint(engine.checkpoint(), engine.model().spec()),
                     engine.model().executor().name(), layout.n_layers, layout.n_kv_heads,
                     layout.head_dim, dtype_info(layout.k_dtype).name,
                     dtype_info(layout.v_dtype).name);
}

// origin_of() when the file was written; nothing in a file of another kind.
std::optional<std::string_view> origin_in(const Checkpoint& file) {
  return file.metadata.string(std::string("safetensors.") + kMadeFor);
}

// A sequence of the cache while it lives.
class ScopedSequence {
 public:
  explicit ScopedSequence(KvCache& cache) : cache_(cache), id_(cache.add_sequence()) {}
  ScopedSequence(const ScopedSequence&) = delete;
  ScopedSequence& operator=(const ScopedSequence&) = delete;
  ~ScopedSequence() { cache_.remove_sequence(id_); }
  SequenceId id() const { return id_; }

 private:
  KvCache& cache_;
  SequenceId id_;
};

void write_file(const std::string& path, const std::string& origin, std::span<const TokenId> tokens,
                KvCache& cache, std::span<const int32_t> blocks) {
  const uint64_t block_bytes = cache.storage().block_bytes();
  const std::vector<NamedTensor> tensors = {
      {"tokens", {DType::kI32, Shape{std::ssize(tokens)}, nullptr}},
      {"blocks",
       {DType::kU8, Shape{std::ssize(blocks), static_cast<int64_t>(block_bytes)}, nullptr}}};
  SafetensorsStream file(path, {{kMadeFor, origin}}, tensors);
  file.write(std::as_bytes(tokens));
  std::vector<std::byte> content(block_bytes);
  for (const int32_t block : blocks) {
    cache.storage().read_block(block, content);
    file.write(content);
  }
  file.commit();
}

}  // namespace

int64_t save_prefix(Engine& engine, std::span<const TokenId> tokens, const std::string& path) {
  int64_t n_saved = 0;
  engine.scheduler().with_cache([&](KvCache& cache) {
    const ScopedSequence sequence(cache);
    std::vector<TokenId> longer(tokens.begin(), tokens.end());
    longer.push_back(0);  // adopt() leaves the last token out
    n_saved = cache.adopt(sequence.id(), longer);
    LIMPID_CHECK(ArgumentError, n_saved > 0,
                 "nothing to save: the KV cache holds nothing of this text");
    write_file(path, origin_of(engine, cache), tokens.first(static_cast<size_t>(n_saved)), cache,
               cache.blocks(sequence.id()));
  });
  return n_saved;
}

std::vector<TokenId> restore_prefix(Engine& engine, const std::string& path) {
  const Checkpoint file = open_safetensors(path);
  std::vector<TokenId> ids;
  engine.scheduler().with_cache([&](KvCache& cache) {
    const auto check = [&](bool right, const char* field, const std::string& problem) {
      if (!right) throw FormatError(path, FormatError::kNoOffset, field, problem);
    };
    const std::string origin = origin_of(engine, cache);
    const auto found = origin_in(file);
    check(found == origin, kMadeFor,
          fmt::format("is '{}', expected '{}'", found.value_or("absent"), origin));
    const auto tokens = file.tensors.find("tokens");
    const auto blocks = file.tensors.find("blocks");
    check(tokens != file.tensors.end() && tokens->second.dtype == DType::kI32, "tokens",
          "expected a tensor of I32");
    const int64_t n_tokens = tokens->second.shape.n_elements();
    const int64_t n_blocks = blocks_for(n_tokens);
    const auto block_bytes = static_cast<int64_t>(cache.storage().block_bytes());
    check(n_tokens > 0, "tokens", "is empty");
    check(blocks != file.tensors.end() && blocks->second.dtype == DType::kU8 &&
              blocks->second.shape == Shape{n_blocks, block_bytes},
          "blocks", fmt::format("expected U8 [{}, {}]", n_blocks, block_bytes));
    ids.resize(static_cast<size_t>(n_tokens));
    Tensor aligned;
    std::memcpy(ids.data(), file.read("tokens", aligned).data, ids.size() * sizeof(TokenId));

    const ScopedSequence sequence(cache);
    cache.reserve(sequence.id(), n_tokens);
    for (int64_t i = 0; i < n_blocks; ++i) {
      cache.storage().write_block(
          cache.blocks(sequence.id())[static_cast<size_t>(i)],
          {blocks->second.data + i * block_bytes, static_cast<size_t>(block_bytes)});
    }
    cache.advance(sequence.id(), ids);
  });
  return ids;
}

bool is_prefix_file(const std::string& path) {
  try {
    return origin_in(open_safetensors(path)).has_value();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace limpid
