#include "jinja/page.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/svg.h"
#include "jinja/budget.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "jinja/traced_text.h"
#include "limpid/error.hpp"

namespace limpid {

// The template is our own, so the limits only catch mistakes in it.
std::string render_page(std::string_view source, const nlohmann::ordered_json& values,
                        const std::map<std::string, std::string>& markup) {
  constexpr int64_t kMaxDepth = 100;
  constexpr int64_t kMaxSteps = 100'000'000;
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  try {
    const std::string normalized = jinja::normalize_newlines(source);
    const jinja::Template parsed = jinja::parse(normalized, kMaxDepth);
    jinja::Budget budget(kMaxSteps, kMaxBytes, kMaxDepth);
    jinja::Interpreter interpreter(budget, kMaxBytes, 0);
    for (const auto& [name, value] : values.items())
      interpreter.define(name, jinja::from_json(budget, value));
    std::vector<std::pair<jinja::Value, jinja::Value>> pieces;
    for (const auto& [name, text] : markup)
      pieces.emplace_back(jinja::make_literal_string(name), jinja::make_literal_string(text));
    interpreter.define("markup", jinja::make_dict(budget, std::move(pieces)));
    std::string page;
    jinja::TracedView(interpreter.render(parsed))
        .for_each_run([&](std::string_view bytes, jinja::Origin origin) {
          page += origin == jinja::Origin::kTemplate ? std::string(bytes) : escape_markup(bytes);
        });
    return page;
  } catch (const jinja::SyntaxFault& fault) {
    throw Error(fmt::format("{} (page, byte {})", fault.message, fault.at));
  } catch (const jinja::Fault& fault) {
    throw Error(fmt::format("{} (page)", fault.what()));
  }
}

}  // namespace limpid
