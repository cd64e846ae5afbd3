// Clients of a server with OpenAI's API, in one thread: bench/compare_server.py.
//
//   server_load --port N --prompts FILE [--clients N] [-n N] [--seconds S | --requests N] [--plain]
//   server_load --port N --prompts FILE --beside FILE
//
// Each client asks for one answer of -n tokens after another, over one connection: greedy, streamed
// (unless --plain), with the end token banned. Each request takes the next line of the file as its
// prompt. With --beside the clients' answers run, then one more request with that file's first line
// comes in, and the clients stop when it is answered with one token.
//
// It runs for S seconds at least, and until there are two answers for each client: the first wave
// of answers alone would have no time between its ends.
//
// Prints one JSON object. Tokens per second are counted from the end of the first answer to the end
// of the last one: clients whose answers end together are counted for whole rounds of prompts and
// answers, and not for a part of one that depends on where the time is up. Times are of this
// process: milliseconds, as p50, p95 and max. It uses nothing of the engine, and little of the
// processor, which it shares with the server.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

struct Settings {
  uint16_t port = 0;
  std::string prompts, beside;
  size_t n_clients = 1;
  int n_tokens = 64;
  double seconds = 0;      // 0: until n_requests are answered
  size_t n_requests = 16;  // of each client
  bool plain = false, fresh = false;
};

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

Json summary(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {{"p50", at(0.5)}, {"p95", at(0.95)}, {"max", values.back()}};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) throw std::runtime_error(path + ": cannot be read, or has no prompt");
  return lines;
}

// What one answer came to.
struct Answer {
  Clock::time_point asked, first, last, ended;
  size_t n_events = 0;  // with text
  int n_tokens = 0;     // as the server counts
  double engine_ms = 0;
};

// What all connections have seen.
struct Seen {
  struct Gap {
    Clock::time_point from, to;
  };
  std::vector<Gap> gaps;  // between two events with text of an answer
  double n_events = 0;    // with text
  double n_bytes = 0;
};

// One connection.
class Client {
 public:
  Client(uint16_t port, Seen& seen) : socket_(socket(AF_INET, SOCK_STREAM, 0)), seen_(seen) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  int socket_number() const { return socket_; }

  void ask(const std::string& prompt, int n_tokens, bool stream) {
    Json body = {{"messages", {{{"role", "user"}, {"content", prompt}}}},
                 {"max_tokens", n_tokens},
                 {"temperature", 0},
                 {"ignore_eos", true},
                 {"stream", stream}};
    if (stream) body["stream_options"] = {{"include_usage", true}};
    const std::string text = body.dump();
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nContent-Length: " +
        std::to_string(text.size()) + "\r\n\r\n" + text;
    answer_ = {};
    answer_.asked = Clock::now();
    for (size_t n_sent = 0; n_sent < request.size();) {
      const ssize_t n = write(socket_, request.data() + n_sent, request.size() - n_sent);
      if (n <= 0) throw std::runtime_error("the server closed the connection");
      n_sent += static_cast<size_t>(n);
    }
  }

  // Reads what has come. Gives the answer when it is complete.
  std::optional<Answer> read_some() {
    char buffer[65536];
    const ssize_t n = read(socket_, buffer, sizeof buffer);
    if (n <= 0) throw std::runtime_error("the server closed the connection");
    seen_.n_bytes += static_cast<double>(n);
    input_.append(buffer, static_cast<size_t>(n));
    const auto now = Clock::now();
    bool is_complete = false;
    size_t begin = 0;
    for (size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1)
      is_complete |= take_line(std::string_view(input_).substr(begin, end - begin), now);
    input_.erase(0, begin);
    if (n_body_ > 0 && input_.size() >= n_body_) {
      take_plain(input_);
      input_.clear();
      n_body_ = 0;
      is_complete = true;
    }
    if (!is_complete) return std::nullopt;
    answer_.ended = now;
    return answer_;
  }

  size_t n_events() const { return answer_.n_events; }

 private:
  // Status line, header fields, chunk sizes and events: all are lines, and JSON has no line break.
  // Gives whether the answer is complete.
  bool take_line(std::string_view line, Clock::time_point now) {
    if (line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.1 200"))
      throw std::runtime_error("the server answered " + std::string(line));
    constexpr std::string_view kLength = "Content-Length: ";
    if (line.starts_with(kLength)) n_body_ = std::stoul(std::string(line.substr(kLength.size())));
    if (line == "0\r") return true;
    if (!line.starts_with("data: {")) return false;
    if (line.find("\"content\":\"") == std::string_view::npos) {
      constexpr std::string_view kCount = "\"completion_tokens\":";
      const size_t count = line.find(kCount);
      if (count != std::string_view::npos)
        answer_.n_tokens = std::stoi(std::string(line.substr(count + kCount.size(), 10)));
      return false;
    }
    ++seen_.n_events;
    if (answer_.n_events++ == 0) {
      answer_.first = now;
    } else {
      seen_.gaps.push_back({answer_.last, now});
    }
    answer_.last = now;
    return false;
  }

  void take_plain(const std::string& body) {
    const Json json = Json::parse(body);
    const Json& timings = json.at("timings");
    answer_.n_tokens = json.at("usage").at("completion_tokens");
    answer_.engine_ms = double{timings.at("prompt_ms")} + double{timings.at("predicted_ms")};
  }

  int socket_;
  std::string input_;
  size_t n_body_ = 0;  // bytes of an answer that is not a stream
  Answer answer_;
  Seen& seen_;
};

class Load {
 public:
  explicit Load(const Settings& settings)
      : settings_(settings), prompts_(lines_of(settings.prompts)), epoll_(epoll_create1(0)) {
    if (!settings_.beside.empty()) beside_ = lines_of(settings_.beside).front();
    for (size_t i = 0; i < settings_.n_clients; ++i) clients_.push_back(connect(i));
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { close(epoll_); }

  Json run() {
    start_ = Clock::now();
    for (size_t i = 0; i < clients_.size(); ++i) ask(i);
    while (!is_over()) {
      epoll_event events[64];
      const int n = epoll_wait(epoll_, events, 64, 100);
      for (int i = 0; i < n && !is_over(); ++i) take(events[i].data.u64);
      if (!beside_.empty() && clients_.size() == settings_.n_clients && all_run()) {
        clients_.push_back(connect(clients_.size()));
        clients_.back()->ask(beside_, 1, true);
      }
    }
    return report();
  }

 private:
  std::unique_ptr<Client> connect(size_t i) {
    auto client = std::make_unique<Client>(settings_.port, seen_);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, client->socket_number(), &event);
    return client;
  }

  void ask(size_t i) {
    if (n_asked_ == prompts_.size())
      throw std::runtime_error(settings_.prompts + ": has too few prompts for this load");
    clients_[i]->ask(prompts_[n_asked_++], settings_.n_tokens, !settings_.plain);
  }

  void take(size_t i) {
    const auto answer = clients_[i]->read_some();
    if (!answer) return;
    if (i == settings_.n_clients) {
      long_answer_ = *answer;
      return;
    }
    answers_.push_back(*answer);
    n_events_at_end_.push_back(seen_.n_events);
    const bool goes_on =
        settings_.seconds > 0 || n_asked_ < settings_.n_clients * settings_.n_requests;
    if (!goes_on) return;
    if (settings_.fresh) clients_[i] = connect(i);
    ask(i);
  }

  bool is_over() const {
    if (!beside_.empty()) return long_answer_.has_value();
    if (settings_.seconds > 0)
      return milliseconds(Clock::now() - start_) > 1000 * settings_.seconds &&
             answers_.size() >= 2 * settings_.n_clients;
    return answers_.size() == settings_.n_clients * settings_.n_requests;
  }

  // So that their usual time for a token is known.
  bool all_run() const {
    constexpr size_t kEnough = 60;
    return std::ranges::all_of(clients_, [](const auto& c) { return c->n_events() > kEnough; });
  }

  // Text events can be fewer than tokens, because a character may have several: those of complete
  // answers tell how many tokens an event has.
  Json report() const {
    const double seconds = milliseconds(Clock::now() - start_) / 1000;
    std::vector<double> first, whole, beyond, between;
    double n_tokens = 0, n_events = 0, tokens_per_second = 0;
    for (const Answer& answer : answers_) {
      if (answer.n_events > 0) first.push_back(milliseconds(answer.first - answer.asked));
      whole.push_back(milliseconds(answer.ended - answer.asked));
      beyond.push_back(whole.back() - answer.engine_ms);
      n_tokens += answer.n_tokens;
      n_events += static_cast<double>(answer.n_events);
    }
    for (const Seen::Gap& gap : seen_.gaps) between.push_back(milliseconds(gap.to - gap.from));
    if (answers_.size() > 1 && n_events > 0) {
      const double n_seen = n_events_at_end_.back() - n_events_at_end_.front();
      tokens_per_second = 1000 * n_seen * n_tokens / n_events /
                          milliseconds(answers_.back().ended - answers_.front().ended);
    }
    Json json = {{"tokens_per_second", tokens_per_second},
                 {"n_answers", answers_.size()},
                 {"first_token_ms", summary(first)},
                 {"between_tokens_ms", summary(between)},
                 {"answer_ms", summary(whole)},
                 {"bytes_per_second", seen_.n_bytes / seconds}};
    if (settings_.plain) json["beyond_engine_ms"] = summary(beyond);
    if (long_answer_) json["beside"] = beside_report();
    return json;
  }

  // Gaps before the long prompt, and those that lie in its time.
  Json beside_report() const {
    std::vector<double> usual, during;
    for (const Seen::Gap& gap : seen_.gaps) {
      if (gap.to < long_answer_->asked) usual.push_back(milliseconds(gap.to - gap.from));
      if (gap.from >= long_answer_->asked && gap.to <= long_answer_->ended)
        during.push_back(milliseconds(gap.to - gap.from));
    }
    return {{"usual_ms", summary(usual)},
            {"during_ms", summary(during)},
            {"long_prompt_ms", milliseconds(long_answer_->ended - long_answer_->asked)}};
  }

  const Settings settings_;
  const std::vector<std::string> prompts_;
  std::string beside_;
  int epoll_;
  std::vector<std::unique_ptr<Client>> clients_;  // with the one of the long prompt at the end
  size_t n_asked_ = 0;
  Clock::time_point start_;
  std::vector<Answer> answers_;
  std::vector<double> n_events_at_end_;  // of each answer: the events of all until then
  std::optional<Answer> long_answer_;
  Seen seen_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("clients of a server with OpenAI's API");
  app.add_option("--port", settings.port)->required();
  app.add_option("--prompts", settings.prompts, "a prompt in each line")->required();
  app.add_option("--beside", settings.beside, "a long prompt that comes in beside the others");
  app.add_option("--clients", settings.n_clients);
  app.add_option("-n", settings.n_tokens, "tokens of an answer");
  app.add_option("--seconds", settings.seconds, "how long to ask");
  app.add_option("--requests", settings.n_requests, "without --seconds: requests of each client");
  app.add_flag("--plain", settings.plain, "no streams");
  app.add_flag("--fresh", settings.fresh, "a new connection for each answer");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << Load(settings).run().dump() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "server_load: " << error.what() << "\n";
    return 1;
  }
}
