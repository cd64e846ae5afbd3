// Reads what torch.save has written since PyTorch 1.6 (.pth, .pt): a zip archive. One record is a
// pickle that describes the objects. Each storage (a flat array of one dtype) is a record of its
// own, stored without compression, so that it can be mapped. A tensor is a view of a storage:
// offset, sizes, strides. docs/formats/torch.md has the layout, how the state dictionary is found,
// and all that is refused.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

inline constexpr std::string_view kTorchMagic = "PK\x03\x04";

// Throws UnsupportedError, which says how to convert the file, if its `text` begins like the format
// of PyTorch before 1.6, which is a bare pickle or a tar archive.
void refuse_old_torch(const std::string& path, std::string_view text);

// Reads the state dictionary as a checkpoint with Naming::kStateDict. Tensors are views into
// `bytes`. A tensor with strides, or at an address that its type does not allow, becomes a derived
// tensor (Checkpoint::derived).
//
// Numbers and text beside the state dictionary become metadata: `state.` and their path
// ("state.model_args.dim"). A dictionary from the integers 0, 1, 2, … to text becomes an array.
// Tensors outside the state dictionary (an optimizer's) are counted in Checkpoint::unused_tensors.
// Throws FormatError, UnsupportedError.
Checkpoint parse_torch(const std::string& path, std::span<const std::byte> bytes);

// Maps the file and calls parse_torch. Throws ResourceError too.
Checkpoint open_torch(const std::string& path);

// Compares every record with its CRC-32. This reads the whole file. Throws FormatError.
void verify_torch_records(const std::string& path);

}  // namespace limpid
