// `limpid serve`: a model over HTTP.
//
// The order of a start. A problem in any step is reported in one line:
//
//   read the headers    a wrong name or a damaged file shows at once
//   listen              a port that is taken shows before minutes are spent on loading
//   print the address   a script can wait for the first line
//   load the model      if there is only one; of several, each is loaded when it is asked for
//   ready
//
// The order of an end: SIGTERM or Ctrl-C makes the API refuse new requests, running answers get
// --drain-time to finish, then they get an error.
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/paths.h"
#include "base/system_limits.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/error_words.h"
#include "cli/sampler_settings.h"
#include "cli/serve_flags.h"
#include "cli/serve_models.h"
#include "cli/signals.h"
#include "generate/engine.h"
#include "layouts/lora_adapter.h"
#include "server/api.h"
#include "server/built_in_templates.h"
#include "server/http_text.h"

namespace limpid::cli {
namespace {

// "a,b" are two keys. An empty key, such as that of a variable that is not set, would leave the
// server open to all.
ApiKeys read_keys(const ServeFlags& values) {
  ApiKeys keys;
  for (const std::string& list : values.keys) {
    const std::vector<std::string> parts = split_list(list);
    LIMPID_CHECK(ArgumentError, !parts.empty(), "--api-key is empty: give a key, or leave it out");
    for (const std::string& key : parts) keys.add(key);
  }
  if (!values.key_file.empty()) keys.add_file(values.key_file);
  return keys;
}

std::string chat_template_source(const ServeFlags& values) {
  if (!values.template_file.empty()) return read_text(values.template_file);
  const std::string_view built_in = built_in_template(values.chat_template);
  if (!built_in.empty()) return std::string(built_in);
  LIMPID_CHECK(ArgumentError,
               values.chat_template.find_first_of("{ \n") != std::string::npos ||
                   values.chat_template.empty(),
               "--chat-template {}: give {}, or the text of a Jinja template", values.chat_template,
               built_in_template_names());
  return values.chat_template;
}

int64_t n_parallel(const ServeFlags& values) {
  return values.n_parallel > 0 ? values.n_parallel : 32;
}

// As in llama-server, -np divides a context that -c gives, unless --kv-unified is given: a user who
// gives both has counted the memory. 0: the model's context.
int64_t n_ctx_of_an_answer(const ServeFlags& values) {
  const int64_t n_ctx = values.model.options.n_ctx;
  if (n_ctx <= 0 || values.n_parallel < 0 || values.is_unified) return 0;
  LIMPID_CHECK(ArgumentError, n_ctx >= values.n_parallel,
               "-c {} leaves no token for each of -np {} answers", n_ctx, values.n_parallel);
  return n_ctx / values.n_parallel;
}

// An upper bound: the system provides memory only for the parts of the cache that are used. All
// loaded models share it.
int64_t cache_positions(const ServeFlags& values, const MemoryPlan& plan, size_t n_models) {
  if (values.service.n_positions > 0) return values.service.n_positions;
  int64_t n_fit = std::numeric_limits<int64_t>::max();  // on each device
  const auto fit = [&](uint64_t available, uint64_t weights, uint64_t kv_cache) {
    if (available == 0) return;
    const auto bytes_each = std::max<uint64_t>(1, kv_cache / static_cast<uint64_t>(plan.n_ctx));
    const uint64_t free = available - std::min(available, weights);
    n_fit = std::min(n_fit, static_cast<int64_t>(free / 2 / n_models / bytes_each));
  };
  for (const DevicePlan& part : plan.devices) fit(part.available, part.weights, part.kv_cache);
  if (plan.shares_memory) fit(plan.available, plan.weights_packed, plan.kv_cache);
  const int64_t n_each = n_ctx_of_an_answer(values);
  const int64_t n_useful = (n_each > 0 ? n_each : plan.n_ctx) * n_parallel(values);
  return std::max(plan.n_ctx, plan.available == 0 ? plan.n_ctx : std::min(n_useful, n_fit));
}

// The scales of --lora. The model itself is opened with scales of 1, so that a request can choose
// its own.
std::vector<ServedAdapter> take_scales(std::vector<std::string>& lora, bool are_off) {
  std::vector<ServedAdapter> adapters;
  for (std::string& text : lora) {
    const LoraSource source = read_lora_source(text);
    adapters.push_back({source.path, are_off ? 0 : source.scale});
    text = source.path + "=1";
  }
  return adapters;
}

// `n_models` may be loaded at a time. `chat_template`: chat_template_source(), which is read once,
// because the file may be a pipe.
std::unique_ptr<ServedModel> load(const ServeFlags& values, const OfferedModel& offered,
                                  const std::string& chat_template, size_t n_models) {
  ModelFlags flags = offered.flags;
  std::vector<ServedAdapter> adapters = take_scales(flags.options.lora, values.adapters_off);
  ProbeExecutor* probe = nullptr;  // which costs nothing until an answer is explained
  LanguageModel model = open_language_model(flags, chat_template, wrap_in(probe));
  GenerationOptions defaults = values.generation.options;
  const std::string changed =
      apply_recommended(values.generation.given_settings,
                        recommended_sampler(model, named_model_at(flags.model)), defaults.sampler);
  if (!changed.empty()) print_log(fmt::format("sampling as recommended: {}", changed));
  if (model.chat_template().empty())
    print_log("the model carries no chat template: ChatML is used");
  ServiceOptions service = values.service;
  service.n_parallel = n_parallel(values);
  service.n_ctx = n_ctx_of_an_answer(values);
  service.n_positions = cache_positions(values, model.memory_plan(), n_models);
  auto served = make_served_model(std::move(model), offered.name, std::move(defaults), service,
                                  std::move(adapters), chat_template.empty());
  served->thinks = values.thinks;
  served->pooling = values.pooling.empty() ? model_pooling(served->engine().checkpoint())
                                           : pooling_named(values.pooling).value();
  served->probe = probe;
  return served;
}

// Logs that a model was loaded while the server runs, or why it was not. run() reports the one that
// is loaded at the start.
std::unique_ptr<ServedModel> load_later(const ServeFlags& values, const OfferedModel& offered,
                                        const std::string& chat_template, size_t n_models) {
  const Stopwatch watch;
  try {
    auto model = load(values, offered, chat_template, n_models);
    print_log(fmt::format("{} is loaded, in {:.2f} s", offered.name, watch.seconds()));
    return model;
  } catch (const std::exception& error) {
    print_log(fmt::format("cannot load {}: {}", offered.name, in_program_words(error)));
    throw;
  }
}

// A folder may hold files that cannot be served. They are skipped, unless the folder has no other
// files.
std::vector<ShelvedModel> shelved_models(const ServeFlags& values) {
  const std::vector<OfferedModel> offered = offered_models(values.offer, values.model);
  LIMPID_CHECK(ArgumentError, offered.size() == 1 || values.model.options.lora.empty(),
               "--lora: an adapter belongs to one model, and there are {}", offered.size());
  const auto n_most =
      values.offer.n_most == 0 ? offered.size() : static_cast<size_t>(values.offer.n_most);
  const size_t n_models = std::min(offered.size(), n_most);
  const std::string chat_template = chat_template_source(values);
  // The plan on a card needs an executor, and so the first kernels. Others are compiled when a
  // model is loaded, which may be hours later if there are several.
  const std::string first_use = note_of_first_use(to_open_options(values.model));
  if (!first_use.empty()) print_log(first_use);
  std::vector<ShelvedModel> models;
  for (const OfferedModel& model : offered) {
    try {
      ModelCard card = read_card(model);
      if (!chat_template.empty()) card.chat_template = chat_template;
      const auto load_it = [&values, model, chat_template, n_models, is_later = offered.size() > 1,
                            note = offered.size() > 1 ? first_use : ""]() mutable {
        if (!note.empty()) print_log(std::exchange(note, ""));
        const auto load_now = std::exchange(is_later, true) ? load_later : load;
        return load_now(values, model, chat_template, n_models);
      };
      models.push_back({std::move(card), load_it});
    } catch (const Error& error) {
      if (offered.size() == 1) throw;
      print_log(fmt::format("{} is left out: {}", model.name, in_program_words(error)));
    }
  }
  LIMPID_CHECK(ArgumentError, !models.empty(), "none of the {} models can be served",
               offered.size());
  return models;
}

// Returns the model's name.
std::string load_first(ModelShelf& shelf) {
  std::promise<std::string> loaded;
  shelf.lend("", true, shelf.new_ticket(),
             [&loaded](const ModelShelf::Loan& loan, const std::exception_ptr& error) {
               error ? loaded.set_exception(error) : loaded.set_value(loan->name);
             });
  return loaded.get_future().get();
}

// A name or an origin that no client sends would allow nothing, and nobody would notice.
void make_normal(std::vector<std::string>& texts, const char* flag, const char* expected,
                 std::optional<std::string> (*normal)(std::string_view text)) {
  for (std::string& text : texts) {
    auto usual = normal(text);
    LIMPID_CHECK(ArgumentError, usual.has_value(), "{} {}: give {}", flag, text, expected);
    text = std::move(*usual);
  }
}

HttpOptions http_options(const ServeFlags& values) {
  HttpOptions options = values.http;
  make_normal(options.allowed_hosts, "--allowed-host", "HOST or HOST:PORT", normal_host);
  make_normal(options.allowed_origins, "--allowed-origin", "https://HOST or https://HOST:PORT",
              normal_origin);
  options.port = static_cast<uint16_t>(values.port);
  options.n_threads = values.n_threads_http > 0 ? static_cast<int>(values.n_threads_http) : 2;
  options.limits.write_time = std::chrono::seconds(values.timeout);
  options.log_failure = [](std::string_view path, std::string_view reason) {
    print_event(fmt::format("{} failed: {}", path, reason), "failure",
                {{"path", path}, {"reason", reason}});
  };
  if (values.log) {
    options.log = [](const HttpLogEntry& entry) {
      print_event(fmt::format("{} {} {} {} {:.3f} s {} bytes", entry.remote, entry.method,
                              entry.path, entry.status, entry.seconds, entry.n_bytes),
                  "request",
                  {{"remote", entry.remote},
                   {"method", entry.method},
                   {"path", entry.path},
                   {"status", entry.status},
                   {"seconds", entry.seconds},
                   {"bytes", entry.n_bytes}});
    };
  }
  return options;
}

void log_prompt(const std::string& model, const std::string& prompt) {
  print_event(fmt::format("prompt for {}: {}", model, dump_json(prompt)), "prompt",
              {{"model", model}, {"prompt", prompt}});
}

void check_flags(const ServeFlags& values) {
  LIMPID_CHECK(ArgumentError, values.n_parallel != 0,
               "-np 0: give 1 or more, or -1 for as many as the program chooses");
  LIMPID_CHECK(ArgumentError, values.api.slot_folder.empty() || is_folder(values.api.slot_folder),
               "--slot-save-path {}: the folder does not exist; create it first",
               values.api.slot_folder);
  n_ctx_of_an_answer(values);  // throws
}

void run(const ServeFlags& values) {
  share_free_memory();
  if (values.log_is_json) set_json_log();
  check_flags(values);
  std::vector<ShelvedModel> models = shelved_models(values);  // a wrong name shows at once
  ApiOptions options = values.api;
  options.keys = read_keys(values);
  options.loads_models = values.offer.autoload || models.size() == 1;
  options.verbose = values.model.verbose;
  options.n_parallel = n_parallel(values);
  options.version = LIMPID_VERSION;
  if (values.logs_prompts) options.log_prompt = log_prompt;
  const std::vector<std::string> hosts = split_list(values.http.host);
  const bool is_open = options.keys.empty() && !std::ranges::all_of(hosts, is_loopback);
  Api api(std::move(options),
          shelf_limits(values.offer, models, values.service.n_queued, values.sleep_idle_seconds));
  std::string names;
  for (ShelvedModel& model : models) {
    names += (names.empty() ? "" : ", ") + model.card.name;
    api.shelf().add(std::move(model));
  }
  HttpServer serving(http_options(values),
                     [&api](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
                       api.handle(std::move(request), reply);
                     });
  for (const std::string& host : hosts) {
    const bool is_v6 = host.find(':') != std::string::npos;
    write_out(fmt::format(fmt::runtime(is_v6 ? "{}://[{}]:{}\n" : "{}://{}:{}\n"),
                          values.http.tls_key.empty() ? "http" : "https", host, serving.port()));
  }
  flush_out();
  if (is_open) print_log("anyone who reaches this machine may use the model: set --api-key-file");
  const std::string first = models.size() == 1 ? load_first(api.shelf()) : "";
  const SignalPipe signals;
  // Until now, a signal has ended the program at once.
  const InterruptGuard guard({}, OnSigterm::kInterrupt);
  api.set_ready();
  if (models.size() > 1)
    print_log(fmt::format("a model is loaded when it is asked for: {}", names));
  print_log(fmt::format("{} is ready", first.empty() ? "the server" : first));
  while (signals.next() != 'i') {
  }
  api.drain();
  print_log("finishing the running requests");
  serving.stop(std::chrono::seconds(values.drain_time));
}

}  // namespace

Command serve_command() {
  return {"answer over HTTP, as OpenAI's API and others", "serve -m FILE [options]",
          "Serves a model to many clients at once: the APIs of OpenAI, Anthropic, Ollama and "
          "llama-server.\nThe first line of standard output is the server's URL; log lines go to "
          "standard error.\nSIGTERM or Ctrl-C finishes what runs, and exits with 0.",
          "limpid serve -m smollm2\n"
          "limpid serve -m smollm2 --host 0.0.0.0 --api-key-file keys.txt",
          bind<ServeFlags, declare_serve, run>};
}

}  // namespace limpid::cli
