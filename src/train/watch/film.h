// The page that shows a network learning: live, or as a film that needs no server.
#pragma once

#include <string>
#include <vector>

#include "train/watch/loss_curve.h"
#include "train/watch/network_json.h"

namespace limpid {

// Returns the losses so far for the page: {"stride", "means"}.
Json curve_json(const LossCurve& curve);

// Returns the live page as one file. The page asks its server for states (LiveRun). Text of
// `network` is data and never markup.
std::string live_network_page(const Json& network);

// Keeps snapshots while a network learns, one every so many steps. When the snapshots become too
// many or too large, every second one is dropped and the distance doubles.
class Film {
 public:
  static constexpr size_t kMostFrames = 240;
  static constexpr size_t kMostBytes = 8'000'000;  // of all frames

  // `n_steps` are planned.
  explicit Film(int64_t n_steps);

  // Returns whether a frame of that step is kept.
  bool wants(int64_t step) const { return step % distance_ == 0; }
  void add(std::string snapshot);
  // Sets the last frame, whatever its step is.
  void end(std::string snapshot) { last_ = std::move(snapshot); }

  // Returns the page of live_network_page with the frames in it.
  std::string page(const Json& network, const LossCurve& curve) const;

 private:
  std::vector<std::string> frames_;
  std::string last_;
  size_t n_bytes_ = 0;
  int64_t distance_ = 1;
};

}  // namespace limpid
