#include "train/watch/film.h"

#include <algorithm>

#include "jinja/page.h"

namespace limpid {

namespace watch {
// The files of this folder, embedded. The scripts are one.
std::string_view network_page_text();
std::string_view network_style_text();
std::string_view network_data_text();
std::string_view network_picture_text();
std::string_view network_attention_text();
std::string_view network_charts_text();
std::string_view network_player_text();
}  // namespace watch

namespace {

// A live page has no film, and a film no server.
std::string network_page(const Json& network, const Json& film) {
  const bool is_live = film.is_null();
  const std::string script =
      std::string(watch::network_data_text()) + std::string(watch::network_picture_text()) +
      std::string(watch::network_charts_text()) + std::string(watch::network_attention_text()) +
      std::string(watch::network_player_text());
  return render_page(watch::network_page_text(),
                     {{"is_live", is_live},
                      {"is_lesson", network.at("kind") == "lesson"},
                      {"n_weights", network.at("n_weights")}},
                     {{"data", script_json({{"network", network}, {"film", film}})}},
                     {.style = std::string(watch::network_style_text()),
                      .script = script,
                      .asks_its_server = is_live});
}

}  // namespace

Json curve_json(const LossCurve& curve) {
  return {{"stride", curve.stride()}, {"means", packed_f32(curve.means())}};
}

std::string live_network_page(const Json& network) { return network_page(network, nullptr); }

Film::Film(int64_t n_steps) : distance_(n_steps / static_cast<int64_t>(kMostFrames) + 1) {}

// Frames 0, 1, 2, 3, 4 become 0, 2, 4, and from then on every second step is wanted: the spacing
// stays even however long the run turns out to be.
void Film::add(std::string snapshot) {
  n_bytes_ += snapshot.size();
  frames_.push_back(std::move(snapshot));
  while (frames_.size() > 2 && (frames_.size() > kMostFrames || n_bytes_ > kMostBytes)) {
    std::vector<std::string> kept;
    n_bytes_ = 0;
    for (size_t i = 0; i < frames_.size(); i += 2) {
      n_bytes_ += frames_[i].size();
      kept.push_back(std::move(frames_[i]));
    }
    frames_ = std::move(kept);
    distance_ *= 2;
  }
}

std::string Film::page(const Json& network, const LossCurve& curve) const {
  Json frames = Json::array();
  for (const std::string& frame : frames_) frames.push_back(Json::parse(frame));
  if (!last_.empty()) frames.push_back(Json::parse(last_));
  return network_page(network,
                      {{"distance", distance_}, {"frames", frames}, {"curve", curve_json(curve)}});
}

}  // namespace limpid
