#include "train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "generate/chat_prompt.h"

namespace limpid {

namespace training {
std::string_view shakespeare_text();  // embedded
}

namespace {

using Json = nlohmann::ordered_json;

// A file, or the text that the program carries.
struct DataFile {
  std::shared_ptr<const MappedFile> file;
  std::string_view text;
};

DataFile open_data(const std::string& path) {
  DataFile data;
  if (path == kBuiltInText) {
    data.text = training::shakespeare_text();
    return data;
  }
  data.file = MappedFile::open(path);
  data.text = {reinterpret_cast<const char*>(data.file->bytes().data()), data.file->size()};
  LIMPID_CHECK(ArgumentError, !data.text.empty(), "{} is empty", path);
  const size_t zero = data.text.find('\0');
  LIMPID_CHECK(ArgumentError, zero == std::string_view::npos,
               "{} is not text: it has a zero byte at {}", path, zero);
  return data;
}

bool is_json_lines(const std::string& path) { return path.ends_with(".jsonl"); }

// Calls body(object, number of the line) for each line that is not empty.
template <class Body>
void for_each_object(const std::string& path, std::string_view text, Body&& body) {
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto fail = [&](const std::string& problem) {
      throw FormatError(path, FormatError::kNoOffset, fmt::format("line {}", number), problem);
    };
    const Json object = parse_json(line, fmt::format("{}, line {}", path, number));
    if (!object.is_object()) fail("is not a JSON object");
    body(object, fail);
  }
}

size_t n_equal(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// An answer is what follows the prompt of the messages before it, up to where the rendered dialogue
// goes on differently than it would if the answer were its end.
void append_dialogue(TokenDocuments& documents, const Json& messages, const Tokenizer& tokenizer,
                     const ChatTemplate& chat_template) {
  TemplateInputs inputs;
  const auto ids_of = [&](size_t n_messages, bool add_generation_prompt) {
    inputs.messages = Json::array();
    for (size_t i = 0; i < n_messages; ++i) inputs.messages.push_back(messages[i]);
    inputs.add_generation_prompt = add_generation_prompt;
    return encode_chat(tokenizer, chat_template, inputs);
  };
  const std::vector<TokenId> ids = ids_of(messages.size(), false);
  std::vector<uint8_t> learned(ids.size(), 0);
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].value("role", "") != "assistant") continue;
    const size_t begin = n_equal(ids, ids_of(i, true));
    const size_t end = n_equal(ids, ids_of(i + 1, false));
    if (begin < end) std::fill(learned.begin() + begin, learned.begin() + end, 1);
  }
  documents.begins.push_back(documents.n_tokens());
  documents.learned.resize(documents.ids.size(), 1);
  documents.ids.insert(documents.ids.end(), ids.begin(), ids.end());
  documents.learned.insert(documents.learned.end(), learned.begin(), learned.end());
}

void append_json_lines(TokenDocuments& documents, const std::string& path, std::string_view text,
                       const Tokenizer& tokenizer, const ChatTemplate* chat_template) {
  for_each_object(path, text, [&](const Json& object, const auto& fail) {
    if (const auto found = object.find("text"); found != object.end() && found->is_string()) {
      append_document(documents, found->get_ref<const std::string&>(), tokenizer);
      return;
    }
    const auto messages = object.find("messages");
    const auto is_message = [](const Json& message) {
      return message.is_object() && message.contains("role") && message["role"].is_string();
    };
    if (messages == object.end() || !messages->is_array() || messages->empty() ||
        !std::ranges::all_of(*messages, is_message)) {
      fail("has neither a `text` nor `messages`, each an object with a role");
    }
    LIMPID_CHECK(UnsupportedError, chat_template != nullptr,
                 "{} has dialogues, and the model has no chat template to render them", path);
    append_dialogue(documents, *messages, tokenizer, *chat_template);
  });
}

}  // namespace

std::string read_texts(std::span<const std::string> paths) {
  std::string all;
  for (const std::string& path : paths) {
    const DataFile data = open_data(path);
    if (!is_json_lines(path)) {
      all += data.text;
      continue;
    }
    for_each_object(path, data.text, [&](const Json& object, const auto& fail) {
      const auto found = object.find("text");
      if (found == object.end() || !found->is_string())
        fail("has no `text`, of which a tokenizer of characters is made");
      all += found->get_ref<const std::string&>();
    });
  }
  return all;
}

TokenDocuments read_documents(std::span<const std::string> paths, const Tokenizer& tokenizer,
                              const ChatTemplate* chat_template) {
  TokenDocuments documents;
  for (const std::string& path : paths) {
    const DataFile data = open_data(path);
    if (is_json_lines(path)) {
      append_json_lines(documents, path, data.text, tokenizer, chat_template);
    } else {
      append_document(documents, data.text, tokenizer);
    }
  }
  if (!documents.learned.empty()) documents.learned.resize(documents.ids.size(), 1);
  return documents;
}

}  // namespace limpid
