#include "train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/utf8.h"
#include "train/bpe/count_words.h"
#include "train/dialogue_tokens.h"
#include "train/token_cache.h"

namespace limpid {

namespace training {
std::string_view shakespeare_text();  // embedded
}

namespace {

using Json = nlohmann::ordered_json;

// A file, or the text that the program carries.
DataText open_data(const std::string& path) {
  if (path == kBuiltInText) return {false, training::shakespeare_text()};
  const auto file = MappedFile::open(path);
  std::string_view text = text_of(*file);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  LIMPID_CHECK(ArgumentError, !text.empty(), "{} is empty", path);
  const size_t zero = text.find('\0');
  LIMPID_CHECK(ArgumentError, zero == std::string_view::npos,
               "{} is not text: it has a zero byte at {}", path, zero);
  return {is_json_lines(path), text, file};
}

// The documents of a text: what lies between the lines <|endoftext|>, as files of many stories have
// them. White space beside such a line belongs to no document.
std::vector<std::string_view> documents_of(std::string_view text) {
  constexpr std::string_view kSeparator = "<|endoftext|>";
  std::vector<std::string_view> documents;
  bool follows_another = false;
  for (size_t end = 0; end != text.npos; follows_another = true) {
    end = text.find(kSeparator);
    std::string_view document = text.substr(0, end);
    if (follows_another) document = trimmed_left(document);
    if (end != text.npos) {
      document = trimmed_right(document);
      text.remove_prefix(end + kSeparator.size());
    }
    if (!document.empty()) documents.push_back(document);
  }
  return documents;
}

// Calls body(object, fail) for each line that is not empty. `number` is that of the line before the
// first one.
template <class Body>
void for_each_object(const std::string& path, std::string_view text, int64_t number, Body&& body) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++number;
    if (trimmed(line).empty()) continue;
    const auto fail = [&](const std::string& problem) {
      throw FormatError(path, FormatError::kNoOffset, fmt::format("line {}", number), problem);
    };
    const Json object = parse_json(line, fmt::format("{}: line {}", path, number));
    if (!object.is_object()) fail("is not a JSON object");
    body(object, fail);
  }
}

// The `text` of a line, or null.
const std::string* text_in(const Json& object) {
  const auto found = object.find("text");
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

// The `messages` of a line without a `text`. Calls fail(problem) if they are not what they must be.
template <class Fail>
const Json& messages_in(const Json& object, const Fail& fail) {
  const auto messages = object.find("messages");
  const auto is_message = [](const Json& message) {
    return message.is_object() && message.contains("role") && message["role"].is_string();
  };
  if (messages == object.end() || !messages->is_array() || messages->empty() ||
      !std::ranges::all_of(*messages, is_message)) {
    fail("needs a `text`, or `messages`: a list of objects, each with a `role`");
  }
  return *messages;
}

// What one thread tokenizes at a time: some lines, some documents, or a part of one.
struct Piece {
  const std::string* path;
  std::string_view text;
  bool is_json_lines = false;
  int64_t n_lines_before = 0;
  DocumentPart part{};
};

constexpr size_t kPieceBytes = 1 << 20;

// Whether a text may be divided at ends of words, because no token crosses such a place. NFC and
// user-defined tokens may look across an end of a word, and SentencePiece has no words.
bool can_divide(const TokenizerSpec& spec) {
  return spec.kind == TokenizerKind::kByteLevelBpe && spec.splits.empty() && !spec.normalize_nfc &&
         !spec.meta_slices &&
         std::ranges::find(spec.types, TokenType::kUserDefined) == spec.types.end();
}

void add_lines(const std::string& path, std::string_view text, std::vector<Piece>& pieces) {
  int64_t n_lines = 0;
  for (const std::string_view part :
       bpe::divide_text(text, {.each_line = true, .part_bytes = kPieceBytes})) {
    pieces.push_back({&path, part, true, n_lines});
    n_lines += std::ranges::count(part, '\n');
  }
}

void add_documents(const std::string& path, std::string_view text, const Tokenizer& tokenizer,
                   std::vector<Piece>& pieces) {
  const bool divides = can_divide(tokenizer.spec());
  std::string_view several;  // whole documents, one after another
  const auto add_several = [&] {
    if (!several.empty()) pieces.push_back({&path, std::exchange(several, {})});
  };
  for (const std::string_view document : documents_of(text)) {
    if (document.size() > kPieceBytes && divides) {
      add_several();
      const auto parts = bpe::divide_text(
          document, {.pre_tokenizer = tokenizer.spec().pre_tokenizer, .part_bytes = kPieceBytes});
      for (const std::string_view part : parts) {
        const DocumentPart which{part.data() == parts.front().data(),
                                 part.data() == parts.back().data()};
        pieces.push_back({&path, part, false, 0, which});
      }
      continue;
    }
    const char* begin = several.empty() ? document.data() : several.data();
    several = {begin, document.data() + document.size()};
    if (several.size() >= kPieceBytes) add_several();
  }
  add_several();
}

void append_json_lines(TokenDocuments& documents, const Piece& piece, const Tokenizer& tokenizer,
                       const ChatTemplate* chat_template) {
  const std::string& path = *piece.path;
  for_each_object(
      path, piece.text, piece.n_lines_before, [&](const Json& object, const auto& fail) {
        // Tokenizer and template do not know the line.
        const auto on_this_line = [&](const auto& append_it) {
          try {
            append_it();
          } catch (const Error& error) {
            fail(error.what());
          }
        };
        if (const std::string* text = text_in(object))
          return on_this_line([&] { append_document(documents, *text, tokenizer); });
        const Json& messages = messages_in(object, fail);
        LIMPID_CHECK(UnsupportedError, chat_template != nullptr,
                     "{} has dialogues, and the model has no chat template to render them: train a "
                     "model that chats, or give each dialogue as a `text`",
                     path);
        const Json tools = object.value("tools", Json());
        if (!tools.is_null() && !tools.is_array()) fail("`tools` must be a list");
        on_this_line(
            [&] { append_dialogue(documents, messages, tools, tokenizer, *chat_template); });
      });
}

// The tokenizer refuses texts of 2 GiB, and its split expressions may take too many steps. It does
// not know the file.
void append_text(TokenDocuments& documents, const Piece& piece, const Tokenizer& tokenizer) {
  try {
    for (const std::string_view document : documents_of(piece.text))
      append_document(documents, document, tokenizer, piece.part);
  } catch (const Error& error) {
    throw ArgumentError(fmt::format("{}: {}", *piece.path, error.what()));
  }
}

// Appends the documents of a part of the data to those of earlier parts.
void append(TokenDocuments& all, const TokenDocuments& part) {
  if (!part.learned.empty()) all.learned.resize(all.ids.size(), 1);
  for (const int64_t begin : part.begins) all.begins.push_back(all.n_tokens() + begin);
  all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
  all.learned.insert(all.learned.end(), part.learned.begin(), part.learned.end());
}

TokenDocuments tokenize(std::span<const Piece> pieces, const Tokenizer& tokenizer,
                        const ChatTemplate* chat_template, const DataOptions& options,
                        ThreadPool& pool) {
  std::vector<std::string_view> texts;
  for (const Piece& piece : pieces) texts.push_back(piece.text);
  std::vector<TokenDocuments> parts(pieces.size());
  for_each_piece(texts, pool, "tokenizing", options.progress, [&](size_t i, int /*thread*/) {
    if (pieces[i].is_json_lines) {
      append_json_lines(parts[i], pieces[i], tokenizer, chat_template);
    } else {
      append_text(parts[i], pieces[i], tokenizer);
    }
  });
  TokenDocuments all;
  size_t n_ids = 0;
  for (const TokenDocuments& part : parts) n_ids += part.ids.size();
  all.ids.reserve(n_ids);  // to grow it would copy it, and need memory for both copies
  for (TokenDocuments& part : parts) append(all, std::exchange(part, {}));
  if (!all.learned.empty()) all.learned.resize(all.ids.size(), 1);
  return all;
}

}  // namespace

bool is_json_lines(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jsonl" || extension == ".ndjson";
}

void for_each_text(const std::string& path, const std::function<void(std::string_view)>& body) {
  const DataText data = open_data(path);
  if (!data.is_json_lines) {
    for (const std::string_view document : documents_of(data.bytes)) body(document);
    return;
  }
  for_each_object(path, data.bytes, 0, [&](const Json& object, const auto& fail) {
    if (const std::string* text = text_in(object)) return body(*text);
    for (const Json& message : messages_in(object, fail)) {
      const auto content = message.find("content");
      if (content != message.end() && content->is_string())
        body(content->get_ref<const std::string&>());
    }
  });
}

std::string read_texts(std::span<const std::string> paths) {
  std::string all;
  for (const std::string& path : paths)
    for_each_text(path, [&](std::string_view text) {
      LIMPID_CHECK(ArgumentError, unicode::is_valid(text), "{} is not UTF-8", path);
      all += text;
    });
  return all;
}

DocumentView read_documents(std::span<const std::string> paths, const Tokenizer& tokenizer,
                            const ChatTemplate* chat_template, const DataOptions& options) {
  ThreadPool pool(options.n_threads);
  std::vector<DataText> texts;
  for (const std::string& path : paths) texts.push_back(open_data(path));
  std::string key;
  std::string cache;
  if (!options.cache_folder.empty()) {
    key = token_cache_key(texts, tokenizer.spec(), chat_template ? chat_template->source() : "",
                          pool);
    cache = fmt::format("{}/{:.32}.tokens", options.cache_folder, key);
    if (auto documents = read_token_cache(cache, key, pool)) return *documents;
  }
  std::vector<Piece> pieces;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (texts[i].is_json_lines) {
      add_lines(paths[i], texts[i].bytes, pieces);
    } else {
      add_documents(paths[i], texts[i].bytes, tokenizer, pieces);
    }
  }
  TokenDocuments documents = tokenize(pieces, tokenizer, chat_template, options, pool);
  if (cache.empty()) return documents;
  try {
    write_token_cache(cache, key, documents, pool);
  } catch (const ResourceError&) {
    return documents;
  }
  // The system can reclaim the memory of the map at any time.
  if (auto mapped = read_token_cache(cache, key, pool)) return *mapped;
  return documents;
}

}  // namespace limpid
