// How fast a tokenizer turns a text into ids, one thread, file in memory, no allocation once warm.
//
//   tokenizer_bench MODEL TEXT      MODEL is a checkpoint or its tokenizer's file
//
// Reads lines: for each, the text is encoded once and a line "SECONDS IDS" answers, thread
// processor time and the number of ids. A line that is not empty names a file to which the ids go
// as 32-bit integers. bench/compare_tokenizers.py drives it in turn with other tokenizers.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/tokenizer_from_metadata.h"
#include "thread_seconds.h"
#include "tokenizer/tokenizer_files.h"

namespace {

std::string read_all(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<const limpid::Tokenizer> open_tokenizer(const std::string& path) {
  const limpid::TokenizerFiles files = limpid::find_tokenizer_files(path);
  if (limpid::has_tokenizer(files)) return limpid::tokenizer_from(files);
  return limpid::tokenizer_from(limpid::open_checkpoint(path));
}

void serve(const limpid::Tokenizer& tokenizer, const std::string& text) {
  limpid::EncodeOptions options;
  options.add_special = false;
  std::vector<limpid::TokenId> ids;
  ids.reserve(text.size());
  for (std::string line; std::getline(std::cin, line);) {
    ids.clear();
    const double start = limpid::thread_seconds();
    tokenizer.encode(text, options, ids);
    const double seconds = limpid::thread_seconds() - start;
    if (!line.empty()) {
      std::ofstream file(line, std::ios::binary);
      file.write(reinterpret_cast<const char*>(ids.data()),
                 static_cast<std::streamsize>(ids.size() * sizeof(limpid::TokenId)));
    }
    fmt::print("{:.6f} {}\n", seconds, ids.size());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenizer_bench MODEL TEXT\n");
    return 2;
  }
  try {
    serve(*open_tokenizer(argv[1]), read_all(argv[2]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
