#include "checkpoint/meta_folder.h"

#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/metadata.h"
#include "checkpoint/torch_checkpoint.h"

namespace limpid {
namespace {

// Meta's largest releases have 16 shards.
constexpr size_t kMostShards = 100;
constexpr const char* kParams = "params.json";

// How the parts of a matrix [rows, columns] make the whole. Meta trains with Megatron's layers
// (Shoeybi et al. 2019, arXiv:1909.08053) and saves one shard per GPU. A column-parallel layer
// splits its outputs, which are the rows of the matrix; a row-parallel layer splits its inputs,
// which are the columns. With two shards and d_model = 4,096:
//
//   attention.wq  [2048, 4096] + [2048, 4096]  rows     -> [4096, 4096]
//   attention.wo  [4096, 2048] + [4096, 2048]  columns  -> [4096, 4096]
enum class Join : uint8_t { kNone, kRows, kColumns };

// The join of the tensors whose names end so.
constexpr std::pair<std::string_view, Join> kJoins[] = {
    {".attention.wq.weight", Join::kRows},    {".attention.wk.weight", Join::kRows},
    {".attention.wv.weight", Join::kRows},    {".attention.wo.weight", Join::kColumns},
    {".feed_forward.w1.weight", Join::kRows}, {".feed_forward.w2.weight", Join::kColumns},
    {".feed_forward.w3.weight", Join::kRows},
};

std::string shard_name(size_t i) { return fmt::format("consolidated.{:02}.pth", i); }

// Makes one checkpoint of all shards. Rows are joined by concatenation, so such a tensor can also
// be used in parts (DerivedTensor::row_parts); columns must be copied row by row.
class ShardJoiner {
 public:
  explicit ShardJoiner(std::vector<std::shared_ptr<const Checkpoint>> shards)
      : shards_(std::move(shards)) {}

  void join_into(Checkpoint& whole) const {
    const Checkpoint& first = *shards_.front();
    for (const auto& shard : shards_) {
      whole.files.insert(whole.files.end(), shard->files.begin(), shard->files.end());
      check_names(*shard);
    }
    for (const std::string& name : first.tensor_order) {
      const Join join = join_of(name);
      if (join == Join::kNone) {
        check_replicated(name);
        whole.add_from(first, name, name);
      } else {
        promise(name, join, whole);
      }
    }
  }

 private:
  // All shards must hold the same names.
  void check_names(const Checkpoint& shard) const {
    const Checkpoint& first = *shards_.front();
    for (const std::string& name : shard.tensor_order) {
      if (first.find(name) == nullptr)
        throw_format_error(shard.path, name, "is not in {}", first.path);
    }
    for (const std::string& name : first.tensor_order) {
      if (shard.find(name) == nullptr)
        throw_format_error(shard.path, name, "is missing, and {} has it", first.path);
    }
  }

  Join join_of(std::string_view name) const {
    if (shards_.size() == 1) return Join::kNone;
    if (name == "output.weight") return Join::kRows;
    // Llama 1 and 2 cut the embedding into columns, Llama 3 into rows. The norm is never cut.
    if (name == "tok_embeddings.weight") {
      const TensorView& part = *shards_.front()->find(name);
      const TensorView* norm = shards_.front()->find("norm.weight");
      const bool whole_rows = norm != nullptr && part.shape.cols() == norm->shape.cols();
      return whole_rows ? Join::kRows : Join::kColumns;
    }
    for (const auto& [ending, join] : kJoins) {
      if (name.ends_with(ending)) return join;
    }
    return Join::kNone;
  }

  // A tensor that is not cut must have the same bytes in all shards.
  void check_replicated(const std::string& name) const {
    Tensor storage_of_first;
    const TensorView expected = shards_.front()->read(name, storage_of_first);
    for (size_t i = 1; i < shards_.size(); ++i) {
      Tensor storage;
      const TensorView found = shards_[i]->read(name, storage);
      const bool same = found.dtype == expected.dtype && found.shape == expected.shape &&
                        std::memcmp(found.data, expected.data, expected.n_bytes()) == 0;
      if (!same)
        throw_format_error(shards_[i]->path, name, "differs from the one in {}",
                           shards_.front()->path);
    }
  }

  // Describes the joined tensor. Its parts must have one type and the same size in the dimension
  // that was not cut.
  void promise(const std::string& name, Join join, Checkpoint& whole) const {
    const TensorView& first = *shards_.front()->find(name);
    const int kept = join == Join::kRows ? 1 : 0;
    int64_t joined = 0;
    for (const auto& shard : shards_) {
      const TensorView& part = *shard->find(name);
      if (part.dtype != first.dtype || part.shape.rank() != 2 || first.shape.rank() != 2 ||
          part.shape[kept] != first.shape[kept]) {
        throw_format_error(shard->path, name, "is {}, which cannot be joined with {} of {}",
                           part.to_string(), first.to_string(), shards_.front()->path);
      }
      const auto sum = checked_add(joined, part.shape[1 - kept]);
      if (!sum) throw_format_error(shard->path, name, "is too large");
      joined = *sum;
    }
    const Shape shape =
        join == Join::kRows ? Shape{joined, first.shape[1]} : Shape{first.shape[0], joined};
    whole.add_derived(name, first.dtype, shape,
                      {fmt::format("{} of {} files joined",
                                   join == Join::kRows ? "rows" : "columns", shards_.size()),
                       [shards = shards_, name, dtype = first.dtype, shape, join] {
                         return joined_tensor(shards, name, dtype, shape, join);
                       },
                       join == Join::kRows ? parts_in_files(name) : std::vector<TensorView>{}});
  }

  // The shards' views. None when one of them is itself a derived tensor, or has a type that weights
  // do not have.
  std::vector<TensorView> parts_in_files(const std::string& name) const {
    std::vector<TensorView> parts;
    for (const auto& shard : shards_) {
      const TensorView& part = *shard->find(name);
      if (!is_plain_float(part.dtype) || shard->derived.contains(name)) return {};
      parts.push_back(part);
    }
    return parts;
  }

  // Copies the parts into one tensor and returns the pages of each part to the system, so that the
  // copy does not double the memory in use.
  static Tensor joined_tensor(const std::vector<std::shared_ptr<const Checkpoint>>& shards,
                              const std::string& name, DType dtype, const Shape& shape, Join join) {
    Tensor whole(dtype, shape);
    const uint64_t row_bytes = whole.view().row_bytes();
    uint64_t offset = 0;
    for (const auto& shard : shards) {
      Tensor storage;
      const TensorView part = shard->read(name, storage);
      if (part.n_bytes() == 0) continue;
      for (int64_t row = 0; row < part.shape[0]; ++row) {
        std::memcpy(whole.data() + static_cast<uint64_t>(row) * row_bytes + offset, part.row(row),
                    part.row_bytes());
      }
      offset += join == Join::kRows ? part.n_bytes() : part.row_bytes();
      leave_file(*shard, {part.data, part.n_bytes()});
    }
    return whole;
  }

  std::vector<std::shared_ptr<const Checkpoint>> shards_;
};

}  // namespace

bool looks_like_meta(const std::string& folder) {
  return ModelFolder(folder).contains(shard_name(0));
}

Checkpoint open_meta_folder(const std::string& path) {
  const ModelFolder folder(path);
  Checkpoint whole;
  whole.path = path;
  whole.naming = Naming::kMeta;
  if (folder.contains(kParams)) {
    const auto params = folder.open(kParams);
    add_json(params->path(), text_of(*params), "params.", whole.metadata);
  }
  std::vector<std::shared_ptr<const Checkpoint>> shards;
  for (size_t i = 0; i < kMostShards; ++i) {
    const std::string name = shard_name(i);
    if (!folder.contains(name)) continue;
    LIMPID_CHECK(ResourceError, i == shards.size(),
                 "{}/{} is missing, but {} is there: download it too", path,
                 shard_name(shards.size()), name);
    shards.push_back(std::make_shared<const Checkpoint>(open_torch(folder.resolve(name))));
  }
  LIMPID_CHECK(ResourceError, !shards.empty(), "{} has no {}", path, shard_name(0));
  whole.format = shards.size() == 1 ? "torch, Meta's folder"
                                    : fmt::format("torch, Meta's folder, {} shards", shards.size());
  ShardJoiner(std::move(shards)).join_into(whole);
  // tokenizer.model is part of Meta's release; the other files are there after a conversion.
  attach_files(folder, whole);
  return whole;
}

}  // namespace limpid
