// Single pictures of an explanation, as SVG for a paper or a slide.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "insight/explain_page.h"
#include "insight/explanation.h"

namespace limpid {

// `what` is one of
//   surprise      bits of each token
//   lens          after each layer (rows) for each token (columns): the likeliest next token if
//                 there is room for it, and the entropy: dark is sure
//   parts         the logit after the last token by layer: attention and MLP
//   part-heads    the same by head, layers upwards: blue speaks for it, orange against it
//   sizes         mean norms of the residual stream and of what is added, layer by layer
//   heads         the attention of all heads, small; layers upwards
//   L3.H5         the attention weights of a head: rows look at columns, the first row on top
//   distance      of each second run: how far its residual stream is from the first one's
//   divergence    of each second run, after each token: KL divergence of the predictions, in bits
// Throws ArgumentError for anything else, for a head that the model does not have, and for a
// comparison without a second run. Tokens are shown as signs on the axes (`visible`); without a
// tokenizer, as numbers.
std::string explain_chart(const Explanation& explanation, std::string_view what,
                          const DecoderSpec& spec, std::span<const ShownContrast> contrasts,
                          const Tokenizer* tokenizer);

// The names above, without those of heads.
std::vector<std::string> picture_names();
// Throws ArgumentError unless `what` is a picture of such a model.
void check_picture(std::string_view what, const DecoderSpec& spec);

}  // namespace limpid
