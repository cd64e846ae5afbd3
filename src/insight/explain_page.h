// An explanation as one HTML page that needs nothing else: no network, no server.
#pragma once

#include <string>

#include "insight/contrast.h"
#include "insight/explanation.h"
#include "insight/timing_executor.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// What the page says about where it comes from.
struct PageFacts {
  std::string model;               // name of the file or folder
  std::string description;         // "llama, 30 layers, …"
  std::vector<OpTime> times = {};  // of the evaluation; may be empty
  std::string limits = {};         // in words
  uint64_t n_weight_bytes = 0;
  uint64_t n_cache_bytes = 0;  // of keys and values
};

// A second run that the page shows beside the first.
struct ShownContrast {
  std::string title;  // "without L3.H5"
  Contrast contrast;
};

// The page holds the numbers as JSON, arrays of numbers in base64, and draws them with its own
// script; its policy lets nothing else run and nothing be loaded, whatever tokens and names contain
// (W3C, Content Security Policy Level 3). `tokenizer` may be null.
std::string explain_page(const Explanation& explanation, const PageFacts& facts,
                         std::span<const ShownContrast> contrasts, const Tokenizer* tokenizer);

// The same page without numbers, for a frame in another page of the same origin: it posts "ready"
// to that page, which posts back what explain_data gives (HTML Living Standard,
// window.postMessage).
std::string explain_frame();
std::string explain_data(const Explanation& explanation, const PageFacts& facts,
                         const Tokenizer* tokenizer);

// "llama, 30 layers of 9 heads, 576 features"
std::string describe_model(const DecoderSpec& spec);

}  // namespace limpid
