// HTML pages from templates, with the interpreter that renders chat templates.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace limpid {

// What the <head> of a page says.
struct PageHead {
  std::string style = {};        // beside page_colors.css
  std::string script = {};       // the only one that may run; empty: none
  bool asks_its_server = false;  // for more data
};

// The beginning of the <head> of every page: how it is read, its colours, and a content security
// policy, by which it loads nothing and runs no script but its own, which is named by its digest
// (W3C, Content Security Policy Level 3).
std::string page_head(const PageHead& head);

// Renders a page of this program. Only the literal text of the template and the values of `markup`
// (a dict, the template's variable of that name) are markup; among them are `head`, which is the
// page_head, and `script`, which is page_script.js and head.script. `values` is an object with one
// variable per key. Its text is always escaped, whatever the template does with it, because the
// interpreter knows the origin of each byte (traced_text.h). Throws Error with the place for a
// template that cannot be rendered.
std::string render_page(std::string_view source, const nlohmann::ordered_json& values,
                        std::map<std::string, std::string> markup, PageHead head = {});

// JSON for the inside of a <script> element. Bytes that are not UTF-8 become U+FFFD.
std::string script_json(const nlohmann::ordered_json& data);

}  // namespace limpid
