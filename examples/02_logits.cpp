// Shows what a model expects after a text: the ten likeliest tokens.
//   02_logits MODEL.gguf "The capital of France is"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limpid/limpid.hpp>
#include <numeric>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 3) return std::cerr << "usage: " << argv[0] << " MODEL.gguf TEXT\n", 1;
  const auto model = limpid::LanguageModel::open(argv[1]);
  limpid::Session session(model);
  session.append(model.encode(argv[2]));

  const std::span<const float> logits = session.logits();
  std::vector<limpid::TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto n_shown = std::min<std::ptrdiff_t>(10, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n_shown, ids.end(),
                    [&](auto a, auto b) { return logits[a] > logits[b]; });

  // Softmax, relative to the largest logit so that nothing overflows.
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - logits[ids[0]]);
  for (std::ptrdiff_t i = 0; i < n_shown; ++i) {
    const double probability = std::exp(logits[ids[i]] - logits[ids[0]]) / sum;
    std::cout << std::fixed << std::setprecision(4) << probability << "  "
              << std::quoted(model.decode({&ids[i], 1}, true)) << "\n";
  }
} catch (const limpid::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
