#include "cli/token_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/terminal_text.h"

// Two tokenizers cut "unlocked" differently, and " it" alike:
//
//   one.gguf                      | two.gguf
//   ID "un"  ID "locked"          ≠ ID "un"  ID "lock"  ID "ed"
//   ID " it"                      | ID " it"
//   3 tokens, 3.67 bytes each     | 4 tokens, 2.75 bytes each
//
// A row is the shortest stretch of the text at whose ends both have a boundary.
namespace limpid::cli {
namespace {

// The tokens of one side: BOS, those of the text, EOS.
struct Side {
  std::span<const TokenId> before;
  std::span<const TokenId> ids;
  std::span<const TokenId> after;
  std::vector<size_t> n_bytes{};  // of the text, that each of `ids` covers
};

Side side_of(const TokenizedText& text) {
  const TokenizerSpec& spec = text.tokenizer->spec();
  const std::span<const TokenId> ids(text.ids);
  const size_t begin = text.framed && spec.add_bos ? 1 : 0;
  const size_t end = ids.size() - (text.framed && spec.add_eos ? 1 : 0);
  Side side{ids.first(begin), ids.subspan(begin, end - begin), ids.subspan(end)};
  bool strip = spec.adds_space();
  for (const TokenId id : side.ids) {
    const std::string_view bytes = text.tokenizer->bytes_of(id, true);
    side.n_bytes.push_back(bytes.size() - (strip && bytes.starts_with(' ') ? 1 : 0));
    if (!bytes.empty()) strip = false;
  }
  return side;
}

std::string cell_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string cell;
  for (const TokenId id : ids) {
    const Json piece = std::string(tokenizer.bytes_of(id, true));
    cell += fmt::format("{}{} {}", cell.empty() ? "" : "  ", id, dump_json(piece));
  }
  return cell;
}

std::string summary_of(const TokenizedText& text, size_t text_bytes) {
  const auto n = static_cast<double>(text.ids.size());
  return fmt::format("{}, {:.2f} bytes each", count(text.ids.size(), "token"),
                     n > 0 ? static_cast<double>(text_bytes) / n : 0.0);
}

// Whether both sides have the same pieces. Pieces are compared by their bytes: two models seldom
// give a piece the same id.
bool cuts_alike(const TokenizedText& left, const TokenizedText& right, const ComparedStretch& row) {
  // With one token each, both have the same stretch. BOS and EOS count as equal under any name.
  if (row.left.size() == 1 && row.right.size() == 1) return true;
  return std::ranges::equal(row.left, row.right, [&](TokenId a, TokenId b) {
    return left.tokenizer->bytes_of(a, true) == right.tokenizer->bytes_of(b, true);
  });
}

}  // namespace

// Takes tokens from the side that has covered fewer bytes until both have covered the same number:
// "un|lock|ed" beside "unlock|ed" becomes the stretches "unlock" (2 tokens and 1) and "ed" (1 and
// 1).
std::vector<ComparedStretch> align_tokens(const TokenizedText& left, const TokenizedText& right) {
  const Side a = side_of(left), b = side_of(right);
  std::vector<ComparedStretch> rows;
  const auto add_frame = [&](std::span<const TokenId> one, std::span<const TokenId> other) {
    if (one.empty() && other.empty()) return;
    rows.push_back({{one.begin(), one.end()}, {other.begin(), other.end()}});
  };
  add_frame(a.before, b.before);
  size_t left_bytes = 0, right_bytes = 0;
  for (size_t i = 0, j = 0; i < a.ids.size() || j < b.ids.size();) {
    if (left_bytes == right_bytes) rows.emplace_back();
    if (i < a.ids.size() && (left_bytes <= right_bytes || j == b.ids.size())) {
      rows.back().left.push_back(a.ids[i]);
      left_bytes += a.n_bytes[i++];
    } else {
      rows.back().right.push_back(b.ids[j]);
      right_bytes += b.n_bytes[j++];
    }
  }
  add_frame(a.after, b.after);
  return rows;
}

// Columns are padded by characters and not by bytes; a double-width character counts as one.
std::string format_comparison(const TokenizedText& left, const TokenizedText& right,
                              size_t text_bytes) {
  struct Row {
    std::string left, right;
    bool alike;
  };
  std::vector<Row> rows = {{left.name, right.name, true}};
  for (const ComparedStretch& row : align_tokens(left, right)) {
    rows.push_back({cell_of(*left.tokenizer, row.left), cell_of(*right.tokenizer, row.right),
                    cuts_alike(left, right, row)});
  }
  rows.push_back({summary_of(left, text_bytes), summary_of(right, text_bytes), true});
  constexpr size_t kWidest = 60;  // a longer cell pushes its neighbour aside
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, std::min(n_characters(row.left), kWidest));
  std::string out;
  for (const Row& row : rows) {
    const size_t used = std::min(n_characters(row.left), width);
    out += fmt::format("{}{:{}} {} {}\n", row.left, "", width - used, row.alike ? "|" : "≠",
                       row.right);
  }
  return out;
}

}  // namespace limpid::cli
