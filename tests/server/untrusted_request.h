// What must hold for any bytes that arrive as a request: the check of the header says the same
// however the network cuts the bytes, and the readers of the body throw nothing but an ApiError,
// whose answer is JSON. Shared by the fuzz target and the test that replays its corpus.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "server/http_header_check.h"
#include "server/http_text.h"
#include "server/request_settings.h"
#include "tokenizer/tokenizer.h"
#include "train/simple_tokenizers.h"

namespace limpid {

enum class RequestVerdict { kAccepted, kRefused, kBroken };

inline constexpr std::array<std::string_view, 2> kOriginsOfTests = {"https://example.org", "null"};

// Whole, and as if every byte came by itself.
inline bool is_cut_well(std::string_view input, HttpHeaderCheck::State whole, size_t n_bytes) {
  HttpHeaderCheck check(100);
  auto state = HttpHeaderCheck::State::kIncomplete;
  for (size_t n = 1; n <= input.size() && state == HttpHeaderCheck::State::kIncomplete; ++n)
    state = check.look(input.substr(0, n));
  return state == whole && check.n_bytes() == n_bytes;
}

// Each line of a header through the readers of targets and fields. What a client sends never ends
// a line of an answer.
inline bool reads_lines(std::string_view header) {
  HttpOptions options;
  options.allowed_hosts.assign(kOriginsOfTests.begin(), kOriginsOfTests.end());
  options.allowed_origins = options.allowed_hosts;
  for (size_t begin = 0; begin < header.size();) {
    const size_t end = std::min(header.find("\r\n", begin), header.size());
    const std::string_view line = header.substr(begin, end - begin);
    begin = end + 2;
    HttpRequest request;
    if (read_target(line, request) && !request.path.starts_with('/')) return false;
    query_value(line, "action");
    is_host_allowed(line, options);
    is_origin_allowed(line, "127.0.0.1:8080", options);
  }
  HttpAnswer answer;
  answer.headers = {{"Echo", std::string(header)}};
  const std::string text = header_text(answer, BodyLength::kKnown, false);
  return text.find("\r\n\r\n") == text.size() - 4;
}

// With a tokenizer, so that grammars and schemas are compiled, and biases and stop texts encoded.
inline void read_request(const Json& json, ApiName api) {
  static const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const JsonField body(json, "");
  RequestSettings settings;
  read_settings(body, api, tokenizer.get(), settings);
  const auto messages = body.find("messages");
  if (!messages) return;
  for (const JsonField& message : messages->elements()) {
    if (const auto content = message.find("content")) content_text(*content, "\n");
  }
}

inline RequestVerdict check_body(std::string_view text) {
  auto verdict = RequestVerdict::kRefused;
  for (const ApiName api : {kChatApi, kCompletionsApi, kLlamaApi, kMessagesApi, kResponsesApi,
                            kOllamaChatApi, kGenerateApi, kOllamaOptionsApi}) {
    try {
      read_request(parse_body(text), api);
      verdict = RequestVerdict::kAccepted;
    } catch (const ApiError& error) {
      for (const ApiStyle style : {ApiStyle::kOpenAi, ApiStyle::kAnthropic, ApiStyle::kOllama}) {
        if (!Json::accept(error_answer(style, error).body)) return RequestVerdict::kBroken;
      }
    }
  }
  return verdict;
}

// `input` is a header, if it has one, and a body. Anything but an ApiError passes through.
inline RequestVerdict check_untrusted_request(std::string_view input) {
  HttpHeaderCheck check(100);
  const HttpHeaderCheck::State state = check.look(input);
  if (!is_cut_well(input, state, check.n_bytes())) return RequestVerdict::kBroken;
  const bool has_header = state == HttpHeaderCheck::State::kComplete;
  const size_t n_header = has_header ? check.n_bytes() : 0;
  if (!reads_lines(has_header ? input.substr(0, n_header) : input)) return RequestVerdict::kBroken;
  return check_body(input.substr(n_header));
}

}  // namespace limpid
