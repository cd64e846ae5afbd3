#include <algorithm>

#include "train/microgpt/engine.h"
#include "train/microgpt/fast_layout.h"

namespace limpid::microgpt {
namespace {

template <typename T>
class FastEngine final : public Engine {
 public:
  FastEngine(const Config& config, const std::vector<double>& weights)
      : block_size_(config.shape.block_size),
        kernels_(fast_kernels<T>()),
        layout_(config.shape, config.batch_size, kernels_.lanes),
        documents_(static_cast<size_t>(config.batch_size)),
        row_weights_(static_cast<size_t>(config.batch_size * config.shape.block_size)) {
    size_t next = 0;
    for_each_weight(
        [&](int64_t at) { layout_.model().weights[at] = static_cast<T>(weights[next++]); });
    kernels_.turn_weights(layout_.model());
  }

  double forward_backward(std::span<const std::vector<Token>> documents) override {
    int64_t n_rows = 0;
    for (size_t d = 0; d < documents.size(); ++d) {
      const int64_t n = std::min(block_size_, std::ssize(documents[d]) - 1);
      documents_[d] = {documents[d].data(), n, n_rows};
      const double weight = 1.0 / static_cast<double>(n) / static_cast<double>(documents.size());
      std::fill_n(row_weights_.begin() + n_rows, n, weight);
      n_rows += n;
    }
    return kernels_.backward(forward(std::ssize(documents), n_rows), row_weights_.data());
  }

  std::vector<double> gradients() const override {
    kernels_.gather_gradients(layout_.model());
    return gather(layout_.model().gradients);
  }
  std::vector<double> weights() const override { return gather(layout_.model().weights); }
  void update(const AdamStep& step) override { kernels_.update(layout_.model(), step); }

  void begin_context() override { context_.clear(); }

  // Computes the whole context again. The context is short, and the kernels have no incremental
  // mode.
  void next_logits(Token token, std::span<double> logits) override {
    context_.push_back(token);
    documents_[0] = {context_.data(), std::ssize(context_), 0};
    const FastModel<T>& model = forward(1, std::ssize(context_));
    const T* last = model.logits + (model.n_rows - 1) * model.vocab_width;
    std::copy(last, last + std::ssize(logits), logits.begin());
  }

 private:
  // Computes the logits of the first documents_, which have so many rows together.
  const FastModel<T>& forward(int64_t n_documents, int64_t n_rows) {
    FastModel<T>& model = layout_.model();
    model.documents = documents_.data();
    model.n_documents = n_documents;
    model.n_rows = n_rows;
    kernels_.forward(model);
    return model;
  }

  template <typename Visit>
  void for_each_weight(const Visit& visit) const {
    for (const PaddedMatrix& matrix : layout_.matrices()) {
      for (int64_t row = 0; row < matrix.rows; ++row) {
        for (int64_t col = 0; col < matrix.cols; ++col) {
          visit(matrix.at(row, col, kernels_.lanes));
        }
      }
    }
  }

  // Converts padded panels back to plain matrices in the order of Matrices.
  std::vector<double> gather(const T* numbers) const {
    std::vector<double> gathered;
    for_each_weight([&](int64_t at) { gathered.push_back(numbers[at]); });
    return gathered;
  }

  int64_t block_size_;
  const FastKernels<T>& kernels_;
  FastLayout<T> layout_;
  std::vector<FastDocument> documents_;
  std::vector<double> row_weights_;
  std::vector<Token> context_;
};

}  // namespace

template <typename T>
std::unique_ptr<Engine> make_fast_engine(const Config& config, const std::vector<double>& weights) {
  return std::make_unique<FastEngine<T>>(config, weights);
}

template std::unique_ptr<Engine> make_fast_engine<float>(const Config&, const std::vector<double>&);
template std::unique_ptr<Engine> make_fast_engine<double>(const Config&,
                                                          const std::vector<double>&);

}  // namespace limpid::microgpt
