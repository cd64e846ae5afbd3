#include "layouts/chat_templates.h"

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_file.h"
#include "base/mapped_file.h"
#include "base/model_folder.h"
#include "base/printable.h"

namespace limpid {
namespace {

constexpr std::string_view kJinja = ".jinja";
constexpr uint64_t kLongestTemplate = uint64_t{16} << 20;

std::string_view bounded_text(const MappedFile& file) {
  if (file.size() > kLongestTemplate) throw_format_error(file.path(), "file", "is too large");
  return text_of(file);
}

// The template named "default" is the template without a name.
void set_template(std::string_view name, std::string_view source, Metadata& canonical) {
  std::string key = "tokenizer.chat_template";
  if (name != "default") key += "." + std::string(name);
  canonical.set(std::move(key), {std::string(source), "string"});
}

// The text of a file that is one template.
std::string_view template_text(const MappedFile& file) {
  const std::string_view source = bounded_text(file);
  if (!is_clean_utf8(source)) throw_format_error(file.path(), "file", "is not UTF-8");
  return source;
}

// Reads the key `chat_template`: a string, or a list of {"name": …, "template": …}.
void read_template_entry(const MappedFile& file, Metadata& canonical) {
  const JsonFile json(file.path(), bounded_text(file));
  refuse_duplicate_keys(json);
  const auto entry = json.root().find("chat_template");
  if (!entry) return;
  if (entry->is_string()) return set_template("default", entry->string(), canonical);
  for (const JsonPlace& item : entry->elements()) {
    const std::string_view name = item["name"].string();
    if (name.empty() || !is_clean_utf8(name)) item["name"].fail("is not a name");
    set_template(name, item["template"].string(), canonical);
  }
}

}  // namespace

void set_chat_templates(const NamedFiles& files, Metadata& canonical) {
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const auto file = files.find(name);
    if (file != files.end()) read_template_entry(*file->second, canonical);
  }
  const auto file = files.find("chat_template.jinja");
  if (file != files.end()) set_template("default", template_text(*file->second), canonical);
  for (const auto& [name, named] : files) {
    if (!is_named_template(name)) continue;
    std::string_view stem = std::string_view(name).substr(kNamedTemplates.size());
    stem.remove_suffix(kJinja.size());
    if (stem.empty() || !is_clean_utf8(stem))
      throw_format_error(named->path(), "file", "has a name that is not one of a template");
    set_template(stem, template_text(*named), canonical);
  }
}

bool is_named_template(std::string_view attachment) {
  return attachment.starts_with(kNamedTemplates) && attachment.ends_with(kJinja);
}

}  // namespace limpid
