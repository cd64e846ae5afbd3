#include "insight/probe_executor.h"

namespace limpid {

void ProbeExecutor::set_observer(PlaceSet places, Observer observer) {
  observed_ = observer ? places : PlaceSet();
  observer_ = std::move(observer);
}

void ProbeExecutor::set_intervention(PlaceSet places, Intervention intervention) {
  changed_ = intervention ? places : PlaceSet();
  intervention_ = std::move(intervention);
}

std::span<float> ProbeExecutor::copy(const Activation& x) {
  values_.resize(static_cast<size_t>(x.rows() * x.cols()));
  inner().read(x, values_);
  return values_;
}

void ProbeExecutor::observe(Place place, int64_t layer, const Activation& x) {
  if (!observed_.contains(place)) return;
  const auto in_place = inner().view(x);
  observer_(place, layer, in_place.empty() ? copy(x) : in_place);
}

// The activation itself is not changed: it may be the result of an earlier place too, which is
// still to be read. The pass gets another activation.
void ProbeExecutor::intervene(Place place, int64_t layer, Activation& x) {
  if (!changed_.contains(place)) return;
  const std::span<float> values = copy(x);
  if (intervention_(place, layer, values)) x = inner().write(values, x.rows(), x.cols());
}

}  // namespace limpid
