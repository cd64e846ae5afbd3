// What torch.save wrote since PyTorch 1.6 (.pth, .pt): a zip archive of one pickle, which says what
// there is, and of one record per storage, which is mapped. docs/formats/torch.md has the layout,
// how the state dictionary is found, and all that is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

inline constexpr std::string_view kTorchMagic = "PK\x03\x04";

// Whether a file begins like the format of PyTorch before 1.6, a bare pickle or a tar archive.
bool looks_like_old_torch(std::span<const std::byte> bytes);
// Throws UnsupportedError that says what to do with such a file.
[[noreturn]] void refuse_old_torch(const std::string& path);

// The state dictionary as a checkpoint with Naming::kStateDict. Tensors are views into `bytes`;
// those with strides, and those at an address that their type does not allow, are promised
// (Checkpoint::derived). Numbers and text that lie beside the state dictionary become metadata
// under `state.` and their path ("state.model_args.dim"), a dictionary of the integers from 0 on to
// text an array. Other tensors (an optimizer's) are counted in Checkpoint::unused_tensors. Throws
// FormatError, UnsupportedError.
Checkpoint parse_torch(const std::string& path, std::span<const std::byte> bytes);

// parse_torch of a mapped file. Throws also ResourceError.
Checkpoint open_torch(const std::string& path);

// Holds every record against its CRC-32; reads the whole file. Throws FormatError.
void verify_torch_records(const std::string& path);

}  // namespace limpid
