// HTML pages from templates, with the interpreter that renders chat templates.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace limpid {

// Renders a page of this program. Only what the template itself spells out, and the values of
// `markup` (the template's variable of that name, a dict), are markup. Text of `values`, an object
// with a variable in each key, is escaped wherever it ends up, whatever the template does with it:
// the interpreter knows the origin of each byte (traced_text.h). Throws Error with the place for a
// template that cannot be rendered.
std::string render_page(std::string_view source, const nlohmann::ordered_json& values,
                        const std::map<std::string, std::string>& markup);

}  // namespace limpid
