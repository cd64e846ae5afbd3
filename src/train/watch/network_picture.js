// Part 2: neurons in columns, the weights between them as lines, and the same as matrices.

const picture = find("picture");
const kGap = 2.4;  // rows between groups
const kTop = 42, kSide = 46;

// Where each neuron is: x, y and column. The groups of a column are below one another.
const places = [];
const columns = [];
for (const group of network.groups) (columns[group.column] ??= []).push(group);
const rowsOf = (groups) => groups.reduce((n, group) => n + group.size + kGap, -kGap);
const mostRows = Math.max(...columns.map(rowsOf));
const spacing = Math.max(5, Math.min(34, 600 / mostRows));
const pictureHeight = kTop + mostRows * spacing + 16;
let pictureWidth = 0;

function layOut() {
  const room = picture.parentElement.clientWidth;
  pictureWidth = Math.max(Math.min(room, 1400), columns.length * 96);
  picture.style.width = `${pictureWidth}px`;
  picture.style.height = `${pictureHeight}px`;
  columns.forEach((groups, column) => {
    const x = kSide + column * (pictureWidth - 2 * kSide) / (columns.length - 1);
    let y = kTop + (mostRows - rowsOf(groups)) * spacing / 2 + spacing / 2;
    for (const group of groups) {
      group.y = y;
      for (let i = 0; i < group.size; ++i, y += spacing) places[group.first + i] = {x, y, column};
      y += kGap * spacing;
    }
  });
}

// ---- lines

const kLevels = 20;  // of strength; lines of one level and sign are drawn together
const widthOf = (share) => 0.35 + 2.9 * share;
const alphaOf = (share) => 0.05 + 0.9 * share;

// The line of a weight as it is drawn; numbers of at least `most` have the widest.
function lineOf(number, most) {
  const level = Math.round(Math.min(1, Math.abs(number) / most) * kLevels);
  const share = level / kLevels || 0;
  return {
    level,
    ink: number < 0 ? "orange" : "blue",
    width: widthOf(share),
    alpha: alphaOf(share),
  };
}

function drawLines(context, numbers, most) {
  const buckets = new Map();
  for (const connection of network.connections) {
    eachWeight(connection, (source, target, at) => {
      const isFar = chosen.neuron >= 0 && source !== chosen.neuron && target !== chosen.neuron;
      const line = lineOf(numbers[at], most);
      const key = (isFar ? 0 : 1000) + line.level * 2 + (line.ink === "blue" ? 1 : 0);
      let bucket = buckets.get(key);
      if (!bucket) buckets.set(key, bucket = {line, isFar, ends: []});
      bucket.ends.push(places[source], places[target]);
    });
  }
  for (const key of [...buckets.keys()].sort((a, b) => a - b)) {
    const {line, isFar, ends} = buckets.get(key);
    context.strokeStyle = css(colors[line.ink], isFar ? line.alpha * 0.12 : line.alpha);
    context.lineWidth = line.width;
    context.beginPath();
    for (let i = 0; i < ends.length; i += 2) {
      context.moveTo(ends[i].x, ends[i].y);
      context.lineTo(ends[i + 1].x, ends[i + 1].y);
    }
    context.stroke();
  }
}

// The fill is the activation, the ring is how much the loss would change with it.
function drawNeurons(context, of) {
  const radius = Math.max(2, Math.min(9, spacing * 0.42));
  for (const group of network.groups) {
    const here = Array.from({length: group.size}, (_, i) => group.first + i);
    const most = largest(here.map((neuron) => activation(of, neuron)));
    const steepest = largest(here.map((neuron) => slope(of, neuron)));
    for (const neuron of here) {
      const {x, y} = places[neuron];
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      context.fillStyle = css(mixed(activation(of, neuron) / most));
      context.fill();
      const share = Math.min(1, Math.abs(slope(of, neuron)) / steepest) || 0;
      context.lineWidth = neuron === chosen.neuron ? 3 : 0.75 + 1.75 * share;
      context.strokeStyle = css(neuron === chosen.neuron ? colors.orange : colors.text);
      context.stroke();
      const label = group.labels[neuron - group.first];
      if (label === undefined || spacing < 8) continue;
      context.fillStyle = css(colors.text);
      context.textAlign = group.column === 0 ? "right" : "left";
      const away = (radius + 4) * (group.column === 0 ? -1 : 1);
      context.fillText(label, x + away, y + 4, kSide - radius - 5);
    }
  }
}

function drawTitles(context) {
  context.textAlign = "center";
  context.fillStyle = css(colors.text);
  for (const group of network.groups) {
    const {x} = places[group.first];
    const [layer, name] = group.name.includes(".") ? group.name.split(".") : ["", group.name];
    context.fillText(name, x, group.y - spacing / 2 - 4, 90);
    if (layer && groupsAbove(group) === 0) context.fillText(layer, x, group.y - spacing / 2 - 18);
  }
}
const groupsAbove = (group) => columns[group.column].indexOf(group);

views.push((of) => {
  layOut();
  const context = sized(picture, pictureWidth, pictureHeight);
  context.clearRect(0, 0, pictureWidth, pictureHeight);
  context.font = "12px system-ui, sans-serif";
  const numbers = shownWeights(of);
  const most = strongest(numbers);
  drawLines(context, numbers, most);
  drawNeurons(context, of);
  drawTitles(context);
  find("scale").textContent =
      `The widest lines are ${short(most)} or more, the widest of all ${short(largest(numbers))}.`;
});

// ---- choosing a neuron

picture.addEventListener("click", (event) => {
  const box = picture.getBoundingClientRect();
  const distance = ({x, y}) =>
      Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y);
  const nearest =
      places.reduce((best, place, i) => distance(place) < distance(places[best]) ? i : best, 0);
  choose({neuron: distance(places[nearest]) < 24 ? nearest : -1});
});

function neighbour(across, down) {
  if (chosen.neuron < 0) return 0;
  const here = places[chosen.neuron];
  const column = here.column + across;
  const others = places.map((place, i) => ({...place, i})).filter((each) => each.column === column);
  if (others.length === 0) return chosen.neuron;
  if (down !== 0) {
    const at = others.findIndex((each) => each.i === chosen.neuron) + down;
    return others[Math.max(0, Math.min(others.length - 1, at))].i;
  }
  others.sort((a, b) => Math.abs(a.y - here.y) - Math.abs(b.y - here.y));
  return others[0].i;
}
picture.addEventListener("keydown", (event) => {
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  const move = moves[event.key];
  if (event.key === "Escape") choose({neuron: -1});
  if (!move) return;
  event.preventDefault();
  choose({neuron: neighbour(...move)});
});

// ---- matrices

const matrices = network.connections.map((connection) => {
  const canvas = make("canvas", {width: connection.cols, height: connection.rows});
  const size = Math.max(2, Math.min(10, 160 / Math.max(connection.cols, connection.rows)));
  canvas.style.width = `${connection.cols * size}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute(
      "aria-label", `${connection.name}, ${connection.rows} rows and ${connection.cols} columns`);
  find("matrices")
      .append(make("figure", {}, make("figcaption", {textContent: connection.name}), canvas));
  return canvas;
});
views.push((of) => {
  const numbers = shownWeights(of);
  const most = strongest(numbers);
  network.connections.forEach((connection, i) => {
    const image = new ImageData(connection.cols, connection.rows);
    for (let at = 0; at < connection.rows * connection.cols; ++at)
      image.data.set([...mixed(numbers[connection.offset + at] / most), 255], 4 * at);
    matrices[i].getContext("2d").putImageData(image, 0, 0);
  });
});
