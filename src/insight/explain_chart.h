// Single pictures of an explanation, as SVG for a paper or a slide.
#pragma once

#include <string>
#include <string_view>

#include "insight/explanation.h"

namespace limpid {

// `what` is one of
//   surprise      bits of each token
//   lens          entropy after each layer (rows) for each token (columns): dark is sure
//   parts         the last logit by layer: attention and MLP
//   sizes         mean norms of the residual stream and of what is added, layer by layer
//   L3.H5         the attention weights of a head: rows look at columns, the first row on top
// Throws ArgumentError for anything else, and for a head that the model does not have.
std::string explain_chart(const Explanation& explanation, std::string_view what,
                          const DecoderSpec& spec);

}  // namespace limpid
