// What the page asks of the server: OpenAI's API, and llama-server's /props.
import {events} from "./event_stream.js";

// What went wrong, and what a person can do about it.
export class Problem extends Error {
  constructor(message, advice, status = 0) {
    super(message);
    this.advice = advice;
    this.status = status;
  }
}

const ADVICE = {
  400: "Change what the message names: a value in Settings, or the text.",
  401: "Enter the API key of this server in Settings.",
  403: "Enter another API key in Settings, or open the page at the server's own address.",
  404: "The server lacks what the page needs. Is it limpid serve, in the version of this page?",
  413: "Shorten the question, or begin a new conversation.",
  429: "Many requests are waiting. Try again in a moment.",
  500: "Try again; if it happens again, look at what the server writes to its log.",
  503: "The server is loading its model, or is shutting down. Try again in a moment.",
};

function adviceFor(status, message, code) {
  if (code === "model_not_found")
    return "The server has other models now. Choose one in Settings, or try again.";
  if (/context/i.test(message) && status === 400) {
    return "The context is full. Begin a new conversation, or edit an earlier message.";
  }
  return ADVICE[status] ?? ADVICE[status < 500 ? 400 : 500];
}

function problemOf(body, status) {
  const error = body?.error ?? {};
  const said = typeof error === "string" ? error : error.message;
  const message =
      typeof said === "string" && said ? said : `The server answered with status ${status}.`;
  return new Problem(message, adviceFor(status, message, error.code), status);
}

async function checked(response) {
  if (response.ok) return response;
  let body = null;
  try {
    body = JSON.parse(await response.text());
  } catch {
    // Not JSON: a proxy may have answered. The status must do.
  }
  const problem = problemOf(body, response.status);
  const seconds = Number(response.headers.get("Retry-After"));
  if (seconds > 0) problem.advice += ` The server asks to wait ${seconds} s.`;
  throw problem;
}

// The bytes of a text in UTF-8, as a header carries them.
const bytesOf = (text) => String.fromCharCode(...new TextEncoder().encode(text));

export class Api {
  constructor(settings) { this.settings = settings; }

  // `path` without a slash before it, so that the page works below a folder of a proxy.
  async #fetch(path, options = {}) {
    const headers = {"Content-Type": "application/json"};
    const key = this.settings.get("apiKey");
    if (key) headers.Authorization = `Bearer ${bytesOf(key)}`;
    try {
      return await checked(await fetch(path, {...options, headers}));
    } catch (error) {
      if (error instanceof Problem || error.name === "AbortError") throw error;
      throw new Problem(
          "The server does not answer.", "Is limpid serve still running? Then try again.");
    }
  }

  async models() {
    const {data} = await (await this.#fetch("v1/models")).json();
    return Array.isArray(data) ? data.map((model) => String(model.id)) : [];
  }

  // The samplers that the server uses where a request names none; {} where it does not say. To ask
  // does not load the model.
  async defaults(model = "") {
    try {
      const query = new URLSearchParams({model, autoload: "false"});
      const props = await (await this.#fetch(`props?${query}`)).json();
      return props.default_generation_settings?.params ?? {};
    } catch {
      return {};
    }
  }

  // The numbers of an answer's explanation, as text for its page.
  async explain(body, signal) {
    const options = {method: "POST", body: JSON.stringify(body), signal};
    return (await this.#fetch("explain", options)).text();
  }

  // Yields {model, text, tokens, finish, usage, timings}, what is new in each event.
  async * chat(body, signal) {
    const response = await this.#fetch("v1/chat/completions", {
      method: "POST",
      body: JSON.stringify(body),
      signal,
    });
    try {
      for await (const data of events(response)) yield eventOf(data);
    } catch (error) {
      if (error instanceof Problem || error.name === "AbortError") throw error;
      throw new Problem(
          "The connection broke.", "What came so far is kept. Continue the answer, or try again.");
    }
  }
}

function eventOf(data) {
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new Problem("The server sent an event that is not JSON.", ADVICE[500]);
  }
  if (chunk.error) throw problemOf(chunk, chunk.error.code >= 400 ? chunk.error.code : 500);
  const choice = chunk.choices?.[0];
  return {
    model: chunk.model ?? null,
    text: choice?.delta?.content ?? "",
    tokens: choice?.logprobs?.content ?? [],
    finish: choice?.finish_reason ?? null,
    usage: chunk.usage ?? null,
    timings: chunk.timings ?? null,
  };
}
