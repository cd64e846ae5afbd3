// Reads configuration keys and records which ones were read, so that a key that no reader knows can
// be refused by name. A key may change the result; ignoring an unknown one could give wrong output
// without an error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "checkpoint/checkpoint.h"

namespace limpid {

// Upper bounds for sizes in a file.
inline constexpr int64_t kLargestSize = int64_t{1} << 24;
inline constexpr int64_t kMostLayers = 4096;

// Reads keys with one prefix. For an absent key, the functions with "or" return a fallback and
// those with an optional result return nothing. All functions throw UnsupportedError for a value of
// another type and FormatError for one out of range; both name the file.
class SpecReader {
 public:
  // Reads keys named `prefix` + "." + name.
  SpecReader(const Checkpoint& checkpoint, std::string prefix);

  std::optional<int64_t> integer(std::string_view name);
  // Returns a size in [1, largest]. Throws FormatError naming the key when it is absent or out of
  // range.
  int64_t required_size(std::string_view name, int64_t largest);
  std::optional<int64_t> size(std::string_view name, int64_t largest);
  int64_t size_or(std::string_view name, int64_t fallback, int64_t largest);
  // Like size_or, but 0 is allowed.
  int64_t count_or(std::string_view name, int64_t fallback, int64_t largest);
  // Returns a finite number > 0; throws FormatError when the key is absent.
  double required_positive(std::string_view name);
  // Returns a finite number > 0, or `fallback` when the key is absent.
  double positive_or(std::string_view name, double fallback);
  std::string string_or(std::string_view name, std::string_view fallback);
  bool flag_or(std::string_view name, bool fallback);
  // Returns nullptr when the key is absent.
  const std::vector<std::string>* strings(std::string_view name);
  bool contains(std::string_view name) const;
  // Returns the number of rows of token_embd.weight. The key `vocab_size`, if present, must agree.
  int64_t vocab_size();

  // Marks keys as read whose value cannot change the result.
  void ignore(std::string_view name);
  void ignore_all_below(std::string_view name);
  // Throws UnsupportedError unless the key is absent or has the neutral value (0, false or the
  // number given). Use it for keys that would change the result otherwise.
  void require_neutral(std::string_view name, double neutral);

  // Throws UnsupportedError naming the first key with this prefix that was never read.
  void refuse_the_rest() const;
  // Ends the reading. Keys of features beyond a plain decoder (experts, soft-capping, windows) must
  // have their neutral value; all keys that were not read are refused.
  void require_plain_transformer(int64_t n_ctx_train);

  // Throw FormatError and UnsupportedError, which name the key.
  template <typename... Args>
  [[noreturn]] void fail(std::string_view name, fmt::format_string<Args...> problem,
                         Args&&... args) const {
    throw_format_error(file_, shown(name), problem, std::forward<Args>(args)...);
  }
  template <typename... Args>
  [[noreturn]] void refuse(std::string_view name, fmt::format_string<Args...> problem,
                           Args&&... args) const {
    throw UnsupportedError(fmt::format("{}: {} {}", file_, shown(name),
                                       fmt::format(problem, std::forward<Args>(args)...)));
  }

 private:
  std::string key(std::string_view name);
  std::string shown(std::string_view name) const;  // the key as messages name it
  template <typename Value>
  Value typed(std::string_view name, Value (Metadata::*get)(std::string_view) const);

  const Checkpoint& checkpoint_;
  std::string prefix_;
  std::string file_;    // that has the keys, for messages
  std::string hidden_;  // the part of the prefix that `file_` stands for: "config."
  std::set<std::string, std::less<>> asked_;
};

}  // namespace limpid
