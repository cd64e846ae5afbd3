// Reads a family's configuration keys, and keeps count of them: a key that nobody asked for is
// refused.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Bounds on what a file may state.
inline constexpr int64_t kLargestSize = int64_t{1} << 24;
inline constexpr int64_t kMostLayers = 4096;

class SpecReader {
 public:
  // Keys are `prefix` + "." + name.
  SpecReader(const Checkpoint& checkpoint, std::string prefix);

  // A size in [1, largest]; FormatError naming the key when absent or out of range.
  int64_t required_size(std::string_view name, int64_t largest);
  int64_t size_or(std::string_view name, int64_t fallback, int64_t largest);
  // The same from 0 on.
  int64_t count_or(std::string_view name, int64_t fallback, int64_t largest);
  // A finite number > 0; `fallback` when absent.
  double positive_or(std::string_view name, double fallback);
  std::string string_or(std::string_view name, std::string_view fallback);
  bool flag_or(std::string_view name, bool fallback);
  // nullptr when absent.
  const std::vector<std::string>* strings(std::string_view name);
  bool contains(std::string_view name) const;
  // Rows of token_embd.weight, which `vocab_size` must agree with.
  int64_t vocab_size();

  // Keys whose value cannot change the result.
  void ignore(std::string_view name);
  void ignore_all_below(std::string_view name);
  // Keys that would change the result unless they have this neutral value (0 / false / the number
  // given).
  void require_neutral(std::string_view name, double neutral);

  // Throws UnsupportedError naming the first key with our prefix that was never asked for.
  void refuse_the_rest() const;
  // Ends the reading: keys of models that are more than a decoder of one family must have their
  // neutral value, and the rest is refused.
  void require_plain_transformer(int64_t n_ctx_train);

  [[noreturn]] void fail(std::string_view name, const std::string& problem) const;  // FormatError
  [[noreturn]] void refuse(std::string_view name,
                           const std::string& problem) const;  // Unsupported…

 private:
  std::string key(std::string_view name);

  const Checkpoint& checkpoint_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace limpid
