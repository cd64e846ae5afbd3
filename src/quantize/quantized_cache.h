// Quantises a model while it is opened, and keeps the result in a cache of files. Later openings
// map the cached file.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint.h"
#include "quantize/write_model.h"

namespace limpid {

// Returns a text that identifies what a cached result is computed from: the version of the
// quantiser, the type, the calibration text (unless `options` turn calibration off), the identity
// of every file, and a hash of everything else in the checkpoint (keys, attachments, the list of
// tensors and their positions). A configuration, a tokenizer or a scaling given at opening changes
// it.
//
// The identity of a file consists of its device, inode, size, the times of the last change of its
// content and of its inode in nanoseconds, and a hash of its first and last 64 KiB and of 64 pages
// between them. Writing to a file, replacing it or restoring an old version changes the inode's
// time, which no program can set. The hash is for file systems that do not keep such times.
std::string source_identity(const Checkpoint& checkpoint, const FileType& file_type,
                            const WriteOptions& options);

// The size that a folder of results may have before the least recently used results are removed.
inline constexpr uint64_t kQuantizedCacheBytes = uint64_t{32} << 30;

// Removes results (`*.gguf` in `folder`), the least recently used first, until at most `most_bytes`
// remain. `keep` is the path of a result that is never removed. A process that has mapped a removed
// result can still use it. Also removes unfinished results (`*.part`) that nothing has written to
// for a day: a killed process leaves one. A file that cannot be removed stays; that is not an
// error.
void bound_quantized_cache(const std::string& folder, const std::string& keep, uint64_t most_bytes);

// Returns the canonical `source` with its tensors quantised as by `limpid quantize`. Uses the
// result in `folder` that has exactly this identity; otherwise creates it there and removes old
// ones (bound_quantized_cache). Metadata, tokenizer and row order are those of the source. Throws
// UnsupportedError, FormatError, ResourceError.
Checkpoint quantized_through_cache(const Checkpoint& source, const FileType& file_type,
                                   const std::string& folder, const WriteOptions& options);

// Returns names, types and shapes of that result, without data. Nothing is read or written.
Checkpoint quantized_shapes(const Checkpoint& source, const FileType& file_type);

}  // namespace limpid
