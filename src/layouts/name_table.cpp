#include "layouts/name_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "limpid/error.hpp"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr std::string_view kBlock = "{}";

// Returns whether the shape is that of the buffer.
bool is_buffer(const BufferRule& rule, const Shape& shape) {
  if (!rule.is_mask) return shape.rank() <= 1 && shape.n_elements() == 1;
  return shape.rank() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == shape[3];
}

// Returns whether the table lists the tensor as unused, by name or as a buffer.
bool is_left(const NameTable& table, std::string_view name, const Shape& shape) {
  const bool by_name = std::ranges::any_of(table.unused, [&](std::string_view pattern) {
    return match_name(pattern, name).has_value();
  });
  return by_name || std::ranges::any_of(table.buffers, [&](const BufferRule& rule) {
           return match_name(rule.name, name).has_value() && is_buffer(rule, shape);
         });
}

struct Match {
  const NameRule* rule =
      nullptr;  // null: no rule matches; the tensor may still be a known unused one
  std::string ours;
  bool unused = false;
};

// Tries all rules, then the unused names, then the same without each optional prefix. The recursion
// removes several prefixes: "_orig_mod.module.transformer.h.0…".
Match find_match(const NameTable& table, std::string_view name, const Shape& shape) {
  for (const NameRule& rule : table.rules) {
    if (const auto block = match_name(rule.theirs, name))
      return {&rule, name_of_block(rule.ours, *block), false};
  }
  if (is_left(table, name, shape)) return {nullptr, {}, true};
  for (const std::string_view prefix : table.optional_prefixes) {
    if (!name.starts_with(prefix)) continue;
    Match match = find_match(table, name.substr(prefix.size()), shape);
    if (match.rule != nullptr || match.unused) return match;
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
  result.tensors[ours] = {dtype, shape, nullptr};
  const auto made = source->derived.find(name);
  std::string how =
      made == source->derived.end() ? "transposed" : made->second.how + ", transposed";
  result.derived[ours] = {std::move(how), [source, name, dtype, shape] {
                            Tensor storage;
                            const TensorView raw = source->read(name, storage);
                            Tensor decoded;
                            if (raw.dtype != dtype) decoded = plain(raw);
                            const TensorView stored = raw.dtype == dtype ? raw : decoded.view();
                            Tensor result(dtype, shape);
                            transpose(stored.data, stored.shape[0], stored.shape[1],
                                      dtype_info(dtype).block_bytes, result.data());
                            leave_file(*source, {raw.data, raw.n_bytes()});
                            return result;
                          }};
}

// Reinterprets [1, rows, cols] as [rows, cols]. The bytes are the same.
void take_first(const Checkpoint& source, const std::string& name, TensorView& tensor) {
  if (tensor.shape.rank() != 3 || tensor.shape[0] != 1 || source.derived.contains(name)) {
    throw FormatError(source.path, FormatError::kNoOffset, name,
                      fmt::format("is {}, expected one matrix", tensor.to_string()));
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
  int64_t block = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), block);
  if (error != std::errc() || end != digits.end() || block < 0) return std::nullopt;
  return block;
}

std::string name_of_block(std::string_view pattern, int64_t block) {
  std::string name(pattern);
  const size_t hole = name.find(kBlock);
  if (hole != std::string::npos) name.replace(hole, kBlock.size(), std::to_string(block));
  return name;
}

namespace {

// Returns the first rule for our name, which is the one used for writing.
const NameRule* rule_of(const NameTable& table, std::string_view ours) {
  for (const NameRule& rule : table.rules) {
    if (match_name(rule.ours, ours)) return &rule;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> their_name(const NameTable& table, std::string_view ours) {
  const NameRule* rule = rule_of(table, ours);
  if (rule == nullptr) return std::nullopt;
  return name_of_block(rule->theirs, *match_name(rule->ours, ours));
}

std::optional<std::string> our_name(const NameTable& table, std::string_view theirs) {
  Match match = find_match(table, theirs, {});
  return match.rule == nullptr ? std::nullopt : std::optional(std::move(match.ours));
}

// `source` shares the original checkpoint with the derived tensors, which read from it later.
Checkpoint translate_names(Checkpoint given, const NameTable& table) {
  const auto source = std::make_shared<const Checkpoint>(std::move(given));
  Checkpoint result = *source;
  result.tensors.clear();
  result.tensor_order.clear();
  result.derived.clear();
  for (const std::string& name : source->tensor_order) {
    const Match match = find_match(table, name, source->find(name)->shape);
    if (match.unused) {
      result.unused_tensors.push_back(name);
      continue;
    }
    if (match.rule == nullptr) {
      throw UnsupportedError(fmt::format("{}: unknown tensor {} {}, which may change the result",
                                         source->path, name, source->find(name)->to_string()));
    }
    if (result.tensors.contains(match.ours)) {
      throw FormatError(source->path, FormatError::kNoOffset, name,
                        fmt::format("is a second {}", match.ours));
    }
    result.tensor_order.push_back(match.ours);
    if (match.rule->transform == TensorTransform::kTransposed) {
      const TensorView& tensor = *source->find(name);
      if (tensor.shape.rank() != 2 || is_quantized(tensor.dtype)) {
        throw FormatError(source->path, FormatError::kNoOffset, name,
                          fmt::format("is {}, expected a matrix of floats", tensor.to_string()));
      }
      promise_transpose(source, name, match.ours, result);
      continue;
    }
    result.tensors[match.ours] = *source->find(name);
    if (match.rule->transform == TensorTransform::kFirstOfOne)
      take_first(*source, name, result.tensors[match.ours]);
    const auto made = source->derived.find(name);
    if (made != source->derived.end()) result.derived[match.ours] = made->second;
  }
  return result;
}

Checkpoint transposed_for(Checkpoint canonical, const NameTable& table) {
  const auto source = std::make_shared<const Checkpoint>(std::move(canonical));
  Checkpoint result = *source;
  for (const std::string& name : source->tensor_order) {
    const NameRule* rule = rule_of(table, name);
    if (rule == nullptr || rule->transform != TensorTransform::kTransposed) continue;
    promise_transpose(source, name, name, result);
  }
  return result;
}

}  // namespace limpid
