// The LoRA adapters that a served model has, and how much each counts: for all requests, or for one
// that says so.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/json_body.h"

namespace limpid {

struct ServedAdapter {
  std::string path;
  double scale = 1;  // of requests that name no scales
};

// "lora" of a request, [{"id": 0, "scale": 0.5}]: adapters that it does not name do not count. Each
// member holds a name for errors.
struct AdapterScale {
  int64_t id = 0;
  double scale = 1;
  std::string name;  // of the field: "lora[0].id"
};
std::vector<AdapterScale> read_adapter_scales(const JsonField& field);

// May be used by many threads.
class ServedAdapters {
 public:
  explicit ServedAdapters(std::vector<ServedAdapter> adapters) : adapters_(std::move(adapters)) {}

  std::vector<ServedAdapter> list() const;
  // The factor of each adapter for a request. Throws ApiError for an id that does not exist.
  std::vector<double> factors(const std::optional<std::vector<AdapterScale>>& asked) const;
  // The same, for requests from now on that name none.
  void set_scales(const std::vector<AdapterScale>& asked);

 private:
  mutable std::mutex mutex_;
  std::vector<ServedAdapter> adapters_;  // guarded by the mutex; their number stays
};

}  // namespace limpid
