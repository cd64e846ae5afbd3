// An executor that records what the decoder asks for and plays it backwards: the seam that a tape
// needs. Values come from the reference executor; gradients are f64. One sequence that starts at
// position 0.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "executor/delegating_executor.h"
#include "executor/reference/reference_executor.h"
#include "tensor/codec.h"

namespace limpid::testing {

class RecordingExecutor final : public DelegatingExecutor {
 public:
  RecordingExecutor()
      : DelegatingExecutor(std::make_unique<ReferenceExecutor>(ExecutorOptions{1},
                                                               std::pmr::new_delete_resource())),
        inner_(static_cast<ReferenceExecutor&>(DelegatingExecutor::inner())) {}

  struct Node {
    Activation inner;           // kept alive: nothing that was recorded is overwritten
    std::vector<double> value;  // [rows, cols]
    std::vector<double> gradient;
  };

  // Gradients of loss = sum(seed * y), y the activation that was read last, by walking the record
  // backwards.
  void backward(std::span<const double> seed) {
    nodes_[last_read_].gradient.assign(seed.begin(), seed.end());
    for (auto step = record_.rbegin(); step != record_.rend(); ++step) (*step)();
  }
  // d loss / d weight, in stored order [rows, cols].
  const std::vector<double>& weight_gradient(const std::string& name) const {
    return weight_gradients_.at(name);
  }
  size_t n_recorded() const { return record_.size(); }

  Activation embed(const Weight& table) override {
    Activation y = keep(inner_.embed(table));
    record_.push_back([this, id = y.id(), table] {
      std::vector<double>& dw = gradient_of(table);
      for (size_t t = 0; t < inputs().token_ids.size(); ++t) {
        for (int64_t d = 0; d < table.cols; ++d) {
          dw[inputs().token_ids[t] * table.cols + d] += nodes_[id].gradient[t * table.cols + d];
        }
      }
    });
    return y;
  }

  Activation add(const Activation& a, const Activation& b) override {
    Activation y = keep(inner_.add(inner(a), inner(b)));
    record_.push_back([this, ia = a.id(), ib = b.id(), iy = y.id()] {
      for (size_t i = 0; i < nodes_[iy].gradient.size(); ++i) {
        nodes_[ia].gradient[i] += nodes_[iy].gradient[i];
        nodes_[ib].gradient[i] += nodes_[iy].gradient[i];
      }
    });
    return y;
  }

  // With r = 1 / sqrt(mean(x^2) + eps):  dx = r * (w * dy - x * r^2 * mean(w * dy * x)),  dw = dy *
  // x * r.
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override {
    Activation y = keep(inner_.rms_norm(inner(x), weight, eps));
    record_.push_back([this, ix = x.id(), iy = y.id(), weight, eps] {
      Node& from = nodes_[ix];
      const Node& to = nodes_[iy];
      const std::vector<float> w = decode(inner_.weight(weight).tensor);
      std::vector<double>& dw = gradient_of(weight);
      const size_t n = w.size();
      for (size_t at = 0; at < from.value.size(); at += n) {
        double squares = 0;
        double mixed = 0;
        for (size_t i = 0; i < n; ++i) {
          squares += from.value[at + i] * from.value[at + i];
          mixed += w[i] * to.gradient[at + i] * from.value[at + i];
        }
        const double r = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
        for (size_t i = 0; i < n; ++i) {
          const double x_i = from.value[at + i];
          dw[i] += to.gradient[at + i] * x_i * r;
          from.gradient[at + i] +=
              r * (w[i] * to.gradient[at + i] - x_i * r * r * mixed / static_cast<double>(n));
        }
      }
    });
    return y;
  }

  void linear(const Activation& x, std::span<Projection> projections) override {
    inner_.linear(inner(x), projections);
    for (Projection& p : projections) {
      p.y = keep(std::move(p.y));
      record_.push_back([this, ix = x.id(), iy = p.y.id(), weight = p.weight] {
        linear_backward(ix, iy, weight);
      });
    }
  }

  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override {
    Activation y = keep(inner_.rope(inner(x), table, head_dim));
    // A rotation's transpose is the rotation by the opposite angle; recover the angle from the op
    // itself.
    record_.push_back([this, ix = x.id(), iy = y.id(), table, head_dim, cols = x.cols()] {
      const int64_t half = table.n_rot / 2;
      for (size_t t = 0; t < inputs().positions.size(); ++t) {
        for (int64_t at = static_cast<int64_t>(t) * cols; at < static_cast<int64_t>(t + 1) * cols;
             at += head_dim) {
          for (int64_t i = 0; i < half; ++i) {
            const double angle = inputs().positions[t] * frequencies_[i];
            const double c = std::cos(angle);
            const double s = std::sin(angle);
            const double da = nodes_[iy].gradient[at + i];
            const double db = nodes_[iy].gradient[at + i + half];
            nodes_[ix].gradient[at + i] += da * c + db * s;
            nodes_[ix].gradient[at + i + half] += db * c - da * s;
          }
          for (int64_t i = 2 * half; i < head_dim; ++i)
            nodes_[ix].gradient[at + i] += nodes_[iy].gradient[at + i];
        }
      }
    });
    return y;
  }

  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override {
    Activation y = keep(inner_.attention(inner(q), inner(k), inner(v), kv, layer, shape));
    record_.push_back([this, iq = q.id(), ik = k.id(), iv = v.id(), iy = y.id(), shape] {
      for (int64_t t = 0; t < inputs().n_tokens(); ++t) {
        for (int64_t h = 0; h < shape.n_heads; ++h)
          attention_backward(nodes_[iq], nodes_[ik], nodes_[iv], nodes_[iy], t, h, shape);
      }
    });
    return y;
  }

  // silu(g) * u, with silu'(g) = s + g * s * (1 - s), s the logistic function of g.
  Activation swiglu(const Activation& gate, const Activation& up) override {
    Activation y = keep(inner_.swiglu(inner(gate), inner(up)));
    record_.push_back([this, ig = gate.id(), iu = up.id(), iy = y.id()] {
      for (size_t i = 0; i < nodes_[iy].gradient.size(); ++i) {
        const double g = nodes_[ig].value[i];
        const double s = 1 / (1 + std::exp(-g));
        nodes_[ig].gradient[i] +=
            nodes_[iy].gradient[i] * nodes_[iu].value[i] * (s + g * s * (1 - s));
        nodes_[iu].gradient[i] += nodes_[iy].gradient[i] * g * s;
      }
    });
    return y;
  }

  Activation select_outputs(const Activation& x) override {
    Activation y = keep(inner_.select_outputs(inner(x)));
    record_.push_back([this, ix = x.id(), iy = y.id(), cols = x.cols()] {
      for (size_t i = 0; i < inputs().output_rows.size(); ++i) {
        for (int64_t d = 0; d < cols; ++d) {
          nodes_[ix].gradient[inputs().output_rows[i] * cols + d] +=
              nodes_[iy].gradient[i * cols + d];
        }
      }
    });
    return y;
  }

  RopeTable load_rope(std::span<const double> frequencies, int64_t n_positions,
                      double magnitude) override {
    frequencies_.assign(frequencies.begin(), frequencies.end());
    return inner_.load_rope(frequencies, n_positions, magnitude);
  }

  void read(const Activation& x, std::span<float> out) override {
    last_read_ = x.id();
    inner_.read(inner(x), out);
  }

 private:
  Node& node(const Activation& x) { return nodes_[x.id()]; }
  const Activation& inner(const Activation& x) { return node(x).inner; }

  Activation keep(Activation inner) {
    Node fresh;
    std::vector<float> value(static_cast<size_t>(inner.rows() * inner.cols()));
    inner_.read(inner, value);
    fresh.value.assign(value.begin(), value.end());
    fresh.gradient.assign(value.size(), 0.0);
    Activation handle(this, static_cast<int32_t>(nodes_.size()), inner.rows(), inner.cols());
    fresh.inner = std::move(inner);
    nodes_.push_back(std::move(fresh));
    return handle;
  }

  std::vector<double>& gradient_of(const Weight& weight) {
    std::vector<double>& gradient = weight_gradients_[inner_.weight(weight).name];
    gradient.resize(static_cast<size_t>(weight.rows * weight.cols));
    return gradient;
  }

  // dx = dy W,  dW = dy^T x, W's rows in stored order.
  void linear_backward(int32_t ix, int32_t iy, const Weight& weight) {
    const WeightSource& source = inner_.weight(weight);
    const std::vector<float> w = decode(source.tensor);
    std::vector<double>& dw = gradient_of(weight);
    Node& from = nodes_[ix];
    const Node& to = nodes_[iy];
    const auto n_tokens = static_cast<int64_t>(from.value.size()) / weight.cols;
    for (int64_t t = 0; t < n_tokens; ++t) {
      for (int64_t r = 0; r < weight.rows; ++r) {
        const double dy = to.gradient[t * weight.rows +
                                      (source.row_order == RowOrder::kHalfSplit
                                           ? r
                                           : half_split_row(r, source.head_dim, source.head_dim))];
        for (int64_t c = 0; c < weight.cols; ++c) {
          from.gradient[t * weight.cols + c] += dy * w[r * weight.cols + c];
          dw[r * weight.cols + c] += dy * from.value[t * weight.cols + c];
        }
      }
    }
  }

  // With p = softmax(s), s_j = scale q.k_j:  dv_j = p_j do,  ds_j = p_j (do.v_j - sum_i p_i
  // do.v_i).
  static void attention_backward(Node& q, Node& k, Node& v, const Node& out, int64_t t, int64_t h,
                                 const AttentionShape& shape) {
    const int64_t n = shape.head_dim;
    const int64_t q_at = (t * shape.n_heads + h) * n;
    const auto kv_at = [&](int64_t j) {
      return (j * shape.n_kv_heads + h / (shape.n_heads / shape.n_kv_heads)) * n;
    };
    std::vector<double> p(static_cast<size_t>(t + 1));
    std::vector<double> dp(p.size());
    double total = 0;
    for (int64_t j = 0; j <= t; ++j) {
      double dot = 0;
      for (int64_t d = 0; d < n; ++d) {
        dot += q.value[q_at + d] * k.value[kv_at(j) + d];
        dp[j] += out.gradient[q_at + d] * v.value[kv_at(j) + d];
      }
      p[j] = std::exp(dot * shape.scale);
      total += p[j];
    }
    double mean = 0;
    for (int64_t j = 0; j <= t; ++j) {
      p[j] /= total;
      mean += p[j] * dp[j];
    }
    for (int64_t j = 0; j <= t; ++j) {
      const double ds = p[j] * (dp[j] - mean) * shape.scale;
      for (int64_t d = 0; d < n; ++d) {
        v.gradient[kv_at(j) + d] += p[j] * out.gradient[q_at + d];
        q.gradient[q_at + d] += ds * k.value[kv_at(j) + d];
        k.gradient[kv_at(j) + d] += ds * q.value[q_at + d];
      }
    }
  }

  ReferenceExecutor& inner_;
  std::vector<Node> nodes_;
  std::vector<std::function<void()>> record_;
  std::map<std::string, std::vector<double>> weight_gradients_;
  std::vector<double> frequencies_;
  int32_t last_read_ = -1;
};

}  // namespace limpid::testing
