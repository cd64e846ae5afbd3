// What must hold for any bytes at all that a reader is given: it throws an Error of ours, or what
// it returns lies inside the bytes and can be read. Shared by the fuzz targets and by the tests
// that replay their corpus.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/torch_builder.h"
#include "checkpoint/torch_checkpoint.h"
#include "checkpoint/zip_archive.h"
#include "limpid/error.hpp"
#include "tensor/codec.h"

namespace limpid {

enum class Verdict { kAccepted, kRefused, kBroken };

inline bool lies_inside(const TensorView& view, std::span<const std::byte> bytes) {
  return view.data >= bytes.data() && view.n_bytes() <= bytes.size() &&
         view.data <= bytes.data() + (bytes.size() - view.n_bytes());
}

// Reads the first and the last row: a sanitizer sees what is out of bounds.
inline void touch(const TensorView& view) {
  if (is_quantized(view.dtype) || view.dtype <= DType::kI8) {
    std::vector<float> row(static_cast<size_t>(view.shape.cols()));
    decode_row(view.dtype, view.row(0), row);
    decode_row(view.dtype, view.row(view.shape.rows() - 1), row);
  } else {
    volatile auto last = view.data[view.n_bytes() - 1];
    static_cast<void>(last);
  }
}

// What `check` returns; kRefused if it throws an error that says what is wrong with the input.
Verdict verdict_on(const auto& check) {
  try {
    return check();
  } catch (const FormatError&) {
    return Verdict::kRefused;
  } catch (const UnsupportedError&) {
    return Verdict::kRefused;
  }
}

// An archive as `limpid pull` reads it: no record gives more bytes than the directory says.
inline Verdict check_zip(std::span<const std::byte> bytes) {
  return verdict_on([&] {
    const ZipArchive zip = ZipArchive::parse("input", bytes, ZipMethods::kStoredOrDeflated);
    for (const ZipRecord& record : zip.records()) {
      uint64_t n_taken = 0;
      zip.extract(record, [&](std::span<const std::byte> piece) { n_taken += piece.size(); });
      if (n_taken != record.size) return Verdict::kBroken;
    }
    return Verdict::kAccepted;
  });
}

inline Verdict check_gguf(std::span<const std::byte> bytes) {
  return verdict_on([&] {
    const GgufFile file = parse_gguf("input", bytes);
    for (const GgufTensor& tensor : file.tensors) {
      if (!lies_inside(tensor.view, bytes)) return Verdict::kBroken;
      touch(tensor.view);
    }
    return Verdict::kAccepted;
  });
}

// Tensors that are made are made, too; they are never larger than what they are made from.
inline Verdict check_torch(std::span<const std::byte> bytes) {
  return verdict_on([&] {
    const Checkpoint checkpoint = parse_torch("input", bytes);
    for (const auto& [name, tensor] : checkpoint.tensors) {
      if (tensor.n_bytes() > bytes.size()) return Verdict::kBroken;
      Tensor storage;
      const TensorView view = checkpoint.read(name, storage);
      const bool made = checkpoint.derived.contains(name);
      if (!made && !lies_inside(view, bytes)) return Verdict::kBroken;
      if (view.n_bytes() > 0) touch(view);
    }
    return Verdict::kAccepted;
  });
}

// The input of the fuzz target: its first byte says whether the rest is an archive, or a pickle
// that is put into one, with the right checksum, so that mutations reach the machine behind it.
inline std::string torch_archive_of(std::string_view input) {
  if (input.empty()) return {};
  const std::string rest(input.substr(1));
  return input[0] % 2 == 0 ? rest : serialize(torch_test::archive_of(rest));
}

inline Verdict check_safetensors(std::span<const std::byte> bytes) {
  return verdict_on([&] {
    for (const SafetensorsTensor& tensor : parse_safetensors("input", bytes).tensors) {
      const uint64_t n_bytes = tensor.view.n_bytes();
      if (!lies_inside(tensor.view, bytes)) return Verdict::kBroken;
      if (n_bytes == 0) continue;
      volatile auto first = tensor.view.data[0];  // elements may lie at any address
      volatile auto last = tensor.view.data[n_bytes - 1];
      static_cast<void>(first);
      static_cast<void>(last);
    }
    return Verdict::kAccepted;
  });
}

inline Verdict check_llama2c(std::span<const std::byte> bytes) {
  return verdict_on([&] {
    const Checkpoint checkpoint = parse_llama2c("input", bytes);
    for (const auto& [name, view] : checkpoint.tensors) {
      if (!lies_inside(view, bytes)) return Verdict::kBroken;
      touch(view);
    }
    return Verdict::kAccepted;
  });
}

inline Verdict check_llama2c_tokenizer(std::span<const std::byte> bytes, int64_t vocab_size) {
  try {
    Metadata metadata;
    parse_llama2c_tokenizer("input", bytes, vocab_size, metadata);
    const bool complete =
        metadata.strings("tokenizer.ggml.tokens")->size() == static_cast<size_t>(vocab_size);
    return complete ? Verdict::kAccepted : Verdict::kBroken;
  } catch (const FormatError&) {
    return Verdict::kRefused;
  }
}

}  // namespace limpid
