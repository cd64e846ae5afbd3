// Markdown's blocks (after CommonMark and GitHub's tables), as objects that know where in the
// source they stand.
//
// A line is {start, end}: what is left of it once the marks of the quotes and lists around it are
// gone. A block is
//   {type: "paragraph", lines}             {type: "heading", level, lines}    {type: "rule"}
//   {type: "code", language, lines, open}  {type: "quote", blocks}
//   {type: "list", ordered, first, items: [{blocks, task}], loose}
//   {type: "table", align: [...], rows: [[{start, end}, ...], ...]}
// each with `start`, where its first line begins. Left out: HTML (it is text), link definitions,
// headings that are underlined, code that is only indented.

const DEEPEST = 16;  // quotes and lists inside each other; below it all is paragraphs
// None of these has two neighbours that may both take the same characters: the time would grow with
// the square of a line's length.
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const TASK = /^\[([ xX])\][ \t]+/;
const TABLE_RULE = /^[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$/;
const BLANK = /^[ \t]*$/;
const MARGIN = /^[ \t]*/;

// The columns of blanks; a tab has four.
const columnsOf = (blanks) => blanks.replaceAll("\t", "    ").length;

// How many characters of `blanks` take `columns`, or all of them.
function charactersOf(blanks, columns) {
  let n = 0;
  for (let at = 0; n < blanks.length && at < columns; ++n) at += columnsOf(blanks[n]);
  return n;
}

export function splitLines(source, from = 0) {
  const lines = [];
  for (let start = from; start < source.length;) {
    const newline = source.indexOf("\n", start);
    const end = newline < 0 ? source.length : newline;
    lines.push({start, end: end > start && source[end - 1] === "\r" ? end - 1 : end});
    start = end + 1;
  }
  return lines;
}

export function parseBlocks(source, lines, depth = 0) {
  return new BlockParser(source, lines, depth).parse();
}

class BlockParser {
  constructor(source, lines, depth) {
    this.source = source;
    this.lines = lines;
    this.depth = depth;
    this.at = 0;
    this.isAfterBlank = false;  // whether the last item ended with a blank line
  }

  text(i = this.at) {
    return i < this.lines.length ? this.source.slice(this.lines[i].start, this.lines[i].end) : "";
  }

  parse() {
    const blocks = [];
    while (this.at < this.lines.length) {
      const text = this.text();
      if (BLANK.test(text)) {
        ++this.at;
        continue;
      }
      const start = this.lines[this.at].start;
      const block = this.block(text);
      block.start = start;
      blocks.push(block);
    }
    return blocks;
  }

  block(text) {
    const fence = FENCE.exec(text);
    if (fence) return this.code(fence);
    const heading = HEADING.exec(text);
    if (heading) return this.heading(text, heading);
    if (RULE.test(text)) {
      ++this.at;
      return {type: "rule"};
    }
    if (this.depth < DEEPEST) {
      if (QUOTE.test(text)) return this.quote();
      const item = ITEM.exec(text);
      if (item) return this.list(item);
    }
    if (this.beginsTable(this.at)) return this.table();
    return this.paragraph();
  }

  // Whether line `i` is more than the next line of a paragraph.
  interrupts(i) {
    const text = this.text(i);
    if (BLANK.test(text) || HEADING.test(text) || RULE.test(text) || FENCE.test(text)) return true;
    if (this.depth >= DEEPEST) return false;
    if (QUOTE.test(text)) return true;
    const item = ITEM.exec(text);
    if (item && text.length > item[0].length && /^([-*+]|1[.)])$/.test(item[2])) return true;
    return this.beginsTable(i);
  }

  code(fence) {
    const indent = /^ */.exec(fence[0])[0].length;
    const end = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}[ \\t]*$`);
    const block = {type: "code", language: fence[2].trim().split(/\s/)[0], lines: [], open: true};
    for (++this.at; this.at < this.lines.length; ++this.at) {
      const text = this.text();
      if (end.test(text)) {
        block.open = false;
        ++this.at;
        break;
      }
      const spaces = Math.min(indent, /^ */.exec(text)[0].length);
      block.lines.push({start: this.lines[this.at].start + spaces, end: this.lines[this.at].end});
    }
    return block;
  }

  // Without the blanks at its end, and without a row of # there that stands alone.
  heading(text, match) {
    const {start} = this.lines[this.at++];
    const begin = match[0].length;
    const before = (at, characters) => {
      while (at > begin && characters.includes(text[at - 1])) --at;
      return at;
    };
    let end = before(text.length, " \t");
    const marks = before(end, "#");
    if (marks === begin || " \t".includes(text[marks - 1])) end = before(marks, " \t");
    return {
      type: "heading",
      level: match[1].length,
      lines: [{start: start + begin, end: start + end}]
    };
  }

  // A paragraph in it goes on in the next line even without a mark.
  quote() {
    const lines = [];
    let goesOn = false;
    for (; this.at < this.lines.length; ++this.at) {
      const text = this.text();
      const mark = QUOTE.exec(text);
      if (!mark && (!goesOn || ITEM.test(text) || this.interrupts(this.at))) break;
      const line = this.lines[this.at];
      lines.push({start: line.start + (mark ? mark[0].length : 0), end: line.end});
      goesOn = !BLANK.test(mark ? text.slice(mark[0].length) : text);
    }
    return {type: "quote", blocks: parseBlocks(this.source, lines, this.depth + 1)};
  }

  list(first) {
    const kind = (mark) => mark[mark.length - 1];
    const ordered = /\d/.test(first[2]);
    const list = {
      type: "list",
      ordered,
      first: ordered ? parseInt(first[2], 10) : 1,
      items: [],
      loose: false
    };
    const margin = columnsOf(first[1]);
    while (this.at < this.lines.length) {
      const text = this.text();
      const item = ITEM.exec(text);
      if (!item || kind(item[2]) !== kind(first[2]) || columnsOf(item[1]) > margin + 1 ||
          RULE.test(text))
        break;
      if (this.isAfterBlank && list.items.length > 0) list.loose = true;
      list.items.push(this.item(item, list));
    }
    return list;
  }

  // The lines of an item: those that are indented by 2 or more beyond its mark, blank ones between
  // them, and a paragraph's next lines whatever their indent (models are careless with it).
  item(match, list) {
    const line = this.lines[this.at];
    const wide = match[3].length > 4 ? 1 : match[3].length;
    const margin = columnsOf(match[1]);
    const content = margin + match[2].length + wide;
    const begin = line.start + match[1].length + match[2].length + wide;
    const lines = [{start: Math.min(begin, line.end), end: line.end}];
    let blank = false;
    let goesOn = lines[0].start < lines[0].end;  // whether a paragraph may
    for (++this.at; this.at < this.lines.length; ++this.at) {
      const {start, end} = this.lines[this.at];
      const text = this.text();
      const [blanks] = MARGIN.exec(text);
      if (BLANK.test(text)) {
        blank = true;
        goesOn = false;
        lines.push({start: end, end});
        continue;
      }
      const inside = columnsOf(blanks) >= margin + 2;
      if (!inside && (!goesOn || ITEM.test(text) || this.interrupts(this.at))) break;
      if (blank) list.loose = true;
      blank = false;
      goesOn = true;
      lines.push({start: start + charactersOf(blanks, content), end});
    }
    this.isAfterBlank = blank;
    const task = TASK.exec(this.source.slice(lines[0].start, lines[0].end));
    if (task) lines[0].start += task[0].length;
    const blocks = parseBlocks(this.source, lines, this.depth + 1);
    return {blocks, task: task ? task[1] !== " " : null};
  }

  beginsTable(i) {
    if (i + 1 >= this.lines.length) return false;
    const rule = this.text(i + 1);
    if (!rule.includes("|") || !TABLE_RULE.test(rule) || !this.text(i).includes("|")) return false;
    return this.cells(i).length === this.cells(i + 1).length;
  }

  table() {
    const rows = [this.cells(this.at)];
    const align = this.cells(this.at + 1).map(({start, end}) => {
      const text = this.source.slice(start, end);
      if (text.endsWith(":")) return text.startsWith(":") ? "center" : "right";
      return "left";
    });
    for (this.at += 2; this.at < this.lines.length; ++this.at) {
      const text = this.text();
      if (BLANK.test(text) || !text.includes("|")) break;
      rows.push(this.cells(this.at).slice(0, align.length));
    }
    return {type: "table", align, rows};
  }

  // Where the cells of a row stand, without the blanks around them.
  cells(i) {
    const {start, end} = this.lines[i];
    const cells = [];
    let from = start;
    const add = (to) => {
      let [a, b] = [from, to];
      while (a < b && /[ \t]/.test(this.source[a])) ++a;
      while (b > a && /[ \t]/.test(this.source[b - 1])) --b;
      cells.push({start: a, end: b});
      from = to + 1;
    };
    for (let k = start; k < end; ++k) {
      if (this.source[k] === "\\") ++k;
      else if (this.source[k] === "|") add(k);
    }
    add(end);
    if (cells[0].start === cells[0].end && cells.length > 1) cells.shift();
    if (cells.length > 1 && cells.at(-1).start >= cells.at(-1).end) cells.pop();
    return cells;
  }

  paragraph() {
    const lines = [];
    do {
      const {start, end} = this.lines[this.at];
      const indent = MARGIN.exec(this.text())[0].length;
      lines.push({start: start + indent, end});
      ++this.at;
    } while (this.at < this.lines.length && !this.interrupts(this.at));
    return {type: "paragraph", lines};
  }
}
