#include "checkpoint/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/foreign_file.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "base/paths.h"
#include "base/printable.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/meta_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/torch_checkpoint.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReadable =
    "Limpid reads folders of Hugging Face and Meta, safetensors, PyTorch .pth and .pt, GGUF, and "
    "llama2.c .bin files";

// Refuses a folder that is not a model. The message lists the first entries, so the user sees which
// folder was meant.
[[noreturn]] void refuse_folder(const std::string& path) {
  constexpr size_t kShown = 6;
  LIMPID_CHECK(
      UnsupportedError, !is_there(fs::path(path) / "adapter_config.json"),
      "{} is a LoRA adapter, not a model: open the model that it adapts, with OpenOptions::lora {}",
      path, path);
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(path))
    names.push_back(printable(entry.filename().string()));
  const size_t n_names = names.size();
  if (n_names > kShown) names.resize(kShown);
  throw UnsupportedError(fmt::format(
      "{} is a folder without config.json, consolidated.00.pth or ckpt.pt ({}{}): name a file in "
      "it, or download the whole model. {}",
      path, n_names == 0 ? "it is empty" : fmt::format("it has {}", fmt::join(names, ", ")),
      n_names > kShown ? ", ..." : "", kReadable));
}

// Refuses a file that no reader knows. The message says what the file is, or shows its first four
// bytes.
[[noreturn]] void refuse_content(const std::string& path, std::string_view text) {
  LIMPID_CHECK(UnsupportedError, !path.ends_with("vocab.json"),
               "{} is the vocabulary of a tokenizer, not a model", path);
  LIMPID_CHECK(UnsupportedError, !path.ends_with(".json"),
               "{} describes a model but holds no weights: name its folder, {}", path,
               folder_of(path).string());
  refuse_foreign(path, text);
  std::string hex;
  for (const char c : text.substr(0, 4))
    hex += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  throw FormatError(
      path, 0, "magic",
      fmt::format("begins with{}, which is not a known model format. {}", hex, kReadable));
}

constexpr std::string_view kNanoGptFile = "ckpt.pt";

Checkpoint open_folder(const std::string& path) {
  if (looks_like_hugging_face(path)) return open_hugging_face_folder(path);
  if (looks_like_meta(path)) return open_meta_folder(path);
  const ModelFolder folder(path);
  if (!folder.contains(kNanoGptFile)) refuse_folder(path);
  Checkpoint checkpoint = open_torch(folder.resolve(kNanoGptFile));
  attach_files(folder, checkpoint);
  return checkpoint;
}

Checkpoint open_safetensors_file(const std::string& path) {
  return looks_like_hugging_face(folder_of(path)) ? open_hugging_face_file(path)
                                                  : open_safetensors(path);
}

// One shard of a Meta folder opens the whole folder.
Checkpoint open_torch_file(const std::string& path) {
  const std::string folder = folder_of(path).string();
  const bool shard = fs::path(path).filename().string().starts_with("consolidated.") &&
                     is_there(fs::path(folder) / "params.json");
  return shard && looks_like_meta(folder) ? open_meta_folder(folder) : open_torch(path);
}

}  // namespace

void Checkpoint::add(const std::string& name, Tensor tensor) {
  owned.push_back(std::make_shared<Tensor>(std::move(tensor)));
  derived.erase(name);
  if (tensors.insert_or_assign(name, owned.back()->view()).second) tensor_order.push_back(name);
}

void Checkpoint::add_view(const std::string& name, const TensorView& view) {
  if (reinterpret_cast<uintptr_t>(view.data) % dtype_info(view.dtype).block_bytes == 0) {
    tensors[name] = view;
    tensor_order.push_back(name);
    return;
  }
  add_derived(name, view.dtype, view.shape, {"copied to an aligned address", [view] {
                                               Tensor copy(view.dtype, view.shape);
                                               std::memcpy(copy.data(), view.data, view.n_bytes());
                                               return copy;
                                             }});
}

void Checkpoint::add_derived(const std::string& name, DType dtype, const Shape& shape,
                             DerivedTensor made) {
  if (tensors.insert_or_assign(name, TensorView{dtype, shape, nullptr}).second)
    tensor_order.push_back(name);
  derived[name] = std::move(made);
}

// A derived tensor must come out with the dtype and shape that the checkpoint states for it.
TensorView Checkpoint::read(std::string_view name, Tensor& storage) const {
  const TensorView* tensor = find(name);
  LIMPID_CHECK(ArgumentError, tensor != nullptr, "{} has no tensor {}", path, name);
  const auto found = derived.find(name);
  if (found == derived.end()) return *tensor;
  storage = found->second.make();
  LIMPID_CHECK(ShapeError, storage.dtype() == tensor->dtype && storage.shape() == tensor->shape,
               "[checkpoint] {} was derived as {}, expected {}", name, storage.view().to_string(),
               tensor->to_string());
  return storage.view();
}

void Checkpoint::add_from(const Checkpoint& other, const std::string& name,
                          const std::string& ours) {
  tensors[ours] = *other.find(name);
  tensor_order.push_back(ours);
  const auto made = other.derived.find(name);
  if (made != other.derived.end()) derived[ours] = made->second;
}

void Checkpoint::erase(const std::string& name) {
  tensors.erase(name);
  derived.erase(name);
  std::erase(tensor_order, name);
}

void check_not_shrunk(const MappedFile& file) {
  LIMPID_CHECK(ResourceError, size_of_file(file.path()) >= file.size(),
               "{} had {} bytes when it was opened and has fewer now; is it still being written?",
               file.path(), file.size());
}

// Looks for the file whose map contains `part`.
void leave_file(const Checkpoint& checkpoint, std::span<const std::byte> part) {
  const bool mapped = std::ranges::any_of(checkpoint.files, [part](const auto& file) {
    const std::byte* begin = file->bytes().data();
    return part.data() >= begin && part.data() + part.size() <= begin + file->size();
  });
  if (mapped) leave_pages(part);
}

// The order of the tests matters. Magic numbers come first because they are certain. The legacy
// llama2.c format has no magic number, only a plausible header, so its test comes after them. A
// safetensors file cannot pass it: the upper half of the file's u64 header length is 0, and a
// llama2.c header has `hidden_dim` there, which must be at least 1.
Checkpoint open_checkpoint(const std::string& path, const std::string& tokenizer_path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  LIMPID_CHECK(ResourceError, fs::exists(status), "cannot open {}: {}", shown_path(path),
               error ? error.message() : "No such file or directory");
  Checkpoint checkpoint = [&] {
    if (fs::is_directory(status)) return open_folder(path);
    const auto mapped = MappedFile::open(path);
    const std::span<const std::byte> bytes = mapped->bytes();
    if (bytes.empty()) throw_format_error(path, "file", "is empty; download it again");
    const std::string_view text = text_of(*mapped);
    if (text.starts_with(kGgufMagic)) return open_gguf(path);
    if (text.starts_with(kTorchMagic)) return open_torch_file(path);
    if (text.starts_with(kLlama2cMagic) || looks_like_llama2c_legacy(bytes))
      return open_llama2c(path, tokenizer_path);
    if (looks_like_safetensors(bytes)) return open_safetensors_file(path);
    // The last test: the first two bytes of a pickle are also those of 640, which may be the width
    // of a llama2.c model or the length of a safetensors header.
    refuse_old_torch(path, text);
    refuse_content(path, text);
  }();
  for (const auto& file : checkpoint.files) check_not_shrunk(*file);
  return checkpoint;
}

}  // namespace limpid
