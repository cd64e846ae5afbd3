// Part 3: the loss, the history of a neuron, the plane of the lesson, names.

const kChart = {
  width: 620,
  height: 230,
  left: 58,
  right: 26,
  top: 10,
  bottom: 30
};

// Two to five round numbers in [low, high].
function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 2 || 1));
  const nice = [5, 2, 1].map((n) => n * step).find((n) => (high - low) / n >= 2) ?? step;
  const found = [];
  for (let at = Math.ceil(low / nice) * nice; at <= high + nice * 1e-9; at += nice) found.push(at);
  return found;
}

// A chart of lines [{points: [[x, y], …], kind}] over the steps, with a mark at `now`.
function chart(label, lines, now, height = kChart.height) {
  const {width, left, right, top, bottom} = kChart;
  const all = lines.flatMap((line) => line.points).filter(([, y]) => Number.isFinite(y));
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  if (all.length < 2) return svg;
  const ys = all.map(([, y]) => y);
  let low = Math.min(...ys), high = Math.max(...ys);
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const last = Math.max(...all.map(([x]) => x), 1);
  const xOf = (x) => left + x / last * (width - left - right);
  const yOf = (y) => top + (high - y) / (high - low) * (height - top - bottom);
  for (const at of ticks(low, high)) {
    svg.append(
        drawn("line", {class: "grid", x1: left, x2: width - right, y1: yOf(at), y2: yOf(at)}),
        drawn("text", {x: left - 6, y: yOf(at) + 4, "text-anchor": "end"}, +at.toPrecision(3)));
  }
  for (const at of ticks(0, last)) {
    svg.append(drawn(
        "text", {x: xOf(at), y: height - bottom + 18, "text-anchor": "middle"},
        Math.round(at).toLocaleString("en")));
  }
  for (const {points, kind} of lines) {
    const path = points.filter(([, y]) => Number.isFinite(y))
                     .map(([x, y]) => `${xOf(x).toFixed(1)},${yOf(y).toFixed(1)}`);
    svg.append(drawn("polyline", {class: kind, points: path.join(" ")}));
  }
  if (now !== undefined && now <= last)
    svg.append(
        drawn("line", {class: "now", x1: xOf(now), x2: xOf(now), y1: top, y2: height - bottom}));
  return svg;
}

// ---- loss

// The mean of the last tenth of what came before each point.
function smooth(points) {
  const n = Math.max(1, Math.round(points.length / 10));
  let sum = 0;
  return points.map(([x, y], i) => {
    sum += y - (i >= n ? points[i - n][1] : 0);
    return [x, sum / Math.min(i + 1, n)];
  });
}
views.push((of) => {
  const points = curve ? Array.from(curve.means, (y, i) => [(i + 0.5) * curve.stride, y]) : [];
  const lines = [{points, kind: "rough"}, {points: smooth(points), kind: "smooth"}];
  find("loss").replaceChildren(chart("Loss over the steps", lines, of.step));
});

// ---- a neuron

function caption(text, element) {
  return make("figure", {}, make("figcaption", {textContent: text}), element);
}
views.push((of) => {
  const neuron = chosen.neuron;
  const name = neuron < 0 ? "Choose a neuron of the picture: click it, or use the arrow keys." :
                            nameOf(neuron);
  if (find("neuron-name").textContent !== name) find("neuron-name").textContent = name;
  if (neuron < 0) {
    find("history").replaceChildren();
    find("neuron-values").textContent = "";
    return;
  }
  find("neuron-values").textContent = `: activation ${
      short(activation(of, neuron))}, d loss / d activation ${short(slope(of, neuron))}.`;
  const over = (number) => frames.map((each) => [each.step, number(each)]);
  const strength = (each) => {  // over all positions
    let sum = 0;
    for (let at = neuron; at < each.activations.length; at += nNeurons)
      sum += Math.abs(each.activations[at]);
    return sum / each.n_positions;
  };
  const incoming = [];
  for (const connection of network.connections) {
    eachWeight(connection, (_, target, at) => {
      if (target === neuron)
        incoming.push({
          points: over((each) => each.weights[at]),
          kind: of.weights[at] < 0 ? "against" : "smooth"
        });
    });
  }
  const figures = [caption(
      "Mean size of its activation over the name or point",
      chart(
          "Activation over the steps", [{points: over(strength), kind: "smooth"}], of.step, 150))];
  if (incoming.length > 0) {
    figures.push(caption(
        `Its ${incoming.length} weights, from the left`,
        chart("Weights over the steps", incoming, of.step, 190)));
  }
  find("history").replaceChildren(...figures);
});

// ---- the lesson's plane

const plane = find("plane");
if (plane) {
  const kSize = 420;
  views.push((of) => {
    const n = network.n_grid;
    const image = new ImageData(n, n);
    for (let at = 0; at < n * n; ++at)
      image.data.set(
          [...mixed((of.grid[at] - 127.5) / 127.5 * 0.6), 255],
          4 * ((n - 1 - Math.floor(at / n)) * n + at % n));
    const small = make("canvas", {width: n, height: n});
    small.getContext("2d").putImageData(image, 0, 0);
    const context = sized(plane, kSize, kSize);
    context.drawImage(small, 0, 0, kSize, kSize);
    const to = (x, y) => [(x + 1) / 2 * kSize, (1 - y) / 2 * kSize];
    drawBoundary(context, of.grid, n, kSize / n);
    network.points.forEach(([x, y, kind]) => {
      const [px, py] = to(x, y);
      context.lineWidth = 2;
      context.strokeStyle = css(kind ? colors.blue : colors.orange);
      context.fillStyle = css(colors.page);
      context.beginPath();
      if (kind) context.arc(px, py, 3.6, 0, 7);
      else context.rect(px - 3, py - 3, 6, 6);
      context.fill();
      context.stroke();
    });
    const [px, py] = to(...network.points[of.point]);
    context.strokeStyle = css(colors.text);
    context.beginPath();
    for (const [dx, dy] of [[8, 0], [-8, 0], [0, 8], [0, -8]]) {
      context.moveTo(px + dx / 4, py + dy / 4);
      context.lineTo(px + dx * 1.5, py + dy * 1.5);
    }
    context.stroke();
    find("accuracy").textContent = `${(100 * of.accuracy).toFixed(1)} % of ${
        network.points.length} points are on the right side.`;
  });
}

// Where neighbouring cells say different kinds.
function drawBoundary(context, grid, n, size) {
  context.strokeStyle = css(colors.text);
  context.lineWidth = 1.5;
  context.beginPath();
  const isSecond = (row, column) => grid[row * n + column] > 127;
  for (let row = 0; row < n; ++row) {
    for (let column = 0; column < n; ++column) {
      const top = (n - 1 - row) * size, left = column * size;
      if (column + 1 < n && isSecond(row, column) !== isSecond(row, column + 1)) {
        context.moveTo(left + size, top);
        context.lineTo(left + size, top + size);
      }
      if (row + 1 < n && isSecond(row, column) !== isSecond(row + 1, column)) {
        context.moveTo(left, top);
        context.lineTo(left + size, top);
      }
    }
  }
  context.stroke();
}

// ---- names

const characters = network.groups[0].labels;
const nameChips = find("name");
if (nameChips) {
  views.push((of) => {
    const hadFocus = nameChips.contains(document.activeElement);
    nameChips.replaceChildren(...of.tokens.slice(0, of.n_positions).map((token, position) => {
      const chip = make("button", {type: "button", role: "option", textContent: characters[token]});
      const isChosen = position === chosen.position;
      chip.setAttribute("aria-selected", isChosen);
      chip.tabIndex = isChosen ? 0 : -1;
      chip.addEventListener("click", () => choosePosition(position));
      return chip;
    }));
    if (hadFocus) nameChips.querySelector("[aria-selected=true]").focus();
    find("expected").textContent = expectation(of);
    const made = frames.slice(0, chosen.frame + 1).filter((each) => each.made_up).slice(-16);
    find("names").replaceChildren(...made.reverse().map(
        (each) => make("li", {}, make("span", {textContent: each.step}), each.made_up)));
  });
  nameChips.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    event.preventDefault();
    choosePosition(chosen.position + by);
  });
}
function choosePosition(position) {
  find("walk").checked = false;
  choose({position});
}

// "After "em" it expects m 31 %, i 12 %, …; m came, with 31 %."
function expectation(of) {
  const first = nNeurons - characters.length;
  const logits = characters.map((_, i) => activation(of, first + i));
  const highest = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - highest));
  const total = powers.reduce((a, b) => a + b, 0);
  const chance = (token) => `${characters[token]} ${percent(powers[token] / total)}`;
  const best = [...powers.keys()].sort((a, b) => powers[b] - powers[a]).slice(0, 4);
  const before = of.tokens.slice(1, chosen.position + 1).map((token) => characters[token]).join("");
  return `${before ? `After “${before}”` : "At the beginning"} it expects ${
      best.map(chance).join(", ")}. What came: ${chance(of.tokens[chosen.position + 1])}.`;
}
