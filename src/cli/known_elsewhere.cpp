#include "cli/known_elsewhere.h"

#include <algorithm>
#include <array>
#include <span>

namespace limpid::cli {
namespace {

// Options of llama.cpp's programs, by what becomes of them here.
constexpr std::string_view kOfGpus[] = {"-ngl",           "--gpu-layers", "--n-gpu-layers", "-dev",
                                        "--device",       "-sm",          "--split-mode",   "-ts",
                                        "--tensor-split", "-mg",          "--main-gpu",     "-nkvo",
                                        "--no-kv-offload"};
constexpr std::string_view kAlwaysSo[] = {
    "-fa",     "--flash-attn",       "--no-mmap", "--mlock",       "--jinja",     "--no-warmup",
    "-cnv",    "--conversation",     "-i",        "--interactive", "--simple-io", "-co",
    "--color", "--no-display-prompt"};

struct Reason {
  std::span<const std::string_view> options;
  std::string_view why;
};
constexpr std::array kReasons = {
    Reason{kOfGpus, "this version runs on the CPU alone; leave it out"},
    Reason{kAlwaysSo, "there is nothing to switch here; leave it out"},
};

}  // namespace

std::string_view why_not_here(std::string_view option) {
  for (const Reason& reason : kReasons) {
    if (std::ranges::find(reason.options, option) != reason.options.end()) return reason.why;
  }
  return "";
}

}  // namespace limpid::cli
