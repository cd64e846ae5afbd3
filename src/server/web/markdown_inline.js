// Markdown inside a block: emphasis, code, links. After CommonMark's algorithm for delimiters, so
// that the work is linear in the text whatever the text is.
//
// parseInline returns items in the order of the text. Each is {kind, start, end, opens, closes}:
//
//   kind            "text", "code" or "entity" (with `text`)
//   opens, closes   elements that begin after the item, or end before it: "em", "strong", "del",
//                   {href, title, isBare}

const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
const SPACE = /\s/u;
const ENTITIES = new Map(
    [["amp", "&"], ["lt", "<"], ["gt", ">"], ["quot", "\""], ["apos", "'"], ["nbsp", "\u00a0"]]);
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/y;
// (address "title") behind the text of a link: <address>, or one without blanks and with its
// parentheses in pairs.
const ADDRESS =
    /<([^<>\n]{0,2000})>|((?:[^\s()<>]{0,2000}\([^\s()<>]{0,2000}\)){0,8}[^\s()<>]{0,2000})/;
const TITLE = /\s{1,100}(?:"([^"]{0,500})"|'([^']{0,500})')/;
const TARGET =
    new RegExp(`\\(\\s{0,100}(?:${ADDRESS.source})(?:${TITLE.source})?\\s{0,100}\\)`, "y");
const BARE = /(?:https?:\/\/|mailto:)(?:(?!\]\()[^\s<>"`*])+/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/y;

// A link leads only to a web page or a mailbox; anything else (javascript:, data:, file:) is text.
function safeAddress(text) {
  if (!/^(https?:|mailto:)/i.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

// Removes what ends a sentence or closes a bracket around an address:
// "(see https://example.org/a_(b).)" has https://example.org/a_(b).
function withoutEnd(address) {
  let nOpen = 0;  // "(" that no ")" closes; below 0: ")" that close something before the address
  for (const c of address) nOpen += c === "(" ? 1 : c === ")" ? -1 : 0;
  let end = address.length;
  for (; end > 0; --end) {
    const c = address[end - 1];
    if (c === ")" ? nOpen >= 0 : !/[.,;:!?'\]_~]/.test(c)) break;
    if (c === ")") ++nOpen;
  }
  return address.slice(0, end);
}

export function parseInline(text) { return new InlineParser(text).parse(); }

class InlineParser {
  constructor(text) {
    this.text = text;
    this.items = [];
    this.delimiters = [];  // items that may open or close emphasis
    this.brackets = [];    // items "[" and "![" that may begin a link
    this.plain = 0;        // where the text begins that is not in an item yet
    this.addressFrom = 0;  // where the next bare address may begin: behind what looked like one
    this.at = 0;
  }

  item(kind, end, more = {}) {
    this.flush();
    const item = {kind, start: this.at, end, opens: [], closes: [], ...more};
    this.items.push(item);
    this.at = this.plain = end;
    return item;
  }

  flush() {
    if (this.plain < this.at) {
      this.items.push({kind: "text", start: this.plain, end: this.at, opens: [], closes: []});
    }
    this.plain = this.at;
  }

  // Leaves out the `n` characters at the place.
  skip(n) {
    this.flush();
    this.at += n;
    this.plain = this.at;
  }

  parse() {
    while (this.at < this.text.length) this.step(this.text[this.at]);
    this.flush();
    this.emphasize(0);
    return this.items;
  }

  step(c) {
    if (c === "\\") return this.escape();
    if (c === "`") return this.code();
    if (c === "*" || c === "_" || c === "~") return this.delimiter(c);
    if (c === "[" || (c === "!" && this.text[this.at + 1] === "[")) {
      this.brackets.push(
          this.item("text", this.at + (c === "[" ? 1 : 2), {depth: this.delimiters.length}));
      this.brackets.at(-1).index = this.items.length - 1;
      return null;
    }
    if (c === "]") return this.link();
    if (c === "&") return this.entity();
    if (c === "<") return this.address(ANGLE, 1);
    if ((c === "h" || c === "m") && this.at >= this.addressFrom &&
        !/\w/.test(this.text[this.at - 1] ?? " "))
      return this.address(BARE, 0);
    return ++this.at;
  }

  escape() {
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") return this.skip(1);
    if (!/[!-/:-@[-`{-~]/.test(next)) return ++this.at;
    this.skip(1);
    return ++this.at;
  }

  // The runs of backquotes are found once; each closes the next of its length.
  code() {
    this.runs ??= this.findRuns();
    let end = this.at;
    while (this.text[end] === "`") ++end;
    const length = end - this.at;
    const starts = this.runs.get(length) ?? [];
    while (starts.length > 0 && starts.at(-1) < end) starts.pop();
    const close = starts.pop();
    if (close === undefined) {
      this.at = end;
      return;
    }
    let [from, to] = [end, close];
    if (this.text[from] === " " && this.text[to - 1] === " " && to - from > 2)
      [from, to] = [from + 1, to - 1];
    this.skip(from - this.at);
    this.item("code", to);
    this.skip(close + length - to);
  }

  // Length of a run -> where such runs begin, the last one first.
  findRuns() {
    const runs = new Map();
    for (const match of this.text.slice(this.at).matchAll(/`+/g)) {
      const length = match[0].length;
      if (!runs.has(length)) runs.set(length, []);
      runs.get(length).push(this.at + match.index);
    }
    for (const starts of runs.values()) starts.reverse();
    return runs;
  }

  delimiter(c) {
    let end = this.at;
    while (this.text[end] === c) ++end;
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[end] ?? " ";
    const left = !SPACE.test(after) &&
        (!PUNCTUATION.test(after) || SPACE.test(before) || PUNCTUATION.test(before));
    const right = !SPACE.test(before) &&
        (!PUNCTUATION.test(before) || SPACE.test(after) || PUNCTUATION.test(after));
    const word = c === "_";  // an underscore inside a word is part of the word
    const length = end - this.at;
    const item = this.item("text", end, {
      mark: c,
      length,  // of what is not paired yet
      run: length,
      canOpen: left && (!word || !right || PUNCTUATION.test(before)),
      canClose: right && (!word || !left || PUNCTUATION.test(after)),
    });
    if ((c !== "~" || length === 2) && (item.canOpen || item.canClose)) this.delimiters.push(item);
  }

  // Pairs the delimiters from `first` on, and forgets them.
  emphasize(first) {
    const stack = this.delimiters.splice(first);
    const open = [];            // those before the closer that may still open
    const bottoms = new Map();  // kind of closer -> how many of `open` are known not to match it
    for (const closer of stack) {
      while (closer.canClose && closer.length > 0) {
        const kind = `${closer.mark}${closer.canOpen}${closer.run % 3}`;
        let i = open.length - 1;
        const bottom = bottoms.get(kind) ?? 0;
        while (i >= bottom && !pairs(open[i], closer)) --i;
        if (i < bottom) {
          bottoms.set(kind, open.length);
          break;
        }
        const opener = open[i];
        open.length = i + 1;
        for (const [other, n] of bottoms) bottoms.set(other, Math.min(n, i));
        this.wrap(opener, closer);
        if (opener.length === 0) open.pop();
      }
      if (closer.canOpen && closer.length > 0) open.push(closer);
    }
  }

  // The inner marks of both become an element.
  wrap(opener, closer) {
    const n = opener.length >= 2 && closer.length >= 2 ? 2 : 1;
    const tag = opener.mark === "~" ? "del" : n === 2 ? "strong" : "em";
    opener.opens.unshift(tag);
    closer.closes.push(tag);
    opener.length -= n;
    closer.length -= n;
    opener.end -= n;
    closer.start += n;
  }

  link() {
    const bracket = this.brackets.pop();
    TARGET.lastIndex = this.at + 1;
    const match = bracket && TARGET.exec(this.text);
    const href = match && safeAddress(match[1] ?? match[2] ?? "");
    if (!match || !href || bracket.end === this.at) return ++this.at;
    const end = TARGET.lastIndex;
    const closer = this.item("text", this.at);
    this.emphasize(bracket.depth);
    // A link holds no link: what began outside of it is text now, and so is an address in it that
    // stands there as it is. A picture is shown as a link.
    for (const item of this.items.slice(bracket.index + 1)) {
      item.opens = item.opens.filter((element) => !element.href);
      item.closes = item.closes.filter((element) => element !== "a");
    }
    const link = {href, title: match[3] ?? match[4] ?? ""};
    bracket.opens.push(link);
    closer.closes.push("a");
    bracket.start = bracket.end;
    this.brackets.length = 0;
    return this.skip(end - this.at);
  }

  entity() {
    ENTITY.lastIndex = this.at;
    const match = ENTITY.exec(this.text);
    if (!match) return ++this.at;
    const code = match[1] ? parseInt(match[1], 10) : parseInt(match[2] ?? "0", 16);
    const text = match[3]            ? ENTITIES.get(match[3]) :
        code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) :
                                       "\ufffd";
    if (!text) return ++this.at;
    return this.item("entity", ENTITY.lastIndex, {text});
  }

  // An address that is written in the text as it is.
  address(pattern, around) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    const shown = match && (around ? match[1] : withoutEnd(match[0]));
    const href = shown && safeAddress(shown);
    if (!href) {
      if (match && around === 0) this.addressFrom = pattern.lastIndex;
      return ++this.at;
    }
    this.skip(around);
    const opener = this.item("text", this.at);
    this.item("text", this.at + shown.length);
    opener.opens.push({href, title: "", isBare: true});
    const closer = this.item("text", this.at);
    closer.closes.push("a");
    return this.skip(around);
  }
}

// CommonMark's "multiple of 3" rule keeps *a**b*c together.
function pairs(opener, closer) {
  if (opener.mark !== closer.mark) return false;
  if (!(opener.canClose || closer.canOpen)) return true;
  return (opener.run + closer.run) % 3 !== 0 || (opener.run % 3 === 0 && closer.run % 3 === 0);
}
