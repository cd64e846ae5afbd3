// Pages: what is data stays text.
#include "jinja/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "limpid/error.hpp"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

TEST(RenderPage, FillsATemplate) {
  const Json values{{"title", "a"}, {"rows", {{{"n", 1}}, {{"n", 2}}}}};
  EXPECT_EQ(render_page("<h1>{{ title }}</h1>{% for row in rows %}<p>{{ row.n }}</p>{% endfor %}",
                        values, {}),
            "<h1>a</h1><p>1</p><p>2</p>");
}

TEST(RenderPage, NamesTheTagThatIsMissing) {
  try {
    render_page("{% if a %}b", Json::object(), {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'endif' is missing"), std::string::npos);
  }
}

// Whatever the template does with the text: joined, cut, repeated, upper case, as JSON.
TEST(RenderPage, EscapesDataWhereverItEndsUp) {
  const Json values{{"text", "<script>\"x\"</script>"}, {"rows", {{{"<i>", "<u>"}}}}};
  for (const char* source :
       {"{{ text }}", "{{ '<p>' + text }}", "{{ text[:7] }}", "{{ text | upper }}",
        "{{ [text, text] | join('<br>') }}", "{{ text | tojson }}", "{{ rows }}",
        "{% set t %}<p>{{ text }}{% endset %}{{ t }}",
        "{% for row in rows %}{% for k, v in row.items() %}{{ k }}{{ v }}{% endfor %}{% endfor "
        "%}"}) {
    const std::string page = render_page(source, values, {});
    for (const char* markup : {"<script", "<SCRIPT", "<i>", "<u>", "\""})
      EXPECT_EQ(page.find(markup), std::string::npos) << source << " gives " << page;
    EXPECT_FALSE(page.empty());
  }
  EXPECT_EQ(render_page("{{ '<p>' + text[:8] }}", values, {}), "<p>&lt;script&gt;");
}

TEST(RenderPage, KeepsMarkup) {
  EXPECT_EQ(render_page("<div>{{ markup.a }}{{ markup[name] }}</div>", {{"name", "b"}},
                        {{"a", "<svg/>"}, {"b", "<br>"}}),
            "<div><svg/><br></div>");
}

TEST(PageHead, LetsOnlyItsOwnScriptRun) {
  const std::string alone = page_head({.style = "p { color: red }"});
  EXPECT_NE(alone.find("default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"),
            std::string::npos);
  EXPECT_NE(alone.find("--blue: #0072b2"), std::string::npos);
  EXPECT_NE(alone.find("p { color: red }</style>"), std::string::npos);
  // Of "abc" FIPS 180-2 gives ba7816bf…15ad.
  const std::string live = page_head({.script = "abc", .asks_its_server = true});
  EXPECT_NE(live.find("script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='; "
                      "connect-src 'self'\">"),
            std::string::npos);
}

TEST(RenderPage, SaysWhatIsWrongWithATemplate) {
  EXPECT_THROW(render_page("{% if %}", Json::object(), {}), Error);
  EXPECT_THROW(render_page("{{ 1 + 'a' }}", Json::object(), {}), Error);
}

}  // namespace
}  // namespace limpid
