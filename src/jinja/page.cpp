#include "jinja/page.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "base/svg.h"
#include "base/text.h"
#include "jinja/budget.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "jinja/traced_text.h"
#include "limpid/error.hpp"

namespace limpid {

namespace pages {
// page_colors.css and page_script.js, embedded
std::string_view page_colors_text();
std::string_view page_script_text();
}  // namespace pages

// The template is our own, so the limits only catch mistakes in it.
std::string render_page(std::string_view source, const nlohmann::ordered_json& values,
                        std::map<std::string, std::string> markup, PageHead head) {
  constexpr int64_t kMaxDepth = 100;
  constexpr int64_t kMaxSteps = 100'000'000;
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  if (!head.script.empty()) head.script.insert(0, pages::page_script_text());
  markup["script"] = head.script;
  markup["head"] = page_head(head);
  try {
    const std::string normalized = jinja::normalize_newlines(source);
    const jinja::Template parsed = jinja::parse(normalized, kMaxDepth);
    jinja::Budget budget(kMaxSteps, kMaxBytes, kMaxDepth);
    jinja::Interpreter interpreter(budget, kMaxBytes, std::nullopt);
    for (const auto& [name, value] : values.items())
      interpreter.define(name, jinja::from_json(budget, value));
    std::vector<std::pair<jinja::Value, jinja::Value>> pieces;
    pieces.reserve(markup.size());
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

// The element ends at "</script", wherever that is: "<" is written as its escape, which JSON allows
// in strings, the only place where one can be.
std::string script_json(const nlohmann::ordered_json& data) {
  return replaced(dump_json(data), "<", "\\u003c");
}

namespace {

// "sha256-…"
std::string script_digest(std::string_view script) {
  const std::string hex = sha256_of(script);
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return "sha256-" + base64(std::as_bytes(std::span(bytes)));
}

}  // namespace

std::string page_head(const PageHead& head) {
  std::string policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  if (!head.script.empty()) policy += "; script-src '" + script_digest(head.script) + "'";
  if (head.asks_its_server) policy += "; connect-src 'self'";
  return fmt::format(R"(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{}">
<link rel="icon" href="data:,">
<style>
{}{}</style>)",
                     policy, pages::page_colors_text(), head.style);
}

}  // namespace limpid
