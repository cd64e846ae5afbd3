// An executor that lets a caller look into a step while it runs, and change what it computes. It
// passes every op on to another executor.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/delegating_executor.h"

namespace limpid {

// Without an observer and an intervention the results are bit for bit those of the inner executor,
// and a place costs one test. Both are called within the step, on the thread that runs it.
class ProbeExecutor final : public DelegatingExecutor {
 public:
  // Sees an activation [rows, cols]: where it lies, or copied to the host. It is there until the
  // function returns.
  using Observer = std::function<void(Place place, int64_t layer, std::span<const float> values)>;
  // May change the values [rows, cols] of an activation; says whether it did.
  using Intervention = std::function<bool(Place place, int64_t layer, std::span<float> values)>;

  using DelegatingExecutor::DelegatingExecutor;

  // Activations elsewhere are not copied. An empty function ends it.
  void set_observer(PlaceSet places, Observer observer);
  void set_intervention(PlaceSet places, Intervention intervention);

  void linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) override {
    inner().linear_in_parts(x, weight, see);
  }
  void observe(Place place, int64_t layer, const Activation& x) override;
  void intervene(Place place, int64_t layer, Activation& x) override;

 private:
  std::span<float> copy(const Activation& x);

  PlaceSet observed_;
  PlaceSet changed_;
  Observer observer_;
  Intervention intervention_;
  std::vector<float> values_;  // the copy that a function sees
};

// Observes until the end of the scope, also where a step throws.
class Observing {
 public:
  Observing(ProbeExecutor& probe, PlaceSet places, ProbeExecutor::Observer observer)
      : probe_(probe) {
    probe.set_observer(places, std::move(observer));
  }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;
  ~Observing() { probe_.set_observer({}, {}); }

 private:
  ProbeExecutor& probe_;
};

}  // namespace limpid
