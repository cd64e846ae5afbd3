#include "layouts/chat_templates.h"

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_file.h"
#include "base/mapped_file.h"
#include "checkpoint/byte_reader.h"

namespace limpid {
namespace {

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

void set_chat_templates(
    const std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>>& files,
    Metadata& canonical) {
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const auto file = files.find(name);
    if (file != files.end()) read_template_entry(*file->second, canonical);
  }
  const auto file = files.find("chat_template.jinja");
  if (file == files.end()) return;
  const std::string_view source = bounded_text(*file->second);
  if (!is_clean_utf8(source)) throw_format_error(file->second->path(), "file", "is not UTF-8");
  set_template("default", source, canonical);
}

}  // namespace limpid
