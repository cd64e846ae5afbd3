// The tokens of an answer, beside its text.
//
// A token is {start, end, logprob, others}: the characters [start, end) of the text, ln of its
// probability, and the likeliest tokens at its place as [text, logprob], the likeliest first. A
// text that is null cannot be written as characters (part of one, or the end of the answer). A
// character of several tokens belongs to the last of them.

const FARTHEST = 256;  // characters of the text that may belong to no token

function textOf(entry) {
  if (!Array.isArray(entry.bytes))
    return typeof entry.token === "string" && entry.token !== "" ? entry.token : null;
  if (entry.bytes.length === 0) return null;
  try {
    return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true})
        .decode(Uint8Array.from(entry.bytes));
  } catch {
    return null;
  }
}

// Follows an answer while it comes in. `message` is {content, tokens}.
export class TokenReader {
  #decoder = new TextDecoder("utf-8", {ignoreBOM: true});
  #waiting = [];  // tokens whose text has not come yet, as while the server looks for a stop text
  #at;

  constructor(message) {
    this.message = message;
    this.#at = message.content.length;
  }

  push(text, entries) {
    this.message.content += text;
    for (const entry of entries) {
      const bytes = Array.isArray(entry.bytes) ? Uint8Array.from(entry.bytes) : null;
      const shown = bytes ? this.#decoder.decode(bytes, {stream: true}) : String(entry.token ?? "");
      const others =
          (entry.top_logprobs ?? []).map((other) => [textOf(other), Number(other.logprob)]);
      this.#waiting.push({shown, logprob: Number(entry.logprob), others});
    }
    while (this.#waiting.length > 0 && this.#place(this.#waiting[0])) this.#waiting.shift();
  }

  // Where the token is in the text; false if its text is still to come.
  #place({shown, logprob, others}) {
    const {content, tokens} = this.message;
    let start = this.#at;
    if (!content.startsWith(shown, start)) {
      if (shown.startsWith(content.slice(start))) return false;
      start = content.slice(start, start + FARTHEST + shown.length).indexOf(shown) + start;
      if (start < this.#at) return true;  // shown nowhere, as a control token
    }
    this.#at = start + shown.length;
    if (shown !== "") tokens.push({start, end: this.#at, logprob, others});
    return true;
  }
}

// The index of the first part of a text that ends behind `offset`. `parts` are in the text's order.
export function firstBehind(parts, offset) {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parts[middle].end <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The token that holds the character at `offset`, or null.
export function tokenAt(tokens, offset) {
  const token = tokens[firstBehind(tokens, offset)];
  return token && token.start <= offset ? token : null;
}

// The tokens of the word that `token` is a part of: back to a token that begins with a blank, on to
// the next one.
export function wordOf(message, token) {
  const {tokens, content} = message;
  const joined = (i) => {
    const {start} = tokens[i];
    return i > 0 && /[\p{L}\p{N}'’]/u.test(content[start]) &&
        /[\p{L}\p{N}'’]/u.test(content[start - 1] ?? " ");
  };
  let first = tokens.indexOf(token);
  let last = first;
  while (joined(first)) --first;
  while (last + 1 < tokens.length && joined(last + 1)) ++last;
  return tokens.slice(first, last + 1);
}

// How much a token surprises, in bits: 0 if the model was sure of it, 1 more each time its
// probability halves.
export function surprise(logprob) { return -logprob / Math.LN2; }

export function percent(logprob) {
  const value = 100 * Math.exp(logprob);
  if (value >= 10) return `${value.toFixed(0)} %`;
  if (value >= 0.1) return `${value.toFixed(1)} %`;
  return "< 0.1 %";
}

// A token's text with its blanks to be seen.
export function visible(text) {
  return text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(
      "\r", "␍");
}
