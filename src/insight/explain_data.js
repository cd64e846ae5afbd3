// The page of `limpid explain`, part 1: the numbers, what is chosen, and how things are drawn.
//
// A place p is the position of a token in the text; p = n_tokens is the one after the end. What
// predicts place p was computed at position p - 1.

let data;  // what page_data of explain_page.cpp makes
let nTokens;
let partsAt;  // position -> the parts of its logit

// Numbers in base64 are unpacked when they are first wanted, so that the page opens at once.
function lazy(object, name, Type) {
  const text = object[name];
  let numbers = null;
  Object.defineProperty(object, name, {get: () => (numbers ??= unpack(text, Type))});
}
function read(text) {
  // JSON writes null for NaN, which the first token's surprise is, and more in a damaged model.
  data = JSON.parse(text, (name, value) => value ?? NaN);
  for (const each of [data.next, ...data.lens]) {
    lazy(each, "ids", Int32Array);
    lazy(each, "p", Uint16Array);
    lazy(each, "entropy", Float32Array);
  }
  for (const each of data.parts) lazy(each, "parts", Int16Array);
  for (const each of data.attention) {
    lazy(each, "tiles", Uint8Array);
    if (!("kept" in each)) continue;
    for (const name of ["first", "weights"]) lazy(each, name, Uint8Array);
    lazy(each, "columns", data.ids.length > 65536 ? Uint32Array : Uint16Array);
  }
  for (const each of data.norms) {
    for (const name of ["stream", "attention", "mlp"]) lazy(each, name, Float32Array);
  }
  for (const each of data.contrasts) {
    for (const name of ["token_distance", "divergence", "surprise"]) lazy(each, name, Float32Array);
    lazy(each, "ends", Uint32Array);
    lazy(each, "ids", Int32Array);
    for (const name of ["before", "after"]) lazy(each, name, Uint16Array);
  }
  nTokens = data.ids.length;
  partsAt = new Map(data.parts.map((each) => [each.at, each]));
  Object.assign(chosen, {place: Math.min(data.n_prompt, nTokens), lens: data.lens.length - 1});
}

// The predictions {id, p} at a position, likeliest first.
function predicted(from, position) {
  return Array.from({length: from.n}, (_, i) => ({
                                        id: from.ids[position * from.n + i],
                                        p: from.p[position * from.n + i] / 65535,
                                      }));
}

// ---- what is chosen

const chosen = {
  place: 0,
  lens: 0,
  layer: 0,
  head: 0
};
const views = [];  // functions that draw, each called when something else is chosen
function choose(change) {
  Object.assign(chosen, change);
  chosen.place = Math.max(0, Math.min(nTokens, chosen.place));
  chosen.layer = Math.max(0, Math.min(data.n_layers - 1, chosen.layer));
  chosen.head = Math.max(0, Math.min(data.n_heads - 1, chosen.head));
  for (const draw of views) draw(change);
}

// ---- drawing

// An empty picture. A screen reader reads the label, which says what the picture shows, with the
// numbers that matter.
function picture(width, height, label) {
  return drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
}
function faintText(x, y, text, anchor = "middle") {
  return drawn("text", {x, y, "text-anchor": anchor, class: "faint"}, text);
}
// A line across a picture, from `left` on, with its number.
function gridLine(left, width, y, number, kind = "grid") {
  return [
    drawn("line", {x1: left, x2: width, y1: y, y2: y, class: kind}),
    faintText(left - 6, y + 4, number, "end")
  ];
}

// A token's text with signs for what cannot be seen.
const signs = {
  " ": "·",
  "\n": "⏎",
  "\t": "⇥",
  "\r": "␍"
};
function visible(id) {
  const text = data.texts[id] ?? `#${id}`;
  return text === "" ? "∅" :
                       text.replace(
                           /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069 ]/g,
                           (c) => signs[c] ?? "�");
}
// The same as nodes, with the signs faint.
function tokenNodes(id) {
  return visible(id)
      .split(/([·⏎⇥␍�∅])/)
      .filter(Boolean)
      .map(
          (part) =>
              /^[·⏎⇥␍�∅]$/.test(part) ? make("span", {className: "mark"}, part) : part);
}
const tokenSpan = (id) => make("span", {className: "token"}, ...tokenNodes(id));
const textOfPlace = (place) => place < nTokens ? visible(data.ids[place]) : "what comes next";
const nameOfPlace = (place) => place < nTokens ? tokenSpan(data.ids[place]) : "the next token";

const percent = (p) => p >= 0.0995 ? `${(100 * p).toFixed(0)} %` :
    p >= 0.001 ? `${(100 * p).toFixed(1)} %` :
    isNaN(p) ? "NaN" :
               "< 0.1 %";
const signed = (x, digits = 2) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(digits);
const headName = (layer, head) => `L${layer}.H${head}`;

// Colours the element: share 0 is the page, 1 is full blue.
function heat(element, share) {
  element.classList.add("heat");
  element.style.setProperty("--heat", share.toFixed(3));
}

// The colours of the style sheet as numbers, for canvases; they change with the theme.
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  for (const name of ["page", "text", "blue", "orange", "green", "line"]) {
    probe.fillStyle = style.getPropertyValue(`--${name}`);
    probe.fillRect(0, 0, 1, 1);
    colors[name] = [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
  }
}
const css = (name) => `rgb(${colors[name].join(" ")})`;

// Fills a canvas of columns x rows cells, `size` pixels wide and `high` pixels high; share(column,
// row) in [-1, 1], orange below 0 and blue above.
function fillCells(canvas, columns, rows, size, share, high = size) {
  const image = new ImageData(columns, rows);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const value = Math.max(-1, Math.min(1, share(column, row)));
      const ink = value < 0 ? colors.orange : colors.blue;
      for (let i = 0; i < 3; ++i) {
        image.data[4 * (row * columns + column) + i] =
            colors.page[i] + (ink[i] - colors.page[i]) * Math.abs(value);
      }
      image.data[4 * (row * columns + column) + 3] = 255;
    }
  }
  const small = document.createElement("canvas");
  small.width = columns;
  small.height = rows;
  small.getContext("2d").putImageData(image, 0, 0);
  canvas.width = columns * size;
  canvas.height = rows * high;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  return context;
}

// Which cell of a canvas an event is at.
function cellAt(canvas, event, columns, rows) {
  const box = canvas.getBoundingClientRect();
  const part = (offset, size, n) => Math.max(0, Math.min(n - 1, Math.floor(offset / size * n)));
  return [
    part(event.clientX - box.left, box.width, columns),
    part(event.clientY - box.top, box.height, rows)
  ];
}

// Arrow keys, Home and End as a step [across, up]; null for other keys.
function stepOf(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  const steps = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, 1],
    ArrowDown: [0, -1],
    Home: [-Infinity, 0],
    End: [Infinity, 0]
  };
  const step = steps[event.key] ?? null;
  if (step) event.preventDefault();
  return step;
}
