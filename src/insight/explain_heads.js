// The page of `limpid explain`, part 4: attention, sizes, and the start.

// ---- attention

const mapOf = (layer, head) => data.attention[layer * data.n_heads + head];
const sinkLimit = 0.6;  // of the mean weight on the first token

function headButton(layer, head) {
  const button = make("button", {type: "button"}, headName(layer, head));
  button.addEventListener("click", () => {
    choose({layer, head});
    find("head-title").scrollIntoView({block: "nearest"});
  });
  return button;
}

// The weights that are known of one row, as [column, weight], strongest first. Of a long text the
// page has the rows of some heads only, and of the others the small pictures.
const hasRows = (map) => "kept" in map;
function weightsOf(map, row) {
  if (!hasRows(map)) return [];
  const known = [[0, map.first[row] / 255]];
  for (let i = row * map.kept; i < (row + 1) * map.kept; ++i) {
    if (map.weights[i] > 0) known.push([map.columns[i], map.weights[i] / 255]);
  }
  return known.filter(([, weight]) => weight > 0).sort((a, b) => b[1] - a[1]);
}

function startAttention() {
  const habits = [
    "the first token (sinks)", "the token before", "an earlier copy of the same token",
    "the token behind an earlier copy (induction)"
  ];
  habits.forEach((name, habit) => {
    const best = data.attention.map((map, i) => [map.habits[habit], i])
                     .sort((a, b) => b[0] - a[0])
                     .slice(0, 4)
                     .filter(([share]) => share > 0.02);
    if (!best.length) return;
    find("habits").append(make(
        "div", {}, `${name}:`,
        ...best.flatMap(
            ([
              share, i
            ]) => [headButton(Math.floor(i / data.n_heads), i % data.n_heads), percent(share)])));
  });
  for (const [id, n, key] of [
           ["choose-layer", data.n_layers, "layer"], ["choose-head", data.n_heads, "head"]]) {
    for (let i = 0; i < n; ++i) find(id).append(make("option", {value: i}, String(i)));
    find(id).addEventListener("change", () => choose({[key]: Number(find(id).value)}));
  }
  const map = find("heads-map");
  map.addEventListener("click", (event) => {
    const [head, row] = cellAt(map, event, data.n_heads, data.n_layers);
    choose({layer: data.n_layers - 1 - row, head});
  });
  map.addEventListener("keydown", (event) => {
    const step = stepOf(event);
    if (step)
      choose({
        head: Math.max(0, Math.min(data.n_heads - 1, chosen.head + step[0])),
        layer: chosen.layer + step[1]
      });
  });
  find("hide-sink").addEventListener("change", () => choose({layer: chosen.layer}));
  const matrix = find("head-matrix");
  matrix.addEventListener(
      "click", (event) => choose({place: 1 + cellAt(matrix, event, nTokens, nTokens)[1]}));
  matrix.addEventListener("mousemove", (event) => {
    const map = mapOf(chosen.layer, chosen.head);
    const [column, row] = cellAt(matrix, event, nTokens, nTokens);
    const weight = weightsOf(map, row).find(([at]) => at === column)?.[1] ?? 0;
    matrix.title = column > row || !hasRows(map) ?
        "" :
        `${visible(data.ids[row])} looks at ${visible(data.ids[column])}: ${percent(weight)}`;
  });
  // A head with a clear habit is a good one to begin with: its rows are kept in a long text too.
  const strongest = data.attention.map((each, i) => [Math.max(...each.habits.slice(1, 4)), i])
                        .sort((a, b) => b[0] - a[0])[0][1];
  chosen.layer = Math.floor(strongest / data.n_heads);
  chosen.head = strongest % data.n_heads;
  views.push(drawHeadsMap, nameHead, drawHead, drawLines);
}

// The small pictures of all heads, painted once; a frame around the chosen one.
let headsPainted = null;
function drawHeadsMap(change) {
  if (change && !("layer" in change || "head" in change || "theme" in change)) return;
  const map = find("heads-map");
  const size =
      Math.max(12, Math.min(36, Math.floor(560 / data.n_heads), Math.floor(560 / data.n_layers)));
  if (!headsPainted || change?.theme) {
    headsPainted = document.createElement("canvas");
    headsPainted.width = data.n_heads * size;
    headsPainted.height = data.n_layers * size;
    const context = headsPainted.getContext("2d");
    const one = document.createElement("canvas");
    data.attention.forEach((each, i) => {
      const n = each.n_tiles;
      fillCells(one, n, n, 1, (column, row) => each.tiles[row * n + column] / 255);
      const x = i % data.n_heads * size,
            y = (data.n_layers - 1 - Math.floor(i / data.n_heads)) * size;
      context.drawImage(one, x + 1, y + 1, size - 2, size - 2);
      if (each.habits[0] > sinkLimit) {
        context.strokeStyle = css("line");
        context.strokeRect(x + 1.5, y + 1.5, size - 3, size - 3);
      }
    });
  }
  map.width = headsPainted.width;
  map.height = headsPainted.height;
  const context = map.getContext("2d");
  context.drawImage(headsPainted, 0, 0);
  context.strokeStyle = css("orange");
  context.lineWidth = 3;
  context.strokeRect(
      chosen.head * size + 1, (data.n_layers - 1 - chosen.layer) * size + 1, size - 2, size - 2);
}

function nameHead(change) {
  if (change && !("layer" in change || "head" in change)) return;
  const map = mapOf(chosen.layer, chosen.head);
  const name = headName(chosen.layer, chosen.head);
  find("choose-layer").value = chosen.layer;
  find("choose-head").value = chosen.head;
  find("head-title").textContent = `Head ${name}: rows look at columns`;
  const [toFirst, previous, same, induction] = map.habits.map(percent);
  const habits =
      `${toFirst} of its weight is on the first token, ${previous} on the token before, ${
          same} on earlier copies of the same token, ${induction} on what followed them`;
  find("head-detail").textContent = `${name}: on average ${habits}. ` +
      (hasRows(map) ?
           "The scale of the colours is a square root, so that small weights show." :
           "The text is long, so of this head only the small picture is kept: the largest weight of each square.");
  find("head-matrix").setAttribute("aria-label", `Attention weights of head ${name}: ${habits}`);
}

function drawHead(change) {
  if (change && !("layer" in change || "head" in change || "place" in change)) return;
  const map = mapOf(chosen.layer, chosen.head);
  const most = hasRows(map) ? Math.min(nTokens, 1024) : map.n_tiles;  // cells along a side
  const cells = hasRows(map) ? cellsOfRows(map, most) :
                               Float32Array.from(map.tiles, (weight) => weight / 255);
  const matrix = find("head-matrix");
  const size = Math.max(1, Math.min(24, Math.floor(380 / most)));
  const context =
      fillCells(matrix, most, most, size, (column, row) => Math.sqrt(cells[row * most + column]));
  if (chosen.place > 0) {
    context.strokeStyle = css("orange");
    context.lineWidth = 2;
    const row = Math.floor((chosen.place - 1) * most / nTokens);
    context.strokeRect(1, row * size, matrix.width - 2, Math.max(size, 2));
  }
}

// The largest weight of each cell of a picture with `most` cells along a side.
function cellsOfRows(map, most) {
  const hidden = find("hide-sink").checked;
  const cells = new Float32Array(most * most);
  const cell = (position) => Math.floor(position * most / nTokens);
  for (let row = 0; row < nTokens; ++row) {
    for (const [column, weight] of weightsOf(map, row)) {
      if (hidden && column === 0) continue;
      const at = cell(row) * most + cell(column);
      cells[at] = Math.max(cells[at], weight);
    }
  }
  return cells;
}

// The chosen row of the head as lines from right to left.
function drawLines(change) {
  if (change && !("layer" in change || "head" in change || "place" in change)) return;
  find("lines").replaceChildren();
  const row = chosen.place - 1;
  if (row < 0) {
    find("lines-title").textContent = "The model did not predict the first token";
    return;
  }
  find("lines-title")
      .replaceChildren(
          `What ${headName(chosen.layer, chosen.head)} reads at `, tokenSpan(data.ids[row]),
          ", to predict ", nameOfPlace(chosen.place));
  const map = mapOf(chosen.layer, chosen.head);
  if (!hasRows(map)) {
    find("lines").append(make("p", {}, "The rows of this head are not kept in a long text."));
    return;
  }
  const shown = 26;
  const begin = Math.max(0, row - shown + 1);
  const step = 22, width = 420, left = 170, right = 250;
  const weights =
      weightsOf(map, row).filter(([column]) => !(find("hide-sink").checked && column === 0));
  const height = (row - begin + 1) * step + 8;
  const y = (column) => (column - begin) * step + 18;
  const read = weights.slice(0, 8).map(
      ([column, weight]) => `${visible(data.ids[column])} at ${column} ${percent(weight)}`);
  const svg = picture(width, height, `Lines to the tokens that the head reads: ${read.join(", ")}`);
  for (const [column, weight] of weights) {
    if (column < begin) continue;
    svg.append(drawn("line", {
      x1: left + 4,
      y1: y(column) - 4,
      x2: right - 4,
      y2: y(row) - 4,
      stroke: "var(--blue)",
      "stroke-width": 1 + 7 * weight,
      opacity: 0.15 + 0.85 * weight,
      "stroke-linecap": "round"
    }));
  }
  for (let column = begin; column <= row; ++column) {
    const weight = weights.find(([at]) => at === column)?.[1] ?? 0;
    svg.append(drawn(
        "text", {x: left, y: y(column), "text-anchor": "end", class: weight > 0.05 ? "" : "faint"},
        `${weight > 0.05 ? percent(weight) + "  " : ""}${visible(data.ids[column]).slice(0, 16)}`));
  }
  svg.append(drawn("text", {x: right, y: y(row)}, visible(data.ids[row]).slice(0, 16)));
  find("lines").append(svg);
  const outside = weights.filter(([column, weight]) => column < begin && weight > 0.02).slice(0, 6);
  if (outside.length) {
    find("lines").append(make(
        "p", {}, "Further back: ",
        ...outside.flatMap(
            ([column, weight], i) =>
                [i ? ", " : "", tokenSpan(data.ids[column]), ` at ${column} ${percent(weight)}`])));
  }
}

// ---- sizes

function startSizes() {
  const table = find("outliers");
  table.append(make(
      "tr", {},
      ...["layer", "feature", "size", "at token", "dead features", "quiet neurons"].map(
          (name) => make("th", {scope: "col"}, name))));
  for (const {layer, outlier: [feature, token, size], dead, quiet, quiet_first: named} of data
           .norms) {
    const more = quiet > named.length ? ", …" : "";
    table.append(make(
        "tr", {},
        ...[layerName(layer), feature, size.toFixed(1), `${visible(data.ids[token])} (${token})`,
            dead,
            layer < 0 ? "" :
                quiet ? `${quiet}: ${named.join(", ")}${more}` :
                        0]
            .map((text) => make("td", {}, String(text)))));
  }
  views.push(drawSizes);
}

const lines = [
  ["stream", "residual stream", "var(--blue)", ""],
  ["attention", "attention adds", "var(--orange)", "7 4"],
  ["mlp", "MLP adds", "var(--green)", "2 3"]
];

const mean = (list) => list.length ? list.reduce((sum, x) => sum + x, 0) / list.length : 0;

// "Mean norms layer by layer. Residual stream: 5.10 at the embedding, …"
function describeSizes() {
  const size = (each, name) => `${mean(each[name]).toPrecision(3)} at ${layerName(each.layer)}`;
  const sentences = lines.map(([name, text]) => {
    const known = data.norms.filter((each) => each[name].length);
    const largest = known.reduce((a, b) => mean(b[name]) > mean(a[name]) ? b : a);
    return `${text}: ${size(known[0], name)}, ${size(known.at(-1), name)}, at most ${
        size(largest, name)}`;
  });
  return `Mean norms layer by layer. ${sentences.join(". ")}`;
}

function drawSizes(change) {
  if (change && !("place" in change)) return;
  const width = 560, height = 300, left = 52, top = 34, bottom = 40;
  const token = Math.max(0, chosen.place - 1);
  const curves = lines.flatMap(
      ([name, , color, dashes]) => [[true, mean], [false, (list) => list[token] ?? 0]].map(
          ([strong, value]) => ({
            color,
            dashes,
            strong,
            points: data.norms.map((each) => [each.layer, value(each[name])])
                        .filter(([, size]) => size > 0 && size < Infinity)
          })));
  const sizes = curves.flatMap(({points}) => points.map(([, size]) => Math.log10(size)));
  const low = sizes.length ? Math.floor(Math.min(...sizes)) : 0,
        high = Math.max(low + 1, Math.ceil(Math.max(...sizes)));
  const x = (layer) => left + (layer + 1) / Math.max(1, data.n_layers) * (width - left - 12);
  const y = (log) => top + (high - log) / (high - low) * (height - top - bottom);
  const svg = picture(width, height, describeSizes());
  for (let power = low; power <= high; ++power) {
    const number = 10 ** power >= 1 ? 10 ** power : (10 ** power).toPrecision(1);
    svg.append(...gridLine(left, width, y(power), number));
  }
  for (let layer = 0; layer < data.n_layers; layer += Math.ceil(data.n_layers / 12))
    svg.append(faintText(x(layer), height - 20, layer));
  svg.append(faintText((left + width) / 2, height - 4, "layer"));
  for (const {color, dashes, strong, points} of curves) {
    svg.append(drawn("polyline", {
      fill: "none",
      stroke: color,
      "stroke-width": strong ? 2.5 : 1,
      opacity: strong ? 1 : 0.6,
      "stroke-dasharray": dashes,
      points: points.map(([layer, size]) => `${x(layer)},${y(Math.log10(size))}`).join(" ")
    }));
  }
  lines.forEach(([, name, color, dashes], i) => {
    const at = left + 165 * i;
    svg.append(
        drawn("line", {
          x1: at,
          x2: at + 28,
          y1: 12,
          y2: 12,
          stroke: color,
          "stroke-width": 2.5,
          "stroke-dasharray": dashes
        }),
        drawn("text", {x: at + 34, y: 16}, name));
  });
  find("sizes-chart").replaceChildren(svg);
}

// ---- the start

function start(text) {
  read(text);
  readColors();
  startTokens();
  startLens();
  startParts();
  startAttention();
  startSizes();
  startContrasts();
  startTimes();
  for (const draw of views) draw();
  // Paper is white in the dark theme too, and the screen dark again afterwards.
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    matchMedia(query).addEventListener("change", redraw);
  addEventListener("resize", () => drawLensTable());
}
function redraw() {
  readColors();
  choose({place: chosen.place, layer: chosen.layer, theme: true});
}

// In a frame the numbers come from the page around it, which is of the same origin.
function startInFrame({source, origin, data: text}) {
  if (source !== parent || origin !== location.origin || data) return;
  start(text);
  document.title = `Inside ${data.model}`;
  document.querySelector("h1").textContent = document.title;
  find("description").textContent = `${data.description}. ${nTokens} tokens, the last ${
      nTokens - data.n_prompt} written by the model.`;
}
if (find("data").textContent) {
  start(find("data").textContent);
} else if (parent !== window) {
  addEventListener("message", startInFrame);
  parent.postMessage("ready", location.origin);
}
