// safetensors files as bytes, well-formed or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace limpid::safetensors_test {

// The file of a header as given and that many bytes of data: 0, 1, 2, …
inline std::string file_of(std::string_view header, size_t n_data, uint64_t length = ~uint64_t{0}) {
  if (length == ~uint64_t{0}) length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += header;
  for (size_t i = 0; i < n_data; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// Two tensors, F32 [2, 2] and F16 [3], listed in another order than they lie in.
inline constexpr std::string_view kSmallHeader =
    R"({"__metadata__":{"format":"pt"},)"
    R"("b":{"dtype":"F16","shape":[3],"data_offsets":[16,22]},)"
    R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}   )";
inline constexpr size_t kSmallData = 22;

// The dtypes that Limpid has a name for, with the bytes of an element; the largest first, as files
// have them.
struct DTypeSize {
  std::string_view name;
  size_t n_bytes;
};
inline constexpr DTypeSize kDTypes[] = {{"F64", 8}, {"I64", 8},  {"F32", 4}, {"I32", 4},
                                        {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"I8", 1},
                                        {"U8", 1},  {"BOOL", 1}};

inline std::string small_file() { return file_of(kSmallHeader, kSmallData); }

}  // namespace limpid::safetensors_test
