#include "layouts/hugging_face_rope.h"

#include <string>

#include "base/check.h"
#include "checkpoint/byte_reader.h"

namespace limpid {
namespace {

// Reads `rope_type`, or the older `type`. If both are present they must agree.
std::string read_type(SpecReader& config, const std::string& block) {
  const std::string older = config.string_or(block + "type", "");
  const std::string type = config.string_or(block + "rope_type", older);
  if (!older.empty() && older != type)
    config.fail(block + "type", "differs from rope_type beside it");
  return type.empty() ? "default" : type;
}

double required_number(SpecReader& config, const std::string& name) {
  if (!config.contains(name)) config.fail(name, "is missing");
  return config.positive_or(name, 1);
}

// Reads the parameters of llama3's scaling. All are required except the original context, for which
// transformers uses max_position_embeddings.
RopeScaling read_llama3(SpecReader& config, const std::string& block, int64_t n_ctx) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.factor = required_number(config, block + "factor");
  scaling.low_freq_factor = required_number(config, block + "low_freq_factor");
  scaling.high_freq_factor = required_number(config, block + "high_freq_factor");
  const std::string original = "original_max_position_embeddings";
  scaling.original_context = config.size_or(block + original, n_ctx, kLargestSize);
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    config.fail(block + "high_freq_factor", "is not above low_freq_factor");
  return scaling;
}

}  // namespace

// Values in the block take precedence over the same keys at the top level.
HuggingFaceRope read_hugging_face_rope(SpecReader& config, int64_t head_dim, int64_t n_ctx) {
  const bool newer = config.contains("rope_parameters.rope_type") ||
                     config.contains("rope_parameters.rope_theta") ||
                     config.contains("rope_parameters.type");
  const std::string block = newer ? "rope_parameters." : "rope_scaling.";
  if (newer && (config.contains("rope_scaling.rope_type") || config.contains("rope_scaling.type")))
    config.fail("rope_scaling", "is present beside rope_parameters; remove one of them");
  HuggingFaceRope rope;
  const double outer_base = config.positive_or("rope_theta", 10000);
  rope.base = config.positive_or(block + "rope_theta", outer_base);
  const double outer_part = config.positive_or("partial_rotary_factor", 1);
  const double part = config.positive_or(block + "partial_rotary_factor", outer_part);
  if (part > 1) config.fail("partial_rotary_factor", fmt::format("is {}, at most 1", part));
  rope.n_rot = static_cast<int64_t>(static_cast<double>(head_dim) * part);
  if (rope.n_rot < 2 || rope.n_rot % 2 != 0) {
    config.fail("partial_rotary_factor",
                fmt::format("leaves {} of {} elements to rotate, expected an even number",
                            rope.n_rot, head_dim));
  }
  const std::string type = read_type(config, block);
  if (type == "linear") {
    rope.scaling.kind = RopeScalingKind::kLinear;
    rope.scaling.factor = required_number(config, block + "factor");
  } else if (type == "llama3") {
    rope.scaling = read_llama3(config, block, n_ctx);
  } else if (type != "default") {
    config.refuse(
        block + "rope_type",
        fmt::format("is `{}`; Limpid supports default, linear and llama3", printable(type)));
  } else {
    config.require_neutral(block + "factor", 1);
  }
  return rope;
}

}  // namespace limpid
