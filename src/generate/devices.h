// The executors that the options of a model name, and how its layers are shared out to them.
#pragma once

#include <memory>
#include <string>

#include "executor/executors.h"
#include "limpid/memory_plan.hpp"
#include "limpid/model.hpp"

namespace limpid {

// One executor, or a device and the CPU or another device, between which a plan shares out the
// layers. The names are those of OpenOptions::device ("opencl:1").
struct Devices {
  std::unique_ptr<Executor> first;   // of the first layers
  std::unique_ptr<Executor> second;  // of the others; null: `first` has all
  std::string first_name;
  std::string second_name{};
};

// Loads drivers, and nothing of a model. Throws ArgumentError for an unknown device, and
// ResourceError for one that is not there.
Devices open_devices(const OpenOptions& options);

// The executor of the plan's devices, which `devices` were opened for. `wrap` may put another one
// around it.
std::unique_ptr<Executor> join_devices(Devices devices, const MemoryPlan& plan,
                                       const WrapExecutor& wrap = {});

}  // namespace limpid
