// Server-sent events (WHATWG HTML, 9.2.6) from the bytes of a response.

// Splits bytes, cut anywhere, into the data of events. A character of several bytes may be cut too.
class EventParser {
  #decoder = new TextDecoder();
  #rest = "";  // the line that has not ended yet
  #held = "";  // "\r" at the very end, which may be half of "\r\n"
  #data = [];  // the data lines of the event that has not ended yet

  // The data of each event that ends in `bytes`.
  push(bytes) {
    let text = this.#held + this.#decoder.decode(bytes, {stream: true});
    this.#held = text.endsWith("\r") ? "\r" : "";
    if (this.#held) text = text.slice(0, -1);
    // A line whose end is not there yet is searched for its end only once.
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    const events = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) events.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
    return events;
  }
}

// The data of each event of a response's body, until the server says [DONE].
export async function* events(response) {
  const parser = new EventParser();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) throw new Error("the body ended without [DONE]");
      for (const data of parser.push(value)) {
        if (data === "[DONE]") return;
        yield data;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
