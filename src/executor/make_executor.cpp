#include "base/check.h"
#include "executor/executors.h"

namespace limpid {

std::unique_ptr<Executor> make_executor(std::string_view name, const ExecutorOptions& options) {
  if (name == "cpu") return make_cpu_executor(options);
  if (name == "reference") return make_reference_executor(options);
  throw ArgumentError(fmt::format("no executor is called `{}`; there are cpu and reference", name));
}

}  // namespace limpid
