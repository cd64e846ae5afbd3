// Server-sent events (WHATWG HTML, 9.2.6) from the bytes of a response.

// The data of each event of a response's body, until the server says [DONE]. The network cuts the
// bytes anywhere, also inside a character.
export async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";   // the line that has not ended yet
  let held = "";   // "\r" at the very end, which may be half of "\r\n"
  let event = [];  // the data lines of the event that has not ended yet
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) throw new Error("the body ended without [DONE]");
      let text = held + decoder.decode(value, {stream: true});
      held = text.endsWith("\r") ? "\r" : "";
      if (held) text = text.slice(0, -1);
      // A line whose end is not there yet is searched for its end only once.
      const lines = text.split(/\r\n|\n|\r/);
      lines[0] = rest + lines[0];
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) event.push(line.slice(line[5] === " " ? 6 : 5));
        if (line !== "" || event.length === 0) continue;
        const data = event.join("\n");
        if (data === "[DONE]") return;
        yield data;
        event = [];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
