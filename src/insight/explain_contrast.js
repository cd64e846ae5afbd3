// The page of `limpid explain`, part 3: a second run beside the first, and times.

function startContrasts() {
  for (const each of data.contrasts) {
    const chips = make("div", {className: "chips"});
    each.divergence_bits.forEach((bits, position) => {
      const chip = make("button", {type: "button"}, ...tokenNodes(data.ids[position]));
      chip.title = `after this token: ${bits.toFixed(3)} bits`;
      heat(chip, Math.min(0.9, Math.sqrt(bits) / 2));
      chip.addEventListener("click", () => choose({place: position + 1}));
      chips.append(chip);
    });
    const [before, after] = each.mean_surprise_bits;
    const first = each.first_layer;
    const part = !each.distance.length ?
        "The models have different shapes, so their layers are not compared." :
        first >= data.n_layers ?
        "Their layers do not differ." :
        `They part ${first < 0 ? "at the embedding" : `in layer ${first}`}.`;
    find("contrasts")
        .append(make(
            "div", {className: "panel"}, make("h3", {}, `The model, and the model ${each.title}`),
            make(
                "p", {},
                `${part} The mean surprise of the text goes from ${before.toFixed(3)} to ${
                    after.toFixed(3)} bits a token.`),
            make(
                "div", {className: "columns"},
                make(
                    "div", {}, make("h3", {}, "Distance of the residual streams"),
                    distanceChart(each.distance)),
                make(
                    "div", {}, make("h3", {}, "After the last token"), changesTable(each.changes))),
            make(
                "h3", {},
                "Divergence of the prediction after each token (the stronger the colour, the more)"),
            chips));
  }
}

function distanceChart(distance) {
  const width = 520, height = 220, left = 52, top = 12, bottom = 36;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  svg.append(drawn("title", {}, "Distance of the residual streams after each layer"));
  const high = Math.max(1e-9, ...distance);
  const x = (i) => left + i / Math.max(1, distance.length - 1) * (width - left - 12);
  const y = (value) => top + (1 - value / high) * (height - top - bottom);
  for (const share of [0, 0.5, 1]) {
    svg.append(
        drawn(
            "line", {x1: left, x2: width, y1: y(share * high), y2: y(share * high), class: "grid"}),
        drawn(
            "text", {x: left - 6, y: y(share * high) + 4, "text-anchor": "end", class: "faint"},
            `${(100 * share * high).toPrecision(2)} %`));
  }
  svg.append(drawn("polyline", {
    fill: "none",
    stroke: "var(--blue)",
    "stroke-width": 2.5,
    points: distance.map((value, i) => `${x(i)},${y(value)}`).join(" ")
  }));
  for (let i = 0; i < distance.length; i += Math.ceil(distance.length / 12))
    svg.append(drawn(
        "text", {x: x(i), y: height - 18, "text-anchor": "middle", class: "faint"},
        i === 0 ? "e" : i - 1));
  svg.append(drawn(
      "text", {x: (left + width) / 2, y: height - 2, "text-anchor": "middle", class: "faint"},
      "layer (e: embedding)"));
  return svg;
}

function changesTable(changes) {
  const table = make(
      "table", {className: "numbers"},
      make(
          "tr", {},
          ...["token", "before", "after", "change"].map(
              (name) => make("th", {scope: "col"}, name))));
  for (const {id, before, after} of changes.slice(0, 10)) {
    table.append(make(
        "tr", {}, make("td", {}, tokenSpan(id)), make("td", {}, percent(before)),
        make("td", {}, percent(after)), make("td", {}, `${signed(100 * (after - before), 1)} %`)));
  }
  return table;
}

// ---- times and memory

function startTimes() {
  const table = find("times-table");
  if (!table) return;
  const total = data.times.reduce((sum, each) => sum + each.seconds, 0);
  const mega = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
  find("memory").textContent = `${(1000 * total).toFixed(0)} ms in all. Memory: weights ${
      mega(data.weight_bytes)}, keys and values ${mega(data.cache_bytes)}. ${data.limits}`;
  table.append(make(
      "tr", {},
      ...["operation", "calls", "ms", "share", "", "GB/s of weights", "GFLOP/s",
          ...(data.limits ? ["of the limit"] : [])]
          .map((name) => make("th", {scope: "col"}, name))));
  for (const {op, n_calls: calls, seconds, weight_bytes: bytes, flops, share_of_limit: limit} of
           data.times) {
    const bar = make("span", {className: "bar"});
    bar.style.width = `${8 * seconds / total}rem`;
    table.append(make(
        "tr", {},
        ...[op, calls, (1000 * seconds).toFixed(1), percent(seconds / total), bar,
            bytes ? (bytes / seconds / 1e9).toFixed(1) : "",
            flops ? (flops / seconds / 1e9).toFixed(1) : "",
            ...(data.limits ? [limit === null ? "" : percent(limit)] : [])]
            .map(
                (content) => make("td", {}, content instanceof Node ? content : String(content)))));
  }
}
