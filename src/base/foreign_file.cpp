#include "base/foreign_file.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "base/text.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr std::string_view kOlderThanGguf =
    "a format before GGUF, which is not read: download the model as GGUF, or convert it with "
    "llama.cpp";

// The first bytes of a format, its name, and the advice for its user.
struct Magic {
  std::string_view bytes;
  std::string_view what;  // what such a file is
  std::string_view then;  // what the user can do
};
// The GGML family comes first: their magic numbers are read as u32, so the letters are reversed.
constexpr Magic kMagics[] = {
    {"lmgg", "a GGML file", kOlderThanGguf},
    {"fmgg", "a GGMF file", kOlderThanGguf},
    {"tjgg", "a GGJT file", kOlderThanGguf},
    {"algg", "a GGLA (LoRA) file", "an adapter in a format before GGUF; name the model itself"},
    {"version https://git-lfs", "a Git LFS pointer instead of the file",
     "run `git lfs pull` in its folder"},
    {"\x89HDF", "an HDF5 file (Keras, TensorFlow)", "download the model as safetensors or GGUF"},
    {"\x1f\x8b", "a gzip archive", "unpack it first (gunzip, or tar xzf)"},
    {"\xfd\x37zXZ", "an xz archive", "unpack it first (unxz, or tar xJf)"},
    {"BZh", "a bzip2 archive", "unpack it first (bunzip2, or tar xjf)"},
    {"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first (unzstd)"},
    {"7z\xbc\xaf", "a 7z archive", "unpack it first (7z x)"},
    {"Rar!", "a rar archive", "unpack it first (unrar x)"},
};

constexpr size_t kLookedAt = 512;  // bytes that decide whether a file is text

// ASCII text: what a server answers, a README, a configuration.
bool is_text(std::string_view bytes) {
  constexpr size_t kFewest = 8;  // fewer bytes prove nothing
  return bytes.size() >= kFewest && std::ranges::all_of(bytes.substr(0, kLookedAt), [](char c) {
           return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
         });
}

// The first line, short enough for a message.
std::string beginning_of(std::string_view text) {
  constexpr size_t kShown = 40;
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  return line.size() > kShown ? fmt::format("{}…", line.substr(0, kShown)) : std::string(line);
}

}  // namespace

// Magic numbers first, then a web page: a doctype or a tag in any case, after blanks.
std::string describe_foreign(std::string_view bytes) {
  for (const Magic& magic : kMagics) {
    if (bytes.starts_with(magic.bytes)) return fmt::format("{}: {}", magic.what, magic.then);
  }
  const std::string_view text = trimmed_left(bytes.substr(0, kLookedAt));
  for (const std::string_view tag : {"<!doctype html", "<html", "<?xml", "<head"}) {
    if (text.size() >= tag.size() && ::strncasecmp(text.data(), tag.data(), tag.size()) == 0)
      return "a web page: the download went wrong; look at it in a browser, and download again";
  }
  return "";
}

void refuse_foreign(const std::string& path, std::string_view bytes) {
  std::string description = describe_foreign(bytes);
  const std::string_view text = trimmed_left(bytes.substr(0, kLookedAt));
  if (description.empty() && is_text(text)) {
    description = fmt::format(
        "text that begins with '{}': name the weights; if you downloaded it, this is the server's "
        "answer",
        beginning_of(text));
  }
  if (!description.empty())
    throw UnsupportedError(fmt::format("{} is not a model but {}", path, description));
}

}  // namespace limpid
