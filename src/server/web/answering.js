// One answer, from the request to its last token.
import {TokenReader} from "./tokens.js";

const SAVE_EVERY = 2000;  // ms, so that a reload in the middle loses little

// What was said before a message, as requests carry it.
export function messagesBefore(conversation, message) {
  const messages = [];
  if (conversation.system.trim()) messages.push({role: "system", content: conversation.system});
  for (const {role, content} of conversation.pathTo(conversation.parentOf(message))) {
    if (content === "") continue;  // an answer that failed
    const before = messages.at(-1);
    if (before?.role === role && role === "user") before.content += `\n\n${content}`;
    else messages.push({role, content});
  }
  return messages;
}

// What a request carries. `settings.samplers()` are those that differ from the server's.
export function requestFor(conversation, message, settings, model) {
  const messages = messagesBefore(conversation, message);
  const body = {
    ...settings.samplers(),
    messages,
    stream: true,
    stream_options: {include_usage: true},
  };
  if (model) body.model = model;
  const others = settings.get("alternatives");
  if (others > 0) Object.assign(body, {logprobs: true, top_logprobs: others});
  // The server goes on with the answer's beginning instead of opening a new turn.
  if (message.content !== "") {
    messages.push({role: "assistant", content: message.content});
    Object.assign(body, {continue_final_message: true, add_generation_prompt: false});
  }
  return body;
}

export class Answering {
  #abort = new AbortController();

  // Whatever the message says of an earlier end is gone.
  constructor(api, message, {grew, save}) {
    Object.assign(this, {api, message, grew, save});
    delete message.error;
    Object.assign(message, {finish: null, stats: null, tokens: message.tokens ?? []});
  }

  stop() { this.#abort.abort(); }

  // Runs until the answer is complete, stopped or failed; which of them is in message.finish and
  // message.error.
  async run(body) {
    const {message} = this;
    const reader = new TokenReader(message);
    const clock = {begin: performance.now(), first: 0, saved: performance.now(), n: 0};
    try {
      for await (const event of this.api.chat(body, this.#abort.signal))
        this.#take(event, reader, clock);
      message.finish ??= "stop";
    } catch (error) {
      if (error.name === "AbortError") message.finish = "stopped";
      else
        message.error = {
          message: error.message,
          advice: error.advice ?? "Try again.",
          status: error.status ?? 0
        };
    }
  }

  #take({model, text, tokens, finish, usage, timings}, reader, clock) {
    const {message} = this;
    this.model = model ?? this.model;  // that answers
    const now = performance.now();
    reader.push(text, tokens);
    clock.n += tokens.length || (text ? 1 : 0);
    if (clock.n > 0 && clock.first === 0) clock.first = now;
    if (finish) message.finish = finish;
    if (clock.first > 0) message.stats = statsOf(clock, now, usage, timings);
    if (text) this.grew();
    if (now - clock.saved > SAVE_EVERY) {
      clock.saved = now;
      this.save();
    }
  }
}

// The server's own figures once they are there, until then the page's clock.
function statsOf({begin, first, n}, now, usage, timings) {
  const seconds = (now - first) / 1000;
  const speed = timings?.predicted_per_second ?? (seconds > 0.2 ? (n - 1) / seconds : 0);
  return {
    speed,
    tokens: usage?.completion_tokens ?? timings?.predicted_n ?? n,
    wait: first - begin
  };
}
