#include "tokenizer/tokenizer_spec.h"

#include <algorithm>

namespace limpid {
namespace {

// Names of control or user-defined tokens that end an answer in every model: llama.cpp's list.
// "<|end|>" is excluded if the vocabulary also has "<|return|>" and "<|call|>" (or "<|calls|>" and
// "<|flush|>"), because there it only ends a message.
constexpr std::string_view kStopNames[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
};

}  // namespace

// One pass collects the stop names. "<|end|>" is removed afterwards if other names show that it
// only ends a message.
std::vector<TokenId> find_stop_ids(const TokenizerSpec& spec) {
  std::vector<TokenId> stops;
  bool has_return = false, has_call = false, has_flush = false;
  TokenId end = -1;
  for (size_t i = 0; i < spec.pieces.size(); ++i) {
    if (spec.types[i] != TokenType::kControl && spec.types[i] != TokenType::kUserDefined) continue;
    const std::string& piece = spec.pieces[i];
    if (std::ranges::find(kStopNames, piece) == std::end(kStopNames)) continue;
    if (piece == "<|return|>") has_return = true;
    if (piece == "<|call|>" || piece == "<|calls|>") has_call = true;
    if (piece == "<|flush|>") has_flush = true;
    if (piece == "<|end|>") end = static_cast<TokenId>(i);
    stops.push_back(static_cast<TokenId>(i));
  }
  if (has_call && (has_return || has_flush)) std::erase(stops, end);
  for (const auto& id : {spec.eos, spec.eot, spec.eom}) {
    if (id && std::ranges::find(stops, *id) == stops.end()) stops.push_back(*id);
  }
  std::sort(stops.begin(), stops.end());
  return stops;
}

std::optional<std::pair<std::string_view, std::string_view>> halves_of_merge(
    std::string_view merge) {
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
      merge.find(' ', space + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(merge.substr(0, space), merge.substr(space + 1));
}

}  // namespace limpid
