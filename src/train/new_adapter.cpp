#include "train/new_adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "layouts/lora_adapter.h"
#include "layouts/model_classes.h"
#include "model/decoder_from_checkpoint.h"
#include "train/initial_weights.h"

namespace limpid {
// LoRA (Hu et al. 2021, arXiv:2106.09685): y = W x + (alpha / rank) B A x, with A [rank, inputs]
// and B [outputs, rank]. Only A and B learn. For a matrix of 2,048 by 2,048 and rank 8 these are
// 32,768 numbers instead of 4.2 million, and so are their gradients and the optimizer's means. One
// of the two must not be 0 at first: with A = B = 0 both gradients are 0 for ever.
void add_new_adapter(Checkpoint& canonical, int64_t rank, double alpha, const std::string& targets,
                     uint64_t seed) {
  const std::vector<std::string> listed =
      split_full_list(targets.empty() ? model_class_of(canonical).adapted_modules : targets,
                      "RunSettings::lora_targets");
  const std::set<std::string> wanted(listed.begin(), listed.end());
  const bool wants_all = wanted == std::set<std::string>{"all-linear"};  // PEFT's word
  const int64_t number = n_lora_adapters(canonical);
  std::set<std::string> known;
  for (const TensorEntry& entry : tensor_table(canonical, read_spec(canonical)).entries) {
    if (entry.use != WeightUse::kProjection || is_lora_tensor(entry.name)) continue;
    const std::string target = peft_target(canonical, entry.name);
    known.insert(target);
    const LoraNames names = lora_names(entry.name, number);
    if (!wants_all && !wanted.contains(target)) continue;
    if (canonical.find(names.a) != nullptr) continue;
    LIMPID_CHECK(ArgumentError, rank <= std::max(entry.shape.rows(), entry.shape.cols()),
                 "a rank of {} is more than both sides of {}, a matrix of {} by {}", rank,
                 entry.name, entry.shape.rows(), entry.shape.cols());
    Tensor a(DType::kF32, Shape{rank, entry.shape.cols()});
    fill_uniform(a.f32(), 1.0 / std::sqrt(static_cast<double>(entry.shape.cols())), seed, names.a);
    canonical.add(names.a, std::move(a));
    canonical.add(names.b, Tensor(DType::kF32, Shape{entry.shape.rows(), rank}));
  }
  for (const std::string& name : wanted) {
    LIMPID_CHECK(ArgumentError, wants_all || known.contains(name),
                 "the model has no module '{}'; choose among {}, or all-linear", name,
                 fmt::join(known, ", "));
  }
  canonical.metadata.set(lora_scale_key(number), {alpha / static_cast<double>(rank), "f64"});
}

}  // namespace limpid
