// Markdown as elements of the page. Text of a model becomes text nodes and never HTML.
//
// Each text node remembers which characters of the source it shows (`pieces`), so that words can be
// found from places on the screen and the other way round, without an element for each word.
import {button, element} from "./element.js";
import {parseBlocks, splitLines} from "./markdown_blocks.js";
import {parseInline} from "./markdown_inline.js";

const DEEPEST = 24;  // elements of emphasis inside each other

// Text node -> {node, start, end, view}: where its text is in the source of a view.
export const pieceOf = new WeakMap();

export class MarkdownView {
  #source = "";
  #kept = [];  // blocks that no further text can change: {start, end, pieces}
  #last = [];  // elements of those that further text can change
  #lastPieces = [];
  #from = 0;  // where the blocks begin that can still change
  #told = 0;  // where those begin that update() has not returned yet
  #isFinal = false;

  // `root` is an empty element; `copied` is called with each text that a copy button copies.
  constructor(root, owner, copied) {
    this.root = root;
    this.owner = owner;
    this.copied = copied;
  }

  // Where the text begins that may still be drawn anew.
  get finalEnd() { return this.#from; }

  // All pieces in the order of the source.
  pieces() { return [...this.#kept, ...this.#lastPieces]; }

  // Shows `source`, which begins with what was shown before. Only the last block is made again.
  // Returns the texts of the blocks that became final.
  update(source, isFinal) {
    if (this.#isFinal) this.#begin();  // an answer that is continued: its last block may go on
    this.#isFinal = isFinal;
    this.#source = source;
    const blocks = parseBlocks(source, splitLines(source, this.#from));
    const n = isFinal ? blocks.length : this.#numberOfFinal(blocks);
    const said = [];
    const open = this.#openCode(blocks[n], n === 0 && blocks.length === 1);
    if (open) {
      this.#extend(open, blocks[0]);
      return said;
    }
    for (const element of this.#last) element.remove();
    this.#last = [];
    this.#lastPieces = [];
    blocks.forEach((block, i) => {
      const builder = new Builder(this, source);
      const element = builder.block(block);
      this.root.append(element);
      if (i < n) {
        for (const piece of builder.pieces) this.#kept.push(piece);
        if (block.start >= this.#told && builder.pieces.length > 0)
          said.push(spoken(builder.pieces));
      } else {
        this.#last.push(element);
        for (const piece of builder.pieces) this.#lastPieces.push(piece);
      }
    });
    if (n > 0) this.#from = n < blocks.length ? blocks[n].start : source.length;
    // The last block of an answer that is continued is reported once more, with what was added to
    // it.
    this.#told = Math.max(this.#told, isFinal ? blocks.at(-1)?.start ?? 0 : this.#from);
    return said;
  }

  #begin() {
    this.root.replaceChildren();
    this.#kept = [];
    this.#last = [];
    this.#lastPieces = [];
    this.#from = 0;
  }

  // A block can change as long as text can be added to it: the last one, and the one before if the
  // last is only the begin of a line, or a table's first two, that may turn out to go on with it.
  #numberOfFinal(blocks) {
    const lineStart = this.#source.lastIndexOf("\n") + 1;
    let n = Math.max(blocks.length - 1, 0);
    const isNew = blocks[n]?.start >= lineStart ||
        (blocks[n]?.type === "table" && blocks[n].rows.length === 1);
    if (n > 0 && isNew) --n;
    return n;
  }

  // A long block of code grows by its new text alone.
  #openCode(block, isOnly) {
    if (!isOnly || block?.type !== "code" || !block.open || this.#last.length !== 1) return null;
    return this.#last[0].limpidCode?.start === block.start ? this.#last[0].limpidCode : null;
  }

  #extend(code, block) {
    const source = this.#source;
    const text = block.lines.map(({start, end}) => source.slice(start, end)).join("\n");
    const shown = code.node.data;
    if (text.startsWith(shown)) code.node.appendData(text.slice(shown.length));
    else code.node.data = text;
    code.piece.end = block.lines.at(-1)?.end ?? code.piece.end;
    code.piece.lines = linesToMap(block.lines);
  }
}

// A block as it is read out: a line for each paragraph, item and cell in it, and no code.
function spoken(pieces) {
  const lines = [];
  let last = null;
  for (const {node} of pieces) {
    const place = node.parentElement.closest("p, li, th, td, h3, h4, h5, h6, pre");
    if (place !== last) lines.push("");
    last = place;
    lines[lines.length - 1] += place.matches("pre") ? "Code." : node.data;
  }
  return lines.join("\n");
}

// The lines of a code block inside a list do not follow each other in the source; null where they
// do.
function linesToMap(lines) {
  return lines.every((line, i) => i === 0 || line.start === lines[i - 1].end + 1) ? null : lines;
}

class Builder {
  constructor(view, source) {
    this.view = view;
    this.source = source;
    this.pieces = [];
  }

  block(block) {
    const element = this[block.type](block);
    element.dir = "auto";
    return element;
  }

  append(parent, blocks, isTight = false) {
    for (const block of blocks) {
      if (isTight && block.type === "paragraph") this.inline(parent, block.lines);
      else parent.append(this.block(block));
    }
    return parent;
  }

  paragraph(block) { return this.inline(element("p"), block.lines); }

  // The headings of the page come first: # is its third level.
  heading(block) { return this.inline(element(`h${Math.min(block.level + 2, 6)}`), block.lines); }

  rule() { return element("hr"); }

  quote(block) { return this.append(element("blockquote"), block.blocks); }

  list(block) {
    const list = element(block.ordered ? "ol" : "ul");
    if (block.ordered && block.first !== 1) list.start = block.first;
    for (const item of block.items) {
      const entry = element("li");
      if (item.task !== null) {
        entry.className = "task";
        const label = item.task ? "done" : "open";
        const box = {type: "checkbox", checked: item.task, disabled: true, "aria-label": label};
        entry.append(element("input", box), " ");
      }
      list.append(this.append(entry, item.blocks, !block.loose));
    }
    return list;
  }

  code(block) {
    const language = block.language.slice(0, 40);
    const text = block.lines.map(({start, end}) => this.source.slice(start, end)).join("\n");
    const node = document.createTextNode(text);
    const copy = button(
        "Copy", () => this.view.copied(node.data), {"aria-label": `Copy the ${language} code`});
    const figure = element(
        "div", {className: "code"},
        element(
            "div", {className: "bar"}, element("span", {textContent: language || "code"}), copy),
        element("pre", {tabIndex: 0}, element("code", {}, node)));
    const start = block.lines[0]?.start ?? block.start;
    const piece = this.piece(node, start, block.lines.at(-1)?.end ?? start);
    piece.lines = linesToMap(block.lines);
    figure.limpidCode = {start: block.start, node, piece};
    return figure;
  }

  table(block) {
    const sections = [element("thead"), element("tbody")];
    block.rows.forEach((cells, i) => {
      const row = sections[Math.min(i, 1)].appendChild(element("tr"));
      block.align.forEach((align, column) => {
        const cell = element(i === 0 ? "th" : "td", {className: align});
        if (i === 0) cell.scope = "col";
        if (cells[column]) this.inline(cell, [cells[column]]);
        row.append(cell);
      });
    });
    return element(
        "div", {className: "table", tabIndex: 0, role: "region", "aria-label": "Table"},
        element("table", {}, ...sections));
  }

  piece(node, start, end) {
    const piece = {node, start, end, view: this.view};
    pieceOf.set(node, piece);
    this.pieces.push(piece);
    return piece;
  }

  // The text of lines, as one paragraph's.
  inline(parent, lines) {
    const text = lines.map(({start, end}) => this.source.slice(start, end)).join("\n");
    const begins = [];  // where each line begins in `text`
    let at = 0;
    for (const {start, end} of lines) {
      begins.push(at);
      at += end - start + 1;
    }
    const writer = new InlineWriter(this, parent, text, lines, begins);
    for (const item of parseInline(text)) writer.item(item);
    return parent;
  }
}

// Writes the items of parseInline into an element.
class InlineWriter {
  constructor(builder, parent, text, lines, begins) {
    Object.assign(this, {builder, text, lines, begins});
    this.stack = [parent];
    this.isCell = parent.matches("th, td");
    this.skipped = 0;  // elements that are open, and too deep to be made
    this.line = 0;
  }

  item(item) {
    for (const _ of item.closes) {
      if (this.skipped > 0) --this.skipped;
      else this.stack.pop();
    }
    if (item.start < item.end) this.write(item);
    for (const what of item.opens) this.open(what);
  }

  open(what) {
    if (this.stack.length > DEEPEST) {
      ++this.skipped;
      return;
    }
    const {href, title, isBare} = what;
    const made = element(href ? "a" : what);
    if (href) {
      const rel = "noopener noreferrer nofollow";
      Object.assign(made, {href, title: title || href, target: "_blank", rel});
      if (isBare) made.className = "bare";  // the address is its text
    }
    this.stack.at(-1).append(made);
    this.stack.push(made);
  }

  write(item) {
    let parent = this.stack.at(-1);
    if (item.kind === "code") parent = parent.appendChild(element("code"));
    if (item.kind === "entity") {
      const node = parent.appendChild(document.createTextNode(item.text));
      this.builder.piece(node, this.place(item.start), this.place(item.end - 1) + 1);
      return;
    }
    // One node a line, because the marks of quotes and lists stand between lines in the source.
    // Code in a table's cell has | for \|, unlike other code (GFM): there a node ends before the
    // backslash.
    const isCellCode = this.isCell && item.kind === "code";
    for (let from = item.start; from < item.end;) {
      if (isCellCode && this.text.startsWith("\\|", from)) ++from;
      const start = this.place(from);
      const bar = isCellCode ? this.text.slice(from, item.end).indexOf("\\|") : -1;
      const end = bar < 0 ? item.end : from + bar;
      const to = Math.min(end, this.begins[this.line + 1] ?? end);
      const node = parent.appendChild(document.createTextNode(this.text.slice(from, to)));
      this.builder.piece(node, start, start + to - from);
      from = to;
    }
  }

  // Where a character of the text is in the source; calls come in the order of the text.
  place(at) {
    while (this.line + 1 < this.begins.length && this.begins[this.line + 1] <= at) ++this.line;
    return this.lines[this.line].start + at - this.begins[this.line];
  }
}
