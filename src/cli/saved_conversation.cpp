#include "cli/saved_conversation.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/json_file.h"
#include "cli/answer.h"
#include "cli/output.h"

namespace limpid::cli {

std::vector<Message> read_conversation(const std::string& path) {
  const JsonFile file(path, read_text(path));
  std::vector<Message> messages;
  for (const JsonPlace& message : file.root().elements()) {
    messages.push_back({std::string(message["role"].string()),  //
                        std::string(message["content"].string())});
  }
  return messages;
}

// A slip such as "/save model.gguf" must not destroy the file, so only a conversation is replaced.
void write_conversation(const std::string& path, const std::vector<Message>& messages) {
  if (std::filesystem::exists(path)) {
    try {
      read_conversation(path);
    } catch (const FormatError&) {
      throw ArgumentError(
          fmt::format("{} exists and is not a conversation; choose another name", path));
    }
  }
  auto json = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    json.push_back({{"role", message.role}, {"content", message.content}});
  }
  AtomicFile file(path);
  file.write(dump_json(json, 1) + "\n");
  file.commit();
}

}  // namespace limpid::cli
