// A chart of a model's rotary positions.
#pragma once

#include <string>

#include "model/decoder_spec.h"

namespace limpid {

// An SVG chart of the wavelength of each pair of elements, in tokens on a logarithmic axis: before
// scaling (2 pi base^(2i / n_rot)) and after. A pair whose wavelength is longer than the context
// never makes a full turn in it; one of frequency 0 is left out of the line. Throws
// UnsupportedError for a model without rotary positions.
std::string rope_chart(const DecoderSpec& spec);

}  // namespace limpid
