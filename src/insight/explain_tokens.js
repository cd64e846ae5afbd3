// The page of `limpid explain`, part 2: the tokens, the logit lens, the parts of a logit.

// ---- the text, coloured by surprise

const kMostBits = 12;  // of the colour scale
const surpriseShare = (bits) => isNaN(bits) ? 0 : Math.min(1, bits / kMostBits) * 0.9;

function startTokens() {
  const answer =
      data.n_prompt < nTokens ? [make("span", {className: "swatch"}), "written by the model"] : [];
  find("surprise-legend")
      .append(
          "0 bits: certain", make("span", {className: "ramp"}),
          `${kMostBits} bits: one in ${2 ** kMostBits}`, ...answer);
  startChips(find("chips"), (place) => surpriseShare(data.surprise[place]), (place) => {
    const bits = data.surprise[place];
    return isNaN(bits) ? "" : `, ${bits.toFixed(1)} bits`;
  });
  views.push(drawExpected);
}

// A list of all places, of which arrow keys choose one; the Tab key stops once. `share` colours a
// place, and what `label` says of it is read aloud and shown to the mouse.
function startChips(chips, share, label) {
  for (let place = 0; place <= nTokens; ++place) {
    const title = textOfPlace(place) + label(place);
    const chip = make(
        "button", {
          role: "option",
          tabIndex: -1,
          className: place >= data.n_prompt && place < nTokens ? "answer" : "",
          title,
          "aria-label": title
        },
        ...(place < nTokens ? tokenNodes(data.ids[place]) : ["…"]));
    heat(chip, share(place));
    chip.addEventListener("click", () => choose({place}));
    chips.append(chip);
  }
  chips.addEventListener("keydown", (event) => {
    const step = stepOf(event);
    if (!step) return;
    choose({place: chosen.place + step[0] - step[1]});
    chips.children[chosen.place].focus();
  });
  views.push((change) => markChosen(chips, change));
}

function markChosen(chips, change) {
  if (change && !("place" in change)) return;
  for (const old of chips.querySelectorAll("[aria-selected=true]")) {
    old.setAttribute("aria-selected", "false");
    old.tabIndex = -1;
  }
  const chip = chips.children[chosen.place];
  chip.setAttribute("aria-selected", "true");
  chip.tabIndex = 0;
  // The list scrolls to it, and the page does not.
  const top = chip.offsetTop - chips.offsetTop;
  if (top < chips.scrollTop || top + chip.offsetHeight > chips.scrollTop + chips.clientHeight)
    chips.scrollTop = top - chips.clientHeight / 2;
}

function drawExpected(change) {
  if (change && !("place" in change)) return;
  const table = find("expected");
  table.replaceChildren();
  if (chosen.place === 0) {
    find("expected-title").textContent = "The first token";
    find("expected-text").textContent = "Nothing came before it, so the model did not predict it.";
    return;
  }
  const came = chosen.place < nTokens ? data.ids[chosen.place] : null;
  find("expected-title").replaceChildren("Expected in the place of ", nameOfPlace(chosen.place));
  const entropy = data.next.entropy[chosen.place - 1];
  const bits = data.surprise[chosen.place];
  find("expected-text").textContent =
      (came === null ? "" :
                       `It came with a probability of ${percent(2 ** -bits)}, a surprise of ${
                           bits.toFixed(2)} bits. `) +
      `The model hesitated as between ${
          (2 ** entropy).toFixed(entropy < 3 ? 1 : 0)} equally likely tokens (entropy ${
          entropy.toFixed(2)} bits).`;
  for (const {id, p} of predicted(data.next, chosen.place - 1)) {
    const bar = make("span", {className: "bar"});
    bar.style.width = `${100 * p}%`;
    table.append(make(
        "tr", {className: id === came ? "came" : ""},
        make("td", {}, tokenSpan(id), id === came ? " ✓" : ""), make("td", {}, percent(p)),
        make("td", {}, bar)));
  }
}

// ---- the logit lens

const layerName = (layer) => layer < 0 ? "embedding" : `layer ${layer}`;
let lensWindow = [0, 0];  // places of the table: first, end

function startLens() {
  find("lens-legend")
      .append("sure: 0 bits", make("span", {className: "ramp reversed"}), "12 bits and more");
  const map = find("lens-map");
  const {each, columns} = lensColumns();
  if (each > 1) find("lens-legend").append(`; a column is the mean of ${each} tokens`);
  map.addEventListener("click", (event) => {
    const [column, row] = cellAt(map, event, columns, data.lens.length);
    choose({place: column * each + 1, lens: data.lens.length - 1 - row});
  });
  find("lens-table").addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) choose({place: Number(cell.dataset.place), lens: Number(cell.dataset.lens)});
  });
  find("lens-table").addEventListener("keydown", (event) => {
    const step = stepOf(event);
    if (!step) return;
    choose({
      place: Math.max(1, chosen.place + step[0]),
      lens: Math.max(0, Math.min(data.lens.length - 1, chosen.lens + step[1]))
    });
    find("lens-table").querySelector("td[tabindex='0']")?.focus();
  });
  views.push(drawLensMap, drawLensTable);
}

// How many tokens a column of the map stands for, so that the map is not wider than the page.
function lensColumns() {
  const each = Math.ceil(nTokens / 500);
  return {each, columns: Math.ceil(nTokens / each)};
}

function drawLensMap(change) {
  if (change && !("place" in change)) return;
  const map = find("lens-map");
  const {each, columns} = lensColumns();
  const rows = data.lens.length;
  const width = Math.min(16, Math.floor(1000 / columns));
  const height = Math.max(3, Math.min(16, Math.floor(520 / rows)));
  const meanEntropy = (row, column) => {
    const some = data.lens[rows - 1 - row].entropy.subarray(column * each, (column + 1) * each);
    return some.reduce((sum, bits) => sum + bits, 0) / some.length;
  };
  const context = fillCells(
      map, columns, rows, width, (column, row) => 1 - Math.min(1, meanEntropy(row, column) / 12),
      height);
  context.strokeStyle = css("orange");
  context.lineWidth = Math.min(2, width / 2);
  if (chosen.place > 0)
    context.strokeRect(
        Math.floor((chosen.place - 1) / each) * width + 1, 1, width - 2, rows * height - 2);
}

function drawLensTable(change) {
  if (change && !("place" in change || "lens" in change)) return;
  const columns = Math.max(
      3, Math.min(12, Math.floor((find("lens-table").parentElement.clientWidth - 90) / 80)));
  const first =
      Math.max(1, Math.min(chosen.place - Math.floor(columns / 2), nTokens + 1 - columns));
  lensWindow = [first, Math.min(nTokens + 1, first + columns)];
  const places = Array.from({length: lensWindow[1] - first}, (_, i) => first + i);
  const place = Math.max(1, chosen.place);
  const head = make("tr", {}, make("th", {scope: "col"}, "predicts"));
  for (const each of places) {
    head.append(make(
        "th", {scope: "col", className: each === place ? "chosen" : ""},
        ...(each < nTokens ? tokenNodes(data.ids[each]) : ["…"])));
  }
  const body = make("tbody");
  for (let i = data.lens.length - 1; i >= 0; --i) {
    const row = make("tr", {}, make("th", {scope: "row"}, layerName(data.lens[i].layer)));
    for (const each of places) {
      const [best] = predicted(data.lens[i], each - 1);
      const isChosen = each === place && i === chosen.lens;
      const cell =
          make("td", {tabIndex: isChosen ? 0 : -1, title: percent(best.p)}, ...tokenNodes(best.id));
      cell.dataset.place = each;
      cell.dataset.lens = i;
      cell.classList.toggle("right", each < nTokens && best.id === data.ids[each]);
      heat(cell, best.p * 0.9);
      row.append(cell);
    }
    body.append(row);
  }
  find("lens-table").replaceChildren(make("thead", {}, head), body);
  const lens = data.lens[chosen.lens];
  const words = predicted(lens, place - 1)
                    .flatMap(({id, p}, i) => [i ? ", " : "", tokenSpan(id), ` ${percent(p)}`]);
  find("lens-detail")
      .replaceChildren(
          lens.layer < 0 ? "From the embedding alone" : `After layer ${lens.layer}`,
          ", in the place of ", nameOfPlace(place), ": ", ...words,
          `; entropy ${lens.entropy[place - 1].toFixed(2)} bits.`);
}

// ---- who said it

const kShown = 1e-4;  // smaller parts are left out of the sentence on the sum

// {embedding, bias, rounding, head(layer, head), rest(layer), mlp(layer), attention(layer)} of a
// place.
function partsOf(place) {
  const parts = partsAt.get(place - 1);
  if (!parts) return null;
  const {n_layers: layers, n_heads: heads} = data;
  const at = (i) => parts.parts[i] / 32767 * parts.largest;
  const of = {
    ...parts,
    head: (layer, head) => at(layer * heads + head),
    rest: (layer) => at(layers * heads + layer),
    mlp: (layer) => at(layers * (heads + 1) + layer),
  };
  of.attention = (layer) => {
    let sum = of.rest(layer);
    for (let head = 0; head < heads; ++head) sum += of.head(layer, head);
    return sum;
  };
  return of;
}

function startParts() {
  find("parts-legend").append("against", make("span", {className: "ramp both"}), "for");
  views.push(drawParts);
}

function drawParts(change) {
  if (change && !("place" in change)) return;
  const parts = partsOf(chosen.place);
  for (const id of ["parts-layers", "parts-list", "parts-heads"]) find(id).replaceChildren();
  if (!parts) {
    find("parts-sum").textContent = chosen.place === 0 ?
        "The model did not predict the first token." :
        "The parts of this place were not computed: --parts N has those of the last N tokens.";
    return;
  }
  const layers = Array.from({length: data.n_layers}, (_, layer) => layer);
  const attention = layers.map(parts.attention);
  const mlps = layers.map(parts.mlp);
  const total = (list) => list.reduce((sum, x) => sum + x, 0);
  const difference = parts.sum - parts.logit;
  find("parts-sum")
      .replaceChildren(
          "The logit of ", tokenSpan(parts.token),
          ...(parts.against < 0 ? [] : [" minus that of ", tokenSpan(parts.against)]),
          `: embedding ${signed(parts.embedding)}, attention ${signed(total(attention))}` +
              (Math.abs(parts.rest_of_attention) >= kShown ?
                   ` (of it ${signed(parts.rest_of_attention, 4)} from biases and rounding)` :
                   "") +
              `, MLPs ${signed(total(mlps))}` +
              (parts.bias ? `, bias of the norm ${signed(parts.bias)}` : "") +
              (Math.abs(parts.rounding) >= kShown ?
                   `, rounding of the output matrix's input to 8 bits ${
                       signed(parts.rounding, 4)}` :
                   "") +
              `; together ${parts.sum.toFixed(4)}. The model's logit is ${
                  parts.logit.toFixed(
                      4)}, a difference of ${difference.toExponential(1).replace(/-/g, "−")}.`);
  find("parts-layers").append(layerBars(parts, attention, mlps));
  const all = [{name: "embedding", value: parts.embedding}];
  for (const layer of layers) {
    all.push({name: `L${layer}.mlp`, value: mlps[layer]});
    for (let head = 0; head < data.n_heads; ++head)
      all.push({name: headName(layer, head), value: parts.head(layer, head), layer, head});
  }
  all.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const largest = Math.abs(all[0].value) || 1;
  for (const {name, value, layer, head} of all.slice(0, 12)) {
    const bar = make("span", {className: value < 0 ? "bar against" : "bar"});
    bar.style.width = `${100 * Math.abs(value) / largest}%`;
    const label = layer === undefined ? name : headButton(layer, head);
    find("parts-list")
        .append(make(
            "li", {}, make("span", {}, label), make("span", {className: "value"}, signed(value)),
            bar));
  }
  drawHeadParts(parts, layers);
}

function drawHeadParts(parts, layers) {
  let largest = 1e-9;
  for (const layer of layers) {
    for (let head = 0; head < data.n_heads; ++head)
      largest = Math.max(largest, Math.abs(parts.head(layer, head)));
  }
  const strongest = strongestOf(layers.flatMap(
      (layer) => Array.from(
          {length: data.n_heads}, (_, head) => [headName(layer, head), parts.head(layer, head)])));
  const canvas = make("canvas", {
    role: "img",
    "aria-label": `Part of every head: layers from bottom to top, heads from left to right. ` +
        `Largest: ${strongest}`
  });
  const size =
      Math.max(6, Math.min(22, Math.floor(360 / data.n_heads), Math.floor(480 / data.n_layers)));
  fillCells(
      canvas, data.n_heads, data.n_layers, size,
      (head, row) => parts.head(data.n_layers - 1 - row, head) / largest);
  canvas.addEventListener("click", (event) => {
    const [head, row] = cellAt(canvas, event, data.n_heads, data.n_layers);
    choose({layer: data.n_layers - 1 - row, head});
  });
  canvas.addEventListener("mousemove", (event) => {
    const [head, row] = cellAt(canvas, event, data.n_heads, data.n_layers);
    const layer = data.n_layers - 1 - row;
    canvas.title = `${headName(layer, head)}: ${signed(parts.head(layer, head))}`;
  });
  find("parts-heads").append(canvas);
  find("parts-legend").firstChild.textContent = `−${largest.toFixed(2)}`;
  find("parts-legend").lastChild.textContent = `+${largest.toFixed(2)}`;
}

// The largest of [name, value] in words: "L3.H1 +2.10, L2.mlp −0.40".
function strongestOf(values) {
  return values.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
      .slice(0, 5)
      .map(([name, value]) => `${name} ${signed(value)}`)
      .join(", ");
}

// Two bars for each layer: attention and MLP (hatched).
function layerBars(parts, attention, mlps) {
  const width = 520, height = 260, left = 48, bottom = 36, top = 30;
  const values = [parts.embedding, ...attention, ...mlps].filter(Number.isFinite);
  const high = Math.max(0, ...values), low = Math.min(0, ...values);
  const y = (value) => top + (high - value) / (high - low || 1) * (height - top - bottom);
  const strongest = strongestOf([
    ...attention.map((value, layer) => [`attention of layer ${layer}`, value]),
    ...mlps.map((value, layer) => [`MLP of layer ${layer}`, value])
  ]);
  const svg = picture(
      width, height,
      `Part of attention and MLP in each layer. Embedding ${signed(parts.embedding)}; largest: ${
          strongest}`);
  const hatch = drawn("pattern", {
    id: "hatch",
    width: 5,
    height: 5,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)"
  });
  hatch.append(
      drawn("rect", {width: 5, height: 5, fill: "var(--green)", opacity: 0.35}),
      drawn("rect", {width: 2.5, height: 5, fill: "var(--green)"}));
  const defs = drawn("defs", {});
  defs.append(hatch);
  svg.append(defs);
  for (const value of [low, 0, high]) {
    const [number, kind] = value === 0 ? ["0", "axis"] : [signed(value, 1), "grid"];
    svg.append(...gridLine(left, width, y(value), number, kind));
  }
  const slot = (width - left) / (data.n_layers + 1);
  const bar = (x, w, value, fill) => isNaN(value) || svg.append(drawn("rect", {
    x,
    width: Math.max(1, w),
    y: y(Math.max(0, value)),
    height: Math.max(0.5, Math.abs(y(value) - y(0))),
    fill
  }));
  bar(left + slot * 0.2, slot * 0.6, parts.embedding, "var(--faint)");
  attention.forEach((value, layer) => {
    bar(left + slot * (layer + 1.1), slot * 0.38, value, "var(--blue)");
    bar(left + slot * (layer + 1.52), slot * 0.38, mlps[layer], "url(#hatch)");
  });
  const every = Math.ceil(data.n_layers / 12);
  for (let layer = 0; layer < data.n_layers; layer += every)
    svg.append(faintText(left + slot * (layer + 1.5), height - 18, layer));
  svg.append(
      faintText(left + slot * 0.5, height - 18, "e"),
      faintText((left + width) / 2, height - 2, "layer (e: embedding)"));
  [["attention", "var(--blue)"], ["MLP", "url(#hatch)"]].forEach(([name, fill], i) => {
    svg.append(
        drawn("rect", {x: left + 110 * i, y: 4, width: 14, height: 12, fill}),
        drawn("text", {x: left + 110 * i + 20, y: 14}, name));
  });
  return svg;
}
