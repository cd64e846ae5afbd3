#include "layouts/chat_templates.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

// The keys that files with these names and contents give.
Metadata templates_of(const Texts& texts) {
  const TempFolder folder;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files;
  int n = 0;
  for (const auto& [name, text] : texts)
    files[name] = MappedFile::open(folder.write(std::to_string(n++), text));
  Metadata keys;
  set_chat_templates(files, keys);
  return keys;
}

TEST(ChatTemplates, AreOneOrNamed) {
  const Metadata one = templates_of({{"tokenizer_config.json", R"({"chat_template": "A"})"}});
  EXPECT_EQ(one.string("tokenizer.chat_template"), "A");
  const Metadata named = templates_of({{"tokenizer_config.json", R"({"chat_template": [
    {"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]})"}});
  EXPECT_EQ(named.string("tokenizer.chat_template"), "A");
  EXPECT_EQ(named.string("tokenizer.chat_template.tool_use"), "B");
  EXPECT_TRUE(templates_of({{"tokenizer_config.json", "{}"}}).all().empty());
  EXPECT_TRUE(templates_of({{"config.json", R"({"chat_template": "A"})"}}).all().empty());
}

TEST(ChatTemplates, NewerFilesReplaceOlderOnes) {
  Texts files = {{"tokenizer_config.json", R"({"chat_template": [
    {"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]})"}};
  files.emplace_back("chat_template.json", R"({"chat_template": "C"})");
  EXPECT_EQ(templates_of(files).string("tokenizer.chat_template"), "C");
  files.emplace_back("chat_template.jinja", "D");
  EXPECT_EQ(templates_of(files).string("tokenizer.chat_template"), "D");
  EXPECT_EQ(templates_of(files).string("tokenizer.chat_template.tool_use"), "B");
}

TEST(ChatTemplates, NamedOnesMayHaveFiles) {
  const Texts files = {
      {"tokenizer_config.json",
       R"({"chat_template": [{"name": "default", "template": "A"}, {"name": "rag", "template": "B"}]})"},
      {"additional_chat_templates/rag.jinja", "C"},
      {"additional_chat_templates/tool_use.jinja", "D"}};
  const Metadata keys = templates_of(files);
  EXPECT_EQ(keys.string("tokenizer.chat_template"), "A");
  EXPECT_EQ(keys.string("tokenizer.chat_template.rag"), "C");
  EXPECT_EQ(keys.string("tokenizer.chat_template.tool_use"), "D");
  EXPECT_THROW(templates_of({{"additional_chat_templates/x.jinja", "\xff"}}), FormatError);
  EXPECT_THROW(templates_of({{"additional_chat_templates/.jinja", "A"}}), FormatError);
}

TEST(ChatTemplates, RefusesWhatIsNotOne) {
  for (const char* text : {R"({"chat_template": 3})", R"({"chat_template": [{"name": "x"}]})",
                           R"({"chat_template": [{"name": "", "template": "A"}]})"})
    EXPECT_THROW(templates_of({{"tokenizer_config.json", text}}), FormatError) << text;
  EXPECT_THROW(templates_of({{"chat_template.jinja", "\xff"}}), FormatError);
}

}  // namespace
}  // namespace limpid
