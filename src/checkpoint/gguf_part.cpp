#include "checkpoint/gguf_part.h"

#include <fmt/format.h>

#include "base/parse_number.h"

namespace limpid {

std::string GgufPart::name() const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", base, number, count);
}

// Compares with the name that the numbers give, so the signs between them need no check of their
// own.
std::optional<GgufPart> parse_gguf_part(std::string_view name) {
  constexpr std::string_view kEnd = "-00001-of-00003.gguf";
  if (name.size() < kEnd.size()) return std::nullopt;
  const std::string_view end = name.substr(name.size() - kEnd.size());
  const auto number = parse_number<uint32_t>(end.substr(1, 5));
  const auto count = parse_number<uint32_t>(end.substr(10, 5));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  GgufPart part{std::string(name.substr(0, name.size() - kEnd.size())), *number, *count};
  return part.name() == name ? std::optional(std::move(part)) : std::nullopt;
}

bool is_gguf_of_model(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto part = parse_gguf_part(name);
  return name.ends_with(".gguf") && !name.starts_with("mmproj") && (!part || part->number == 1);
}

std::vector<std::string> all_gguf_parts(const std::string& name) {
  auto part = parse_gguf_part(name);
  if (!part) return {name};
  std::vector<std::string> names;
  for (part->number = 1; part->number <= part->count; ++part->number) names.push_back(part->name());
  return names;
}

}  // namespace limpid
