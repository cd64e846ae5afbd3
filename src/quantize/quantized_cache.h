// Quantised while it is opened: the result is kept in a cache, so that the second time it is
// mapped.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint.h"
#include "quantize/write_model.h"

namespace limpid {

// Where results are kept: ${XDG_CACHE_HOME:-~/.cache}/limpid/quantized. Throws ResourceError when
// neither variable is set.
std::string quantized_cache_folder();

// What a cached result is made from: the quantiser's version, the type, the text that calibrates
// (nothing if `options` do not want that), of every file of the checkpoint its identity, and a hash
// of all that the checkpoint is besides: every key, every attachment, the list of tensors and where
// they lie. A configuration, a tokenizer or a scaling given at opening changes these.
//
// The identity of a file is its device, inode, size, times of change of content and of inode to the
// nanosecond, and a hash of its first and last 64 KiB and of 64 pages between. Whoever writes to a
// file, puts another in its place or restores an old one changes the time of its inode, which no
// program can set; the hash is for file systems that keep no such times.
std::string source_identity(const Checkpoint& checkpoint, const FileType& file_type,
                            const WriteOptions& options);

// How much a folder of results may hold before the ones not used for longest go.
inline constexpr uint64_t kQuantizedCacheBytes = uint64_t{32} << 30;

// Removes results (`*.gguf` in `folder`), the one not used for longest first, until at most
// `most_bytes` are left. `keep`, the path of one of them, stays whatever its size. Who has a result
// mapped keeps it. What cannot be removed stays, without an error.
void bound_quantized_cache(const std::string& folder, const std::string& keep, uint64_t most_bytes);

// `source` (canonical) with its tensors quantised as `limpid quantize` does. From `folder` if a
// result with exactly this identity is there; else it is made and put there, and older ones go
// (bound_quantized_cache). Metadata, tokenizer and order of rows are the source's. Throws
// UnsupportedError, FormatError, ResourceError.
Checkpoint quantized_through_cache(const Checkpoint& source, const FileType& file_type,
                                   const std::string& folder, const WriteOptions& options);

}  // namespace limpid
