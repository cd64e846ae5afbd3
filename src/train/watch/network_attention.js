// Part 4: attention of microgpt, the weights with which each character of the name reads others.

const kCell = 24, kSquareLeft = 36, kArcs = 60;

// The weights of one head at a position, on itself and those before.
function attentionOf(of, layer, head, position) {
  const n = of.n_positions;
  const begin = ((position * network.n_layers + layer) * network.n_heads + head) * n;
  return of.attention.subarray(begin, begin + position + 1);
}

// A square of weights, the characters around it, and above it arcs for the chosen character.
function headPicture(of, layer, head) {
  const n = of.n_positions, size = n * kCell, top = kArcs + 18;
  const name = `layer ${layer}, head ${head}`;
  const svg = drawn("svg", {
    viewBox: `0 0 ${kSquareLeft + size + 2} ${top + size + 2}`,
    role: "img",
    "aria-label": `Attention of ${name}: rows read columns`,
  });
  svg.append(drawn("rect", {class: "frame", x: kSquareLeft, y: top, width: size, height: size}));
  const middle = (position) => kSquareLeft + (position + 0.5) * kCell;
  for (let row = 0; row < n; ++row) {
    const label = characters[of.tokens[row]];
    const y = top + row * kCell;
    svg.append(
        drawn("text", {x: kSquareLeft - 5, y: y + 16, "text-anchor": "end"}, label),
        drawn("text", {x: middle(row), y: top - 5, "text-anchor": "middle"}, label));
    attentionOf(of, layer, head, row).forEach((weight, column) => {
      const cell = drawn("rect", {
        class: "cell",
        x: kSquareLeft + column * kCell,
        y,
        width: kCell,
        height: kCell,
        "fill-opacity": weight,
      });
      cell.append(drawn(
          "title", {},
          `${label} (${row}) reads ${characters[of.tokens[column]]} (${column}): ${
              percent(weight)}`));
      svg.append(cell);
    });
  }
  const at = chosen.position;
  svg.append(drawn("rect", {
    class: "row",
    x: kSquareLeft,
    y: top + at * kCell,
    width: (at + 1) * kCell,
    height: kCell,
  }));
  attentionOf(of, layer, head, at).forEach((weight, column) => {
    const [from, to, y] = [middle(at), middle(column), top - 18];
    const rise = Math.min(kArcs, 12 + 6 * (at - column));
    const path = column === at ?
        `M ${from - 5} ${y} q -4 -16 5 -16 q 9 0 5 16` :
        `M ${from} ${y} C ${from} ${y - rise} ${to} ${y - rise} ${to} ${y}`;
    svg.append(drawn("path", {
      class: "arc",
      d: path,
      "stroke-width": 0.5 + 5 * weight,
      "stroke-opacity": 0.1 + 0.9 * weight,
    }));
  });
  return caption(`Layer ${layer}, head ${head}`, svg);
}

// "At m (2), the strongest: layer 0 head 0 e (1) with 62 %, …"
function strongestReads(of) {
  if (!of.attention.every(Number.isFinite)) return "The weights are not numbers any more.";
  const reads = [];
  for (let layer = 0; layer < network.n_layers; ++layer) {
    for (let head = 0; head < network.n_heads; ++head) {
      const weights = attentionOf(of, layer, head, chosen.position);
      const best = weights.indexOf(Math.max(...weights));
      reads.push(`layer ${layer} head ${head} ${characters[of.tokens[best]]} (${best}) with ${
          percent(weights[best])}`);
    }
  }
  return `At ${characters[of.tokens[chosen.position]]} (${chosen.position}), the strongest: ${
      reads.join(", ")}.`;
}

if (find("heads")) {
  views.push((of) => {
    const pictures = [];
    for (let layer = 0; layer < network.n_layers; ++layer) {
      for (let head = 0; head < network.n_heads; ++head)
        pictures.push(headPicture(of, layer, head));
    }
    find("heads").replaceChildren(...pictures);
    find("heads-text").textContent = strongestReads(of);
  });
}
