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

// The tokens of one side, and how many bytes of the text each covers.
class Side {
 public:
  explicit Side(const TokenizedText& text) : text_(text) {
    const TokenizerSpec& spec = text.tokenizer->spec();
    begin_ = text.framed && spec.add_bos ? 1 : 0;
    end_ = text.ids.size() - (text.framed && spec.add_eos ? 1 : 0);
    strip_ =
        spec.kind == TokenizerKind::kSentencePieceBpe && spec.space_prefix != SpacePrefix::kNone;
    at_ = begin_;
  }
  bool at_end() const { return at_ == end_; }
  // Moves the next token to `out`; returns the number of bytes that it covers.
  size_t take(std::vector<TokenId>& out) {
    const TokenId id = text_.ids[at_++];
    out.push_back(id);
    const std::string_view bytes = text_.tokenizer->bytes_of(id, true);
    const bool has_prefix = strip_ && !bytes.empty() && bytes.front() == ' ';
    if (!bytes.empty()) strip_ = false;
    return bytes.size() - (has_prefix ? 1 : 0);
  }
  // Adds the tokens outside the text: BOS or EOS.
  void take_frame(bool before, std::vector<TokenId>& out) const {
    const std::span<const TokenId> ids(text_.ids);
    const auto frame = before ? ids.first(begin_) : ids.subspan(end_);
    out.insert(out.end(), frame.begin(), frame.end());
  }

 private:
  const TokenizedText& text_;
  size_t begin_ = 0, end_ = 0, at_ = 0;
  bool strip_ = false;
};

void add_frame(const Side& left, const Side& right, bool before,
               std::vector<ComparedStretch>& rows) {
  ComparedStretch row;
  left.take_frame(before, row.left);
  right.take_frame(before, row.right);
  if (!row.left.empty() || !row.right.empty()) rows.push_back(std::move(row));
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
  if (row.left.size() != row.right.size()) return false;
  // With one token each, both have the same stretch. BOS and EOS count as equal under any name.
  return row.left.size() == 1 ||
         std::equal(row.left.begin(), row.left.end(), row.right.begin(), [&](TokenId a, TokenId b) {
           return left.tokenizer->bytes_of(a, true) == right.tokenizer->bytes_of(b, true);
         });
}

}  // namespace

// Takes tokens from the side that has covered fewer bytes until both have covered the same number:
// "un|lock|ed" beside "unlock|ed" becomes the stretches "unlock" (2 tokens and 1) and "ed" (1 and
// 1).
std::vector<ComparedStretch> align_tokens(const TokenizedText& left, const TokenizedText& right) {
  Side a(left), b(right);
  std::vector<ComparedStretch> rows;
  add_frame(a, b, true, rows);
  while (!a.at_end() || !b.at_end()) {
    ComparedStretch row;
    size_t left_bytes = 0, right_bytes = 0;
    do {
      if (!a.at_end() && (left_bytes <= right_bytes || b.at_end())) {
        left_bytes += a.take(row.left);
      } else {
        right_bytes += b.take(row.right);
      }
    } while (left_bytes != right_bytes && !(a.at_end() && b.at_end()));
    rows.push_back(std::move(row));
  }
  add_frame(a, b, false, rows);
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
