// The scanners behind pre_tokenizer.h. A scanner's `match(p, end)` returns the end of its regular
// expression's match that begins at `p`, or `p` if there is no match. kCoversAll means that there
// is always a match. The semantics are those of Oniguruma, which `tokenizers` uses: the leftmost
// alternative wins, and quantifiers are greedy with backtracking.
#pragma once

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/run_scanners.h"
#include "tokenizer/word_scanners.h"

namespace limpid::pre_tokenizer_scanners {

// Isolates the matches of `First`, then cuts every piece (the matches and the text between them)
// with `Rest`.
template <class First, class... Rest, class Sink>
void split_with(const char* p, const char* end, Sink&& sink) {
  const auto piece = [&](const char* from, const char* to) {
    if constexpr (sizeof...(Rest) == 0) {
      sink(from, static_cast<size_t>(to - from));
    } else {
      split_with<Rest...>(from, to, sink);
    }
  };
  const char* gap = p;  // the start of the text without a match
  while (p < end) {
    const char* q = First::match(p, end);
    if constexpr (!First::kCoversAll) {
      if (q == p) {
        p += decode(p, end).size;
        continue;
      }
      if (gap != p) piece(gap, p);
    }
    piece(p, q);
    p = gap = q;
  }
  if (gap != end) piece(gap, end);
}

// Calls sink(const char* begin, size_t size) for every piece of [p, end), in order.
template <class Sink>
void split(PreTokenizer pre_tokenizer, const char* p, const char* end, Sink&& sink) {
  switch (pre_tokenizer) {
    case PreTokenizer::kGpt2:
      return split_with<Gpt2>(p, end, sink);
    case PreTokenizer::kDigitsGpt2:
      return split_with<Numbers<1, true>, Gpt2>(p, end, sink);
    case PreTokenizer::kCl100k:
      return split_with<OpenAiCl100k>(p, end, sink);
    case PreTokenizer::kLlama3:
      return split_with<Cl100k<3, false, true>>(p, end, sink);
    case PreTokenizer::kQwen2:
      return split_with<Cl100k<1, false, true>>(p, end, sink);
    case PreTokenizer::kQwen35:
      return split_with<Cl100k<1, true, true>>(p, end, sink);
    case PreTokenizer::kSeedCoder:
      return split_with<Cl100k<1, false, false>>(p, end, sink);
    case PreTokenizer::kGpt4o:
      return split_with<O200k<3, true>>(p, end, sink);
    case PreTokenizer::kTekken:
      return split_with<O200k<1, false>>(p, end, sink);
    case PreTokenizer::kDeepSeekV3:
      return split_with<Numbers<3>, CodePointRun<Cjk>, DeepSeekWords>(p, end, sink);
    case PreTokenizer::kDeepSeekCoder:
      return split_with<LineBreak, SpacedRun<kLetter>, SpacedRun<kPunctuation>,
                        CodePointRun<EastAsian>, Numbers<1, true>>(p, end, sink);
    case PreTokenizer::kBloom:
      return split_with<BloomRun>(p, end, sink);
    case PreTokenizer::kViking:
      return split_with<BloomRun, Numbers<1>>(p, end, sink);
    case PreTokenizer::kNone:
      if (p != end) sink(p, static_cast<size_t>(end - p));
      return;
  }
}

}  // namespace limpid::pre_tokenizer_scanners
