// A picture of a rotary table.
#pragma once

#include <string>

#include "model/decoder_spec.h"

namespace limpid {

// An SVG chart of the wavelength of each pair of elements, in tokens on a logarithmic axis: before
// scaling (base^(2i / n_rot)) and after. A pair whose wave is longer than the context never turns
// once in it. Throws UnsupportedError for a model without rotary positions.
std::string rope_chart(const DecoderSpec& spec);

}  // namespace limpid
