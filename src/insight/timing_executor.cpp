#include "insight/timing_executor.h"

#include <algorithm>
#include <limits>

#include "base/parse_number.h"

namespace limpid {

std::string matrix_kind(std::string_view name) {
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  std::string_view kind = name;  // what follows the last word that is a number
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    const bool is_number = parse_number<uint64_t>(name.substr(0, dot)).has_value();
    name.remove_prefix(dot + 1);
    if (is_number) kind = name;
  }
  return std::string(kind);
}

double OpTime::share_of_limit(double read_bytes, const FlopCount& limits) const {
  if (flops.sum() == 0 || !(read_bytes > 0) || !(seconds > 0))
    return std::numeric_limits<double>::quiet_NaN();
  const double reading = static_cast<double>(n_weight_bytes) / read_bytes;
  return std::max(reading, flops.seconds_at(limits)) / seconds;
}

// Names the call after its matrices, then counts their bytes and operations. A product of x [n, k]
// with a weight [m, k] has n * m * k multiplications and as many additions.
template <typename Run>
void TimingExecutor::time_linear(const Activation& x, std::span<const Projection> projections,
                                 Run run) {
  linear_label_ = "linear";
  uint64_t n_bytes = 0;
  FlopCount flops;
  for (const Projection& projection : projections) {
    const WeightSource& matrix = source(projection.weight);
    linear_label_ += (n_bytes == 0 ? " " : ", ") + matrix_kind(matrix.name);
    n_bytes += matrix.tensor.n_bytes();
    flops.of(matrix.tensor.dtype) +=
        static_cast<double>(2 * x.rows() * projection.weight.rows * projection.weight.cols);
  }
  run();
  OpTime& time = times_.find(linear_label_)->second;
  time.n_weight_bytes += n_bytes;
  time.flops += flops;
}

void TimingExecutor::linear(const Activation& x, std::span<Projection> projections) {
  time_linear(x, projections, [&] { DelegatingExecutor::linear(x, projections); });
}

void TimingExecutor::linear_in_parts(const Activation& x, const Weight& weight,
                                     const SeePart& see) {
  const Projection projection{weight, {}, {}};
  time_linear(x, {&projection, 1},
              [&] { inside("linear", [&] { inner().linear_in_parts(x, weight, see); }); });
}

// A query of head_dim elements takes 2 head_dim operations for the score of each position that it
// sees, and as many to add the value there: 4 q.cols for all heads. The exponentials do not count.
Activation TimingExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                     KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  int64_t n_read = 0;
  for (const int32_t position : inputs().positions) n_read += position + 1;
  Activation out = DelegatingExecutor::attention(q, k, v, kv, layer, shape);
  current_->flops.f32 += static_cast<double>(4 * q.cols() * n_read);
  return out;
}

// Called before each op of the inner executor; leave() is called after it.
void TimingExecutor::enter(std::string_view op) {
  if (op == "linear") op = linear_label_;
  auto found = times_.find(op);
  if (found == times_.end()) found = times_.emplace(op, OpTime{.op = std::string(op)}).first;
  current_ = &found->second;
  watch_ = Stopwatch();
}

void TimingExecutor::leave() {
  current_->seconds += watch_.seconds();
  ++current_->n_calls;
}

std::vector<OpTime> TimingExecutor::take() {
  std::vector<OpTime> times;
  for (auto& [op, time] : times_) times.push_back(std::move(time));
  times_.clear();
  std::ranges::sort(times, std::ranges::greater(), &OpTime::seconds);
  return times;
}

}  // namespace limpid
