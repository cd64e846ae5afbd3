#include "layouts/name_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/parse_number.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr std::string_view kBlock = "{}";

// Returns whether the rule is about the tensor.
bool is_unused(const UnusedRule& rule, std::string_view name, const Shape& shape) {
  if (!match_name(rule.name, name)) return false;
  if (rule.kind == UnusedRule::Kind::kNumber) return shape.rank() <= 1 && shape.n_elements() == 1;
  return rule.kind == UnusedRule::Kind::kAny ||
         (shape.rank() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == shape[3]);
}

// What the holes of a pattern stand for in a name.
struct Holes {
  int64_t block;
  std::string_view part;  // of `*`: "weight" or "bias"
};

std::optional<Holes> match_pattern(std::string_view pattern, std::string_view name) {
  std::string_view part;
  if (pattern.ends_with('*')) {
    pattern.remove_suffix(1);
    part = name.ends_with("bias") ? "bias" : "weight";
    if (!name.ends_with(part)) return std::nullopt;
    name.remove_suffix(part.size());
  }
  const std::optional<int64_t> block = match_name(pattern, name);
  return block ? std::optional(Holes{*block, part}) : std::nullopt;
}

std::string fill(std::string_view pattern, const Holes& holes) {
  std::string name(pattern);
  if (name.ends_with('*')) name.replace(name.size() - 1, 1, holes.part);
  const size_t hole = name.find(kBlock);
  if (hole != std::string::npos) name.replace(hole, kBlock.size(), std::to_string(holes.block));
  return name;
}

TensorTransform transform_of(const NameRule& rule, const Holes& holes) {
  return holes.part == "bias" ? TensorTransform::kAsStored : rule.transform;
}

struct Match {
  bool known = false;
  std::string ours;  // empty: a tensor that the model does not use
  TensorTransform transform = TensorTransform::kAsStored;
};

// Tries all rules, then the unused names, then the same without each optional prefix. The recursion
// removes up to `most_prefixes` of them: "_orig_mod.module.transformer.h.0…". Without the limit, a
// name in a file could repeat a prefix until the stack overflows.
Match find_match(const NameTable& table, std::string_view name, const Shape& shape,
                 int most_prefixes = 8) {
  for (const NameRule& rule : table.rules) {
    if (const auto holes = match_pattern(rule.theirs, name))
      return {true, fill(rule.ours, *holes), transform_of(rule, *holes)};
  }
  for (const UnusedRule& rule : table.unused) {
    if (is_unused(rule, name, shape)) return {true, {}};
  }
  if (most_prefixes == 0) return {};
  for (const auto& [prefix, stands_for] : table.optional_prefixes) {
    if (!name.starts_with(prefix)) continue;
    Match match = find_match(table, fmt::format("{}{}", stands_for, name.substr(prefix.size())),
                             shape, most_prefixes - 1);
    if (match.known) return match;
  }
  return {};
}

// Transposes [rows, cols] elements of `element_bytes` bytes into [cols, rows]. The loops visit
// tiles of 32 x 32 elements: a plain double loop would touch a new cache line of the source with
// every element, whereas a tile's source and destination lines both stay in the L1 cache until they
// are used up.
void transpose(const std::byte* from, int64_t rows, int64_t cols, int64_t element_bytes,
               std::byte* to) {
  constexpr int64_t kTile = 32;
  for (int64_t row0 = 0; row0 < rows; row0 += kTile) {
    for (int64_t col0 = 0; col0 < cols; col0 += kTile) {
      for (int64_t col = col0; col < std::min(cols, col0 + kTile); ++col) {
        for (int64_t row = row0; row < std::min(rows, row0 + kTile); ++row) {
          std::memcpy(to + (col * rows + row) * element_bytes,
                      from + (row * cols + col) * element_bytes,
                      static_cast<size_t>(element_bytes));
        }
      }
    }
  }
}

// Decodes a matrix to f16. Quantised blocks run along rows, so a quantised matrix cannot be
// transposed element by element.
Tensor plain(const TensorView& stored) {
  Tensor result(DType::kF16, stored.shape);
  std::vector<float> row(static_cast<size_t>(stored.shape.cols()));
  const uint64_t row_bytes = result.view().row_bytes();
  for (int64_t i = 0; i < stored.shape.rows(); ++i) {
    decode_row(stored.dtype, stored.row(i), row);
    encode_row(DType::kF16, row, result.data() + static_cast<uint64_t>(i) * row_bytes);
  }
  return result;
}

// Records the transpose of `name`, a matrix that `source` can read, as a derived tensor. The lambda
// keeps `source` alive and computes the transpose when the tensor is read. Afterwards it tells the
// kernel that the pages of the original are no longer needed.
void promise_transpose(const std::shared_ptr<const Checkpoint>& source, const std::string& name,
                       const std::string& ours, Checkpoint& result) {
  const TensorView tensor = *source->find(name);
  const DType dtype = is_quantized(tensor.dtype) ? DType::kF16 : tensor.dtype;
  const Shape shape{tensor.shape[1], tensor.shape[0]};
  const auto made = source->derived.find(name);
  std::string how =
      made == source->derived.end() ? "transposed" : made->second.how + ", transposed";
  const auto make = [source, name, dtype, shape] {
    Tensor storage;
    const TensorView raw = source->read(name, storage);
    Tensor decoded;
    if (raw.dtype != dtype) decoded = plain(raw);
    const TensorView stored = raw.dtype == dtype ? raw : decoded.view();
    Tensor result(dtype, shape);
    transpose(stored.data, stored.shape[0], stored.shape[1], dtype_info(dtype).block_bytes,
              result.data());
    leave_file(*source, {raw.data, raw.n_bytes()});
    return result;
  };
  result.add_derived(ours, dtype, shape, {std::move(how), make});
}

// Reinterprets [1, rows, cols] as [rows, cols]. The bytes are the same.
void take_first(const Checkpoint& source, const std::string& name, TensorView& tensor) {
  if (tensor.shape.rank() != 3 || tensor.shape[0] != 1 || source.derived.contains(name)) {
    throw_format_error(source.path, name, "is {}, expected one matrix", tensor.to_string());
  }
  tensor.shape = Shape{tensor.shape[1], tensor.shape[2]};
}

}  // namespace

std::optional<int64_t> match_name(std::string_view pattern, std::string_view name) {
  const size_t hole = pattern.find(kBlock);
  if (hole == std::string_view::npos)
    return pattern == name ? std::optional<int64_t>(0) : std::nullopt;
  const std::string_view before = pattern.substr(0, hole);
  const std::string_view after = pattern.substr(hole + kBlock.size());
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view digits =
      name.substr(before.size(), name.size() - before.size() - after.size());
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const auto block = parse_number<int64_t>(digits);
  return block && *block >= 0 ? block : std::nullopt;
}

// The first rule for our name is the one used for writing.
std::optional<std::string> their_name(const NameTable& table, std::string_view ours) {
  for (const NameRule& rule : table.rules) {
    if (const auto holes = match_pattern(rule.ours, ours)) return fill(rule.theirs, *holes);
  }
  return std::nullopt;
}

std::optional<std::string> our_name(const NameTable& table, std::string_view theirs) {
  Match match = find_match(table, theirs, {});
  return match.ours.empty() ? std::nullopt : std::optional(std::move(match.ours));
}

// `source` shares the original checkpoint with the derived tensors, which read from it later.
Checkpoint translate_names(Checkpoint given, const NameTable& table) {
  const auto source = std::make_shared<const Checkpoint>(std::move(given));
  Checkpoint result = *source;
  result.tensors.clear();
  result.tensor_order.clear();
  result.derived.clear();
  for (const std::string& name : source->tensor_order) {
    const TensorView& tensor = *source->find(name);
    const Match match = find_match(table, name, tensor.shape);
    LIMPID_CHECK(UnsupportedError, match.known,
                 "{}: unknown tensor {} {}, which may change the result", source->path, name,
                 tensor.to_string());
    if (match.ours.empty()) {
      result.unused_tensors.push_back(name);
      continue;
    }
    if (result.tensors.contains(match.ours)) {
      throw_format_error(source->path, name, "is a second {}", match.ours);
    }
    if (match.transform == TensorTransform::kTransposed) {
      if (tensor.shape.rank() != 2 || is_quantized(tensor.dtype)) {
        throw_format_error(source->path, name, "is {}, expected a matrix of floats",
                           tensor.to_string());
      }
      promise_transpose(source, name, match.ours, result);
      continue;
    }
    result.add_from(*source, name, match.ours);
    if (match.transform == TensorTransform::kFirstOfOne)
      take_first(*source, name, result.tensors[match.ours]);
  }
  return result;
}

Checkpoint transposed_for(Checkpoint canonical, const NameTable& table) {
  const auto source = std::make_shared<const Checkpoint>(std::move(canonical));
  Checkpoint result = *source;
  for (const std::string& name : source->tensor_order) {
    const bool is_transposed = std::ranges::any_of(table.rules, [&](const NameRule& rule) {
      const auto holes = match_pattern(rule.ours, name);
      return holes && transform_of(rule, *holes) == TensorTransform::kTransposed;
    });
    if (is_transposed) promise_transpose(source, name, name, result);
  }
  return result;
}

}  // namespace limpid
