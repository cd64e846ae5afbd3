// The page of `limpid explain`, part 3: a second run beside the first, and times.

function startContrasts() {
  for (const each of data.contrasts) {
    const chips = make("div", {
      className: "chips",
      role: "listbox",
      "aria-label": `Divergence of each prediction ${each.title}; arrow keys choose a token`
    });
    const bitsAt = (place) => place > 0 ? each.divergence[place - 1] : 0;
    startChips(
        chips, (place) => Math.min(0.9, Math.sqrt(bitsAt(place)) / 2),
        (place) => place > 0 ? `, ${bitsAt(place).toFixed(3)} bits of divergence` : "");
    const title = make("h3", {}), text = make("p", {}), table = make("table");
    table.className = "numbers";
    const [before, after] = each.mean_surprise.map((bits) => bits.toFixed(3));
    find("contrasts")
        .append(make(
            "div", {className: "panel"}, make("h3", {}, `The model, and the model ${each.title}`),
            make(
                "p", {},
                `${whereTheyPart(each)} The mean surprise of the text goes from ${before} to ${
                    after} bits a token; the mean divergence ` +
                    `of the predictions is ${each.mean_divergence.toFixed(3)} bits.`),
            make(
                "div", {className: "columns"},
                make(
                    "div", {}, make("h3", {}, "Distance of the residual streams"),
                    distanceChart(each.distance)),
                make("div", {className: "chosen-place"}, title, text, table)),
            make(
                "h3", {},
                "Divergence of the prediction of each token (the stronger the colour, the more)"),
            chips));
    views.push((change) => {
      if (change && !("place" in change)) return;
      title.replaceChildren("The prediction of ", nameOfPlace(chosen.place));
      text.textContent = describePlace(each, chosen.place);
      table.replaceChildren(...changeRows(changesAt(each, chosen.place)));
    });
  }
}

function whereTheyPart({distance, first_layer: first}) {
  if (!distance.length)
    return "The models have different shapes, so their layers are not compared.";
  if (first >= data.n_layers) return "Their layers do not differ.";
  return `They part ${first < 0 ? "at the embedding" : `in layer ${first}`}.`;
}

// The predictions of a place were made at the position before it.
function describePlace(contrast, place) {
  if (place === 0) return "Nothing came before it, so neither run predicted it.";
  const distance = contrast.token_distance[place - 1];
  const stream = distance === undefined ? "" :
      distance === 0                    ? "The residual streams that made them are equal. " :
                       `The residual streams that made them differ by ${percent(distance)}. `;
  const came = place < nTokens ?
      `The token that came was a surprise of ${data.surprise[place].toFixed(2)} bits, ` +
          `and of ${contrast.surprise[place].toFixed(2)} bits in the second run. ` :
      "";
  const bits = contrast.divergence[place - 1];
  const seen =
      changesAt(contrast, place).length || isNaN(bits) ? "" : "No probability changes by 0.05 %.";
  return `The predictions differ by ${bits.toFixed(3)} bits. ${stream}${came}${seen}`;
}

// The largest changes {id, before, after} that can be seen.
const kLeastShownChange = 0.0005;
function changesAt(contrast, place) {
  if (place === 0) return [];
  const first = place > 1 ? contrast.ends[place - 2] : 0;
  return Array
      .from(
          {length: contrast.ends[place - 1] - first}, (_, i) => ({
                                                        id: contrast.ids[first + i],
                                                        before: contrast.before[first + i] / 65535,
                                                        after: contrast.after[first + i] / 65535
                                                      }))
      .filter(({before, after}) => Math.abs(after - before) >= kLeastShownChange)
      .slice(0, 10);
}

function distanceChart(distance) {
  const width = 520, height = 220, left = 52, top = 12, bottom = 36;
  // A damaged model can have distances that are not finite. The line leaves them out.
  const numbers = distance.filter(Number.isFinite);
  const high = Math.max(1e-9, ...numbers);
  const at = (i) => `${percent(distance[i])} ${i ? `after layer ${i - 1}` : "at the embedding"}`;
  const svg = picture(
      width, height,
      "Distance of the residual streams after each layer" +
          (numbers.length ? `: ${at(0)}, ${at(distance.length - 1)}, at most ${
                                at(distance.indexOf(Math.max(...numbers)))}` :
                            ""));
  const x = (i) => left + i / Math.max(1, distance.length - 1) * (width - left - 12);
  const y = (value) => top + (1 - value / high) * (height - top - bottom);
  for (const value of [0, 0.5 * high, high])
    svg.append(...gridLine(left, width, y(value), `${(100 * value).toPrecision(2)} %`));
  svg.append(drawn("polyline", {
    fill: "none",
    stroke: "var(--blue)",
    "stroke-width": 2.5,
    points:
        distance.map((value, i) => Number.isFinite(value) ? `${x(i)},${y(value)}` : "").join(" ")
  }));
  for (let i = 0; i < distance.length; i += Math.ceil(distance.length / 12))
    svg.append(faintText(x(i), height - 18, i === 0 ? "e" : i - 1));
  svg.append(faintText((left + width) / 2, height - 2, "layer (e: embedding)"));
  return svg;
}

function changeRows(changes) {
  if (!changes.length) return [];
  const head = ["token", "before", "after", "change"];
  return [
    make("tr", {}, ...head.map((name) => make("th", {scope: "col"}, name))),
    ...changes.map(
        ({id, before, after}) => make(
            "tr", {}, make("td", {}, tokenSpan(id)), make("td", {}, percent(before)),
            make("td", {}, percent(after)),
            make("td", {}, `${signed(100 * (after - before), 1)} %`)))
  ];
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
      ...["operation", "calls", "ms", "share", "", "MB of weights", "GB/s of weights", "GFLOP/s",
          ...(data.limits ? ["of the limit"] : [])]
          .map((name) => make("th", {scope: "col"}, name))));
  for (const {op, n_calls: calls, seconds, weight_bytes: bytes, flops, share_of_limit: limit} of
           data.times) {
    const bar = make("span", {className: "bar"});
    bar.style.width = `${8 * seconds / total}rem`;
    table.append(make(
        "tr", {},
        ...[op, calls, (1000 * seconds).toFixed(1), percent(seconds / total), bar,
            bytes ? (bytes / 1e6).toFixed(1) : "", bytes ? (bytes / seconds / 1e9).toFixed(1) : "",
            flops ? (flops / seconds / 1e9).toFixed(1) : "",
            ...(data.limits ? [isNaN(limit) ? "" : percent(limit)] : [])]
            .map(
                (content) => make("td", {}, content instanceof Node ? content : String(content)))));
  }
}
