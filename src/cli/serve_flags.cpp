// Names are llama-server's where both have the option, so that its command lines work here. Options
// of llama-server that switch something that Limpid always does, or never needs, are accepted and
// ignored; their help says why.
#include "cli/serve_flags.h"

#include "server/built_in_templates.h"

namespace limpid::cli {
namespace {

void declare_http(CLI::App& app, ServeFlags& values) {
  group(app, "server");
  add_option(app, "--host ADDRESS", values.http.host,
             "address to listen on, or several between commas; 0.0.0.0 is all (127.0.0.1: this "
             "machine only)",
             "LLAMA_ARG_HOST");
  add_option(app, "--port N", values.port, {0, 65535}, "port; 0: any that is free (8080)",
             "LLAMA_ARG_PORT");
  add_option(app, "--api-key KEY", values.keys,
             "what clients must send; may be given several times, or several between commas",
             "LLAMA_API_KEY");
  add_option(app, "--api-key-file FILE", values.key_file, "a file with a key in each line",
             "LLAMA_ARG_API_KEY_FILE");
  add_option(app, "--allowed-host NAME", values.http.allowed_hosts,
             "a name under which browsers or a proxy reach the server; may be given several times");
  add_option(app, "--allowed-origin URL", values.http.allowed_origins,
             "a web site whose pages may use the server; may be given several times");
  add_option(app, "--ssl-key-file FILE", values.http.tls_key, "for https: the key, as PEM",
             "LLAMA_ARG_SSL_KEY_FILE");
  add_option(app, "--ssl-cert-file FILE", values.http.tls_certificate,
             "for https: the certificate, as PEM", "LLAMA_ARG_SSL_CERT_FILE");
  add_option(app, "-to,--timeout N", values.timeout, {1, 86400},
             "seconds that a client may leave an answer unread (600)", "LLAMA_ARG_TIMEOUT");
  add_option(app, "--drain-time N", values.drain_time, Range{0, 86400},
             "seconds that running answers have after SIGTERM or Ctrl-C (30)");
  add_option(app, "--threads-http N", values.n_threads_http, {-1, 256},
             "threads that read requests and write answers; -1: 2 (-1)", "LLAMA_ARG_THREADS_HTTP");
}

}  // namespace

void declare_serve(CLI::App& app, ServeFlags& values) {
  add_option(app, "-np,--parallel N", values.n_parallel, {-1, 4096},
             "answers at a time; with -c, each has an equal part of that context; -1: 32, and the "
             "context is not divided (-1)",
             "LLAMA_ARG_N_PARALLEL");
  add_switch(app, "-kvu,--kv-unified,!-no-kvu,!--no-kv-unified", values.is_unified,
             "with -c and -np: each answer may use all of the context (off)",
             "LLAMA_ARG_KV_UNIFIED");
  add_option(app, "--cache-tokens N", values.service.n_positions, Range{0, 1e9},
             "tokens in the KV cache, for all answers together; 0: as many as the answers can use, "
             "within half of the memory (0)");
  add_option(app, "--most-slowdown X", values.service.most_slowdown, Range{1, 1e6},
             "how many times longer a token may take while prompts come in (4)");
  add_option(app, "--queue N", values.service.n_queued, Range{0, 1e6},
             "requests that may wait; others are refused with 429 (256)");
  add_option(app, "--sleep-idle-seconds N", values.sleep_idle_seconds, Range{-1, 1e9},
             "unload a model that nobody has used for N seconds; the next request loads it again; "
             "-1: never (-1)");
  add_switch(app, "--lora-init-without-apply", values.adapters_off,
             "the adapters of --lora count only for requests that ask for them");
  add_option(app, "--chat-template TEXT", values.chat_template,
             "a Jinja template in place of the model's own, or the name of a format: " +
                 built_in_template_names(),
             "LLAMA_ARG_CHAT_TEMPLATE");
  add_option(app, "--chat-template-file FILE", values.template_file, "a file with such a template",
             "LLAMA_ARG_CHAT_TEMPLATE_FILE");
  precedes(app, "--chat-template", "--chat-template-file");
  add_list(
      app, "-rea,--reasoning MODE",
      [&](const std::string& text) -> std::string {
        values.thinks = text == "auto" || text == "-1";
        if (values.thinks || read_value(text, {}, values.thinks).empty()) return "";
        return fmt::format("'{}' is not on, off or auto", text);
      },
      "on, off or auto: the value of enable_thinking in templates; auto is on, and a request may "
      "say otherwise (auto)",
      "LLAMA_ARG_REASONING");
  add_one_of(app, "--pooling NAME", values.pooling, {"mean", "last", "cls"},
             "how the vectors of a text's tokens become its embedding, unless a request says "
             "otherwise: their mean, the last one, or the first one, cls (the model's own, or "
             "mean)",
             "LLAMA_ARG_POOLING");
  const auto ignore = [&](std::string_view names, const std::string& why, std::string_view env) {
    add_switch(app, names, values.ignored, "accepted because llama-server has it: " + why, env);
  };
  ignore("--jinja,!--no-jinja", "templates are always Jinja", "LLAMA_ARG_JINJA");
  add_option(
      app, "-cram,--cache-ram N", values.cache_ram, Range{-1, 1e9},
      "accepted because llama-server has it: prompts stay in the KV cache, see --cache-tokens",
      "LLAMA_ARG_CACHE_RAM");
  ignore("--cache-idle-slots,!--no-cache-idle-slots", "see --cache-tokens",
         "LLAMA_ARG_CACHE_IDLE_SLOTS");
  ignore("-bs,--backend-sampling", "tokens are always chosen on the CPU",
         "LLAMA_ARG_BACKEND_SAMPLING");
  ignore("-cb,--cont-batching,!-nocb,!--no-cont-batching", "batching is always continuous",
         "LLAMA_ARG_CONT_BATCHING");
  ignore("--embedding,--embeddings", "embeddings are always offered", "LLAMA_ARG_EMBEDDINGS");
  add_switch(app, "--slots,!--no-slots", values.api.offers_slots, "answer /slots (on)",
             "LLAMA_ARG_ENDPOINT_SLOTS");
  add_option(app, "--slot-save-path FOLDER", values.api.slot_folder,
             "where /slots saves what the KV cache holds of a slot's text",
             "LLAMA_ARG_SLOT_SAVE_PATH");
  add_switch(app, "--metrics,!--no-metrics", values.api.offers_metrics, "answer /metrics (off)",
             "LLAMA_ARG_ENDPOINT_METRICS");
  add_switch(app, "--ui,--webui,!--no-ui,!--no-webui", values.api.offers_page,
             "answer / with a page to chat on (on)", "LLAMA_ARG_UI");
  add_switch(app, "--log,!--no-log", values.log,
             "a line on stderr for each request, without its text (on)");
  add_switch(app, "--log-jsonl,!--no-log-jsonl", values.log_is_json,
             "log lines are JSON objects (off)", "LLAMA_ARG_LOG_JSONL");
  add_switch(app, "--log-prompts,!--no-log-prompts", values.logs_prompts,
             "log the text of each prompt too (off)");
  declare_http(app, values);
  declare_models(app, values.model, values.offer.models);
  declare_offer(app, values.offer);
  for (const char* source : {"-m", "-hf"}) {
    precedes(app, source, "--models-dir");
    precedes(app, "--models-dir", source);
  }
  declare_generation(app, values.generation);
}

}  // namespace limpid::cli
