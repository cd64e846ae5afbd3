#include "quantize/quantized_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/paths.h"
#include "checkpoint/gguf.h"
#include "quantize/input_means.h"

namespace limpid {
namespace {

// Change this when the same source would give different bytes.
constexpr std::string_view kQuantizerVersion = "limpid quantizer 3";
constexpr const char* kIdentityKey = "limpid.cache.source";

// 64-bit FNV-1a (Fowler, Noll and Vo): for each byte, h = (h ^ byte) * 1099511628211. It detects
// accidental changes; it does not resist an attacker.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<uint64_t>(byte)) * 0x100000001b3ULL;
    }
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void add(Number number) { add(std::as_bytes(std::span(&number, 1))); }
  // Adds the length first, so that two parts of a list cannot be confused with one longer part.
  void add(std::string_view text) {
    add(text.size());
    add(std::as_bytes(std::span(text)));
  }
  template <typename Value>
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const auto& value : values) add(value);
  }
  void add(const MetadataValue& value) {
    add(value.value.index());
    std::visit([this](const auto& held) { add(held); }, value.value);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

uint64_t hash_of(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.value();
}

// Hashes both ends of a file and 64 pages spread evenly over it. A whole model would take seconds
// to read.
uint64_t sampled_hash(std::span<const std::byte> bytes) {
  constexpr size_t kEnd = size_t{64} << 10;
  constexpr size_t kPage = 4096;
  constexpr size_t kPages = 64;
  Hash hash;
  hash.add(bytes.first(std::min(kEnd, bytes.size())));
  hash.add(bytes.last(std::min(kEnd, bytes.size())));
  for (size_t i = 1; i <= kPages; ++i) {
    const size_t at = bytes.size() / (kPages + 1) * i;
    hash.add(bytes.subspan(at, std::min(kPage, bytes.size() - at)));
  }
  return hash.value();
}

std::string identity_of(const MappedFile& file) {
  struct stat status {};
  LIMPID_CHECK(ResourceError, ::stat(file.path().c_str(), &status) == 0, "cannot stat {}",
               file.path());
  return fmt::format("{}:{} {} {}.{:09} {}.{:09} {:016x}", status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec, sampled_hash(file.bytes()));
}

// Adds the position of a tensor's bytes in the files, or the bytes themselves for a tensor in
// memory.
void add_place(Hash& hash, const Checkpoint& checkpoint, const TensorView& tensor) {
  if (tensor.data == nullptr) return;
  for (size_t i = 0; i < checkpoint.files.size(); ++i) {
    const std::span<const std::byte> bytes = checkpoint.files[i]->bytes();
    if (std::less<>()(tensor.data, bytes.data())) continue;
    if (!std::less<>()(tensor.data, bytes.data() + bytes.size())) continue;
    hash.add(i);
    hash.add(tensor.data - bytes.data());
    return;
  }
  hash.add(std::span(tensor.data, tensor.n_bytes()));
}

void add_tensors(Hash& hash, const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.tensor_order) {
    const TensorView* tensor = checkpoint.find(name);
    if (tensor == nullptr) continue;
    hash.add(name);
    hash.add(dtype_info(tensor->dtype).name);
    hash.add(tensor->shape.to_string());
    add_place(hash, checkpoint, *tensor);
    const auto made = checkpoint.derived.find(name);
    if (made == checkpoint.derived.end()) continue;
    hash.add(made->second.how);
    for (const TensorView& part : made->second.row_parts) add_place(hash, checkpoint, part);
  }
}

// Hashes everything in a checkpoint except the bytes of its files. A configuration, a tokenizer or
// a rotary scaling given at opening turns the same files into a different model, and the
// activations by which the quantiser weights errors depend on it. All keys and attachments are
// included, relevant or not.
uint64_t description_hash(const Checkpoint& checkpoint) {
  Hash hash;
  hash.add(checkpoint.row_order ? static_cast<int>(*checkpoint.row_order) + 1 : 0);
  for (const auto& [key, value] : checkpoint.metadata.all()) {
    hash.add(key);
    hash.add(value);
  }
  for (const auto& [name, file] : checkpoint.attachments) {
    hash.add(name);
    hash.add(file->size());
    hash.add(file->bytes());
  }
  add_tensors(hash, checkpoint);
  return hash.value();
}

// Opens a cached result if it exists, is complete and has this identity. Updates its time of last
// use; if that fails, the result is only removed earlier than it should be.
std::optional<Checkpoint> open_cached(const std::string& path, const std::string& identity) {
  if (!is_there(path)) return std::nullopt;
  try {
    Checkpoint cached = open_gguf(path);
    if (cached.metadata.string(kIdentityKey) == identity) {
      std::error_code error;
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);
      return cached;
    }
  } catch (const Error&) {
    // The file is damaged. The caller writes it again.
  }
  return std::nullopt;
}

// The source with the tensors of `cached`, which has them in its order and by the same names.
Checkpoint with_tensors_of(const Checkpoint& source, Checkpoint cached) {
  Checkpoint result = source;
  result.format = source.format + ", quantised";
  result.tensors = std::move(cached.tensors);
  result.tensor_order = std::move(cached.tensor_order);
  result.derived.clear();
  result.owned.clear();
  result.files = std::move(cached.files);
  return result;
}

TensorPlan plan_in_place(const Checkpoint& source, const FileType& file_type) {
  return plan_tensors(source, {.file_type = &file_type, .row_order = source.row_order});
}

}  // namespace

std::string source_identity(const Checkpoint& checkpoint, const FileType& file_type,
                            const WriteOptions& options) {
  std::string identity = fmt::format("{}, {}", kQuantizerVersion, file_type.name);
  if (options.calibrate) {
    identity += fmt::format(", calibrated by {:016x}", hash_of(calibration_text()));
  }
  for (const auto& file : checkpoint.files) identity += "\n" + identity_of(*file);
  identity += fmt::format("\ndescription {:016x}", description_hash(checkpoint));
  return identity;
}

void bound_quantized_cache(const std::string& folder, const std::string& keep,
                           uint64_t most_bytes) {
  namespace fs = std::filesystem;
  struct Result {
    fs::path path;
    uint64_t size;
    fs::file_time_type used;
  };
  std::vector<Result> results;
  uint64_t total = 0;
  const fs::file_time_type yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code gone;  // another process may be removing the same files
  for (const fs::path& path : entries_of(folder)) {
    const fs::path ending = path.extension();
    if ((ending != ".gguf" && ending != ".part") || !is_file(path)) continue;
    const fs::file_time_type used = fs::last_write_time(path, gone);
    if (gone) continue;
    if (ending == ".part") {  // of an AtomicFile; a process that lives writes to its own
      if (used < yesterday) fs::remove(path, gone);
      continue;
    }
    const uint64_t size = size_of_file(path);
    total += size;
    if (path != fs::path(keep)) results.push_back({path, size, used});
  }
  std::ranges::sort(results, {}, &Result::used);
  for (const Result& result : results) {
    if (total <= most_bytes) break;
    if (fs::remove(result.path, gone)) total -= result.size;
  }
}

Checkpoint quantized_through_cache(const Checkpoint& source, const FileType& file_type,
                                   const std::string& folder, const WriteOptions& options) {
  LIMPID_CHECK(UnsupportedError, !source.files.empty(),
               "{}: only a model stored in files can be quantised while it is opened", source.path);
  const std::string identity = source_identity(source, file_type, options);
  const std::string stem =
      std::filesystem::path(source.files.front()->path()).stem().string().substr(0, 64);
  const std::string path =
      (std::filesystem::path(folder) /
       fmt::format("{}-{:016x}.{}.gguf", stem, hash_of(identity), file_type.name))
          .string();
  if (auto cached = open_cached(path, identity)) return with_tensors_of(source, std::move(*cached));

  const TensorPlan tensors = plan_in_place(source, file_type);
  make_folder(folder);
  Checkpoint described = source;
  described.metadata = Metadata{};
  described.metadata.set(kIdentityKey, {identity, "string"});
  write_model_gguf(path, described, tensors, &file_type, {{}, calibrate(source, tensors, options)},
                   options);
  auto cached = open_cached(path, identity);
  LIMPID_CHECK(ResourceError, cached.has_value(), "{} disappeared right after it was written",
               path);
  bound_quantized_cache(folder, path, kQuantizedCacheBytes);
  return with_tensors_of(source, std::move(*cached));
}

Checkpoint quantized_shapes(const Checkpoint& source, const FileType& file_type) {
  Checkpoint shapes;
  for (const PlannedTensor& tensor : plan_in_place(source, file_type).tensors) {
    shapes.tensors[tensor.name] = TensorView{tensor.to, tensor.shape, nullptr};
    shapes.tensor_order.push_back(tensor.name);
  }
  return with_tensors_of(source, std::move(shapes));
}

}  // namespace limpid
