#include "checkpoint/torch_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "base/foreign_file.h"
#include "base/printable.h"
#include "checkpoint/torch_tensors.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr uint64_t kMostNameBytes = uint64_t{1} << 26U;  // of the names of all metadata

// The keys under which training scripts keep the state dictionary, the most likely first.
constexpr std::array<std::string_view, 6> kWrappers = {
    "model", "model_state", "model_state_dict", "state_dict", "module", "weights"};

// Finds the record `<root>/data.pkl`. All records of the archive must be in the same root.
const ZipRecord& find_pickle(const std::string& path, const ZipArchive& zip) {
  constexpr std::string_view kName = "/data.pkl";
  const auto pickle = std::ranges::find_if(zip.records(), [&](const ZipRecord& record) {
    const size_t slash = record.name.find('/');
    return slash != std::string_view::npos && record.name.substr(slash) == kName;
  });
  LIMPID_CHECK(UnsupportedError, pickle != zip.records().end(),
               "{} is a zip archive, but not one of PyTorch (no data.pkl): unpack it, and name the "
               "model in it",
               path);
  const std::string_view root = pickle->name.substr(0, pickle->name.size() - kName.size() + 1);
  for (const ZipRecord& record : zip.records()) {
    if (!record.name.starts_with(root)) {
      throw FormatError(path, record.header_offset, printable(record.name),
                        fmt::format("is outside the folder {}", printable(root)));
    }
    const std::string_view name = record.name.substr(root.size());
    LIMPID_CHECK(UnsupportedError, name != "constants.pkl" && !name.starts_with("code/"),
                 "{} is a TorchScript program, not a checkpoint: save the module's state_dict()",
                 path);
  }
  return *pickle;
}

// Reads the archive's directory and its pickle. Only the pickle's checksum is checked here:
// checking the storages would need a pass over all weights (see verify_torch_records).
TorchArchive read_archive(const std::string& path, std::span<const std::byte> bytes) {
  if (!text_of(bytes).starts_with(kTorchMagic)) refuse_foreign(path, text_of(bytes));
  ZipArchive zip = ZipArchive::parse(path, bytes);
  const ZipRecord& pickle = find_pickle(path, zip);
  zip.check_content(pickle);
  const std::string root(pickle.name.substr(0, pickle.name.find('/') + 1));
  const ZipRecord* order = zip.find(root + "byteorder");
  LIMPID_CHECK(UnsupportedError, order == nullptr || text_of(order->bytes) == "little",
               "{}: at byte {}: byteorder is '{}', only little is read", path, order->data_offset,
               printable(text_of(order->bytes)));
  Pickle values = read_pickle(path, printable(pickle.name), pickle.data_offset, pickle.bytes);
  return {path, root, std::move(zip), std::move(values)};
}

// Finds the state dictionary in the pickle, and reads the values beside it. Three layouts are
// common:
//
//   {"layers.0.attention.wq.weight": tensor, …}                  Meta's consolidated files
//   {"model": {…tensors…}, "optimizer": {…}, "model_args": {…}}  nanoGPT's ckpt.pt
//   {"state_dict": {…tensors…}, "epoch": 3}                      training frameworks
class StateReader {
 public:
  explicit StateReader(const TorchArchive& archive) : archive_(archive), pickle_(archive.pickle) {}

  Checkpoint read() {
    checkpoint_.path = archive_.path;
    checkpoint_.format = "torch";
    checkpoint_.naming = Naming::kStateDict;
    if (pickle_.at(pickle_.root).kind != PickleKind::kDict)
      fail(pickle_.root, "the checkpoint", "is not a dictionary");
    const auto state = find_state(pickle_.root);
    if (!state) fail_without_state();
    state_ = *state;
    add_tensors();
    add_beside(pickle_.root, "state");
    for (const auto& [path, n] : n_left_) {
      checkpoint_.unused_tensors.push_back(n == 1 ? path
                                                  : fmt::format("{}.* ({} tensors)", path, n));
    }
    return std::move(checkpoint_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(uint32_t index, std::string_view field,
                         fmt::format_string<Args...> problem, Args&&... args) const {
    throw FormatError(archive_.path, pickle_.at(index).offset, printable(field),
                      fmt::format(problem, std::forward<Args>(args)...));
  }

  std::string name_of_key(uint32_t index) const {
    const PickleValue& key = pickle_.at(index);
    return key.kind == PickleKind::kString ? std::string(key.text) : std::to_string(key.integer);
  }

  // The limit on visits: a value may be part of many containers.
  void count_visits(uint32_t container, size_t n_items) {
    n_visited_ += n_items;
    if (n_visited_ > 8 * pickle_.values.size() + 1024)
      fail(container, "the checkpoint", "refers to the same values too often");
  }

  // Calls `visit` with the key (an integer as its digits) and the value of each item. A repeated
  // key is an error because readers differ in which of the two items they use. Values are shared,
  // so dictionaries in a small pickle can refer to each other along exponentially many paths;
  // `n_visited_` bounds the work.
  template <typename Visit>
  void for_items(uint32_t dict, const Visit& visit) {
    const std::vector<uint32_t>& items = pickle_.at(dict).items;
    count_visits(dict, items.size());
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < items.size(); i += 2) {
      const std::string name = name_of_key(items[i]);
      if (!is_clean_utf8(name)) fail(items[i], name, "is a name that is not UTF-8 text");
      if (!seen.insert(name).second) fail(items[i], name, "is a key that occurs twice");
      visit(name, items[i + 1]);
    }
  }

  // A tensor with at least one dimension. A scalar, such as an optimizer's step count, is not a
  // weight.
  bool is_weight(uint32_t index) const {
    const PickleValue& value = pickle_.at(index);
    return value.kind == PickleKind::kTensor && !pickle_.at(value.items[2]).items.empty();
  }

  // Finds the dictionary with the weights. A dictionary inside `dict` under one of the wrappers'
  // names is tried first, because other tensors (the states of random number generators) may be
  // beside it; then `dict` itself.
  std::optional<uint32_t> find_state(uint32_t dict) {
    std::map<std::string, uint32_t, std::less<>> inside;
    bool holds_weights = false;
    for_items(dict, [&](const std::string& name, uint32_t value) {
      holds_weights = holds_weights || is_weight(value);
      if (pickle_.at(value).kind == PickleKind::kDict) inside[name] = value;
    });
    for (const std::string_view wrapper : kWrappers) {
      const auto it = inside.find(wrapper);
      if (it == inside.end()) continue;
      if (const auto found = find_state(it->second)) return found;
    }
    return holds_weights ? std::optional(dict) : std::nullopt;
  }

  // The message lists the checkpoint's keys, so the user sees what was saved.
  [[noreturn]] void fail_without_state() {
    constexpr size_t kShown = 8;
    std::vector<std::string> names;
    for_items(pickle_.root,
              [&](const std::string& name, uint32_t) { names.push_back(printable(name)); });
    if (names.size() > kShown) names.resize(kShown);
    fail(pickle_.root, "the checkpoint",
         "holds no state dictionary; Limpid looks for tensors in it and below {}, and found {}",
         fmt::join(kWrappers, ", "),
         names.empty() ? "no keys" : fmt::format("{}", fmt::join(names, ", ")));
  }

  void add_tensors() {
    for_items(state_, [&](const std::string& name, uint32_t value) {
      if (pickle_.at(value).kind == PickleKind::kTensor)
        add_torch_tensor(archive_, value, name, checkpoint_);
    });
  }

  // Adds the scalars of `dict` and of the dictionaries in it as metadata, and counts tensors
  // outside the state dictionary.
  void add_beside(uint32_t dict, const std::string& path) {
    if (add_as_array(dict, path)) return;
    for_items(dict, [&](const std::string& name, uint32_t index) {
      const std::string at = dict == state_ ? "state." + name : path + "." + name;
      // Every value repeats the names of the dictionaries around it.
      n_name_bytes_ += at.size();
      if (n_name_bytes_ > kMostNameBytes)
        fail(index, "the checkpoint", "has names of more than {} bytes", kMostNameBytes);
      const PickleKind kind = pickle_.at(index).kind;
      if (kind == PickleKind::kDict) {
        add_beside(index, at);
      } else if (kind == PickleKind::kTensor) {
        if (dict != state_) count_left(at);
      } else if (kind == PickleKind::kList || kind == PickleKind::kTuple) {
        add_array(index, at, pickle_.at(index).items);
      } else {
        add_scalar(index, at);
      }
    });
  }

  // Counts unused tensors by the first part of their path: an optimizer has three for each of the
  // model's.
  void count_left(const std::string& path) {
    const size_t begin = std::string_view("state.").size();
    ++n_left_[path.substr(begin, path.find('.', begin) - begin)];
  }

  void set(uint32_t index, const std::string& key, MetadataValue value) {
    if (checkpoint_.metadata.contains(key)) fail(index, key, "occurs twice");
    checkpoint_.metadata.set(key, std::move(value));
  }

  std::string text(uint32_t index) const {
    const std::string_view text = pickle_.at(index).text;
    if (!is_clean_utf8(text)) fail(index, "a text", "is not UTF-8 text");
    return std::string(text);
  }

  void add_scalar(uint32_t index, const std::string& key) {
    const PickleValue& value = pickle_.at(index);
    switch (value.kind) {
      case PickleKind::kBool:
        return set(index, key, {value.integer != 0, "bool"});
      case PickleKind::kInteger:
        return set(index, key, {value.integer, "integer"});
      case PickleKind::kReal:
        return set(index, key, {value.real, "number"});
      case PickleKind::kString:
        return set(index, key, {text(index), "string"});
      default:
        return;  // None, names and storages are not metadata
    }
  }

  // Adds an array whose items are scalars of one kind. Other arrays (an optimizer's groups) are
  // skipped.
  void add_array(uint32_t index, const std::string& key, std::span<const uint32_t> items) {
    count_visits(index, items.size());
    const auto add_if_all = [&](PickleKind kind, const char* type_name, auto value_of) {
      if (items.empty() ||
          std::ranges::any_of(items, [&](uint32_t item) { return pickle_.at(item).kind != kind; }))
        return;
      std::vector<decltype(value_of(index))> values;
      for (const uint32_t item : items) values.push_back(value_of(item));
      set(index, key, {std::move(values), type_name});
    };
    add_if_all(PickleKind::kInteger, "array of integer",
               [&](uint32_t item) { return pickle_.at(item).integer; });
    add_if_all(PickleKind::kReal, "array of number",
               [&](uint32_t item) { return pickle_.at(item).real; });
    add_if_all(PickleKind::kString, "array of string", [&](uint32_t item) { return text(item); });
  }

  // Treats {0: "a", 1: "b", …} as a list. The keys may be integers or their digits as text.
  bool add_as_array(uint32_t dict, const std::string& key) {
    const std::vector<uint32_t>& items = pickle_.at(dict).items;
    std::vector<uint32_t> values;
    for (size_t i = 0; i < items.size(); i += 2) {
      const bool next = name_of_key(items[i]) == std::to_string(i / 2) &&
                        pickle_.at(items[i + 1]).kind == PickleKind::kString;
      if (!next) return false;
      values.push_back(items[i + 1]);
    }
    if (values.empty()) return false;
    add_array(dict, key, values);
    return true;
  }

  const TorchArchive& archive_;
  const Pickle& pickle_;
  Checkpoint checkpoint_;
  uint32_t state_ = 0;
  uint64_t n_visited_ = 0;
  uint64_t n_name_bytes_ = 0;
  std::map<std::string, size_t> n_left_;
};

}  // namespace

void refuse_old_torch(const std::string& path, std::string_view text) {
  // The old format begins with a pickle of this number; its tar predecessor with a file name.
  constexpr std::string_view kMagicNumber("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  const bool is_pickle = text.size() > 2 && text[0] == '\x80' &&
                         static_cast<uint8_t>(text[1]) <= 5 &&
                         (text.substr(2).starts_with(kMagicNumber) || text[1] == 2);
  const bool is_tar = text.size() > 262 && text.substr(257, 5) == "ustar";
  LIMPID_CHECK(UnsupportedError, !is_pickle && !is_tar,
               "{} has the pickle or tar format of PyTorch before 1.6, which is not read: load it "
               "with torch.load(FILE, weights_only=True) and save it again with torch.save",
               path);
}

Checkpoint parse_torch(const std::string& path, std::span<const std::byte> bytes) {
  const TorchArchive archive = read_archive(path, bytes);
  return StateReader(archive).read();
}

Checkpoint open_torch(const std::string& path) {
  auto mapped = MappedFile::open(path);
  Checkpoint checkpoint = parse_torch(path, mapped->bytes());
  checkpoint.files.push_back(std::move(mapped));
  return checkpoint;
}

void verify_torch_records(const std::string& path) {
  const auto mapped = MappedFile::open(path);
  const ZipArchive zip = ZipArchive::parse(path, mapped->bytes());
  for (const ZipRecord& record : zip.records()) zip.check_content(record);
}

}  // namespace limpid
