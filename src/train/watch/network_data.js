// The page of a network that learns, part 1: its numbers over time, and what is chosen.
//
// A frame is a snapshot of the training: step, loss, weights, gradients, activations. In a film all
// frames are in the page. Live, they come one after another, and older ones are thinned.

const data = JSON.parse(find("data").textContent);
const network = data.network;

// Neurons are counted through all groups.
let nNeurons = 0;
for (const group of network.groups) {
  group.first = nNeurons;
  nNeurons += group.size;
}
for (const connection of network.connections) {
  connection.source = network.groups[connection.from];
  connection.target = network.groups[connection.to];
}
const groupOf = (neuron) =>
    network.groups.find((group) => neuron >= group.first && neuron < group.first + group.size);
const nameOf = (neuron) => {
  const group = groupOf(neuron);
  const index = neuron - group.first;
  return `${group.name} ${group.labels[index] ?? index}`;
};

// Calls visit(source neuron, target neuron, number of the weight) for all weights of a connection.
function eachWeight(connection, visit) {
  const {source, target, rows, cols, offset, is_embedding} = connection;
  for (let row = 0, at = offset; row < rows; ++row) {
    for (let col = 0; col < cols; ++col, ++at) {
      if (is_embedding) visit(source.first + row, target.first + col, at);
      else visit(source.first + col, target.first + row, at);
    }
  }
}

// ---- frames

const frames = [];
const kMostBytes = 64e6;
let keepEvery = 1, nArrived = 0;
let curve = null;

function decoded(snapshot) {
  for (const name of ["weights", "gradients", "activations", "activation_gradients", "attention"])
    if (name in snapshot) snapshot[name] = unpack(snapshot[name], Float32Array);
  if (snapshot.grid) snapshot.grid = unpack(snapshot.grid, Uint8Array);
  if (snapshot.curve) setCurve(snapshot.curve);
  return snapshot;
}
function setCurve(json) { curve = {stride: json.stride, means: unpack(json.means, Float32Array)}; }

// The newest frame is always kept; of the others every so many, so that memory is bounded.
function addFrame(frame) {
  const most = Math.max(
      20, Math.min(240, kMostBytes / (8 * (frame.weights.length + frame.activations.length))));
  if (frames.length > 1 && frames.at(-1).arrival % keepEvery !== 0) frames.pop();
  if (frames.length && frames.at(-1).step === frame.step) frames.pop();
  frame.arrival = nArrived++;
  frames.push(frame);
  if (frames.length <= most) return;
  keepEvery *= 2;
  const kept =
      frames.filter((each, i) => each.arrival % keepEvery === 0 || i + 1 === frames.length);
  const {arrival} = frames[chosen.frame];
  frames.splice(0, frames.length, ...kept);
  // Who looks back goes on looking at that frame, or at the one before it.
  chosen.frame = Math.max(0, kept.findLastIndex((each) => each.arrival <= arrival));
}

// ---- what is chosen

const chosen = {
  frame: 0,
  position: 0,
  quantity: "weights",
  neuron: -1
};
let follows = true;  // the newest frame
const views = [];    // functions that draw
const frame = () => frames[chosen.frame];

let isDue = false;
function choose(change) {
  Object.assign(chosen, change);
  chosen.frame = Math.max(0, Math.min(frames.length - 1, chosen.frame));
  chosen.position = Math.max(0, Math.min((frame()?.n_positions ?? 1) - 1, chosen.position));
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(draw);
}
function draw() {
  isDue = false;
  if (frames.length === 0) return;
  for (const view of views) view(frame());
}

// The number of each weight that the lines show.
function shownWeights(of) {
  if (chosen.quantity === "gradients") return of.gradients;
  if (chosen.quantity === "change") return of.weights.map((w, i) => w - frames[0].weights[i]);
  if (chosen.quantity === "weights") return of.weights;
  const flow = new Float32Array(of.weights.length);
  for (const connection of network.connections)
    eachWeight(connection, (source, _, at) => flow[at] = of.weights[at] * activation(of, source));
  return flow;
}
const activation = (of, neuron) => of.activations[chosen.position * nNeurons + neuron];
const slope = (of, neuron) => of.activation_gradients[chosen.position * nNeurons + neuron];

function largest(numbers) {
  let most = 0;
  for (const number of numbers)
    if (Math.abs(number) > most) most = Math.abs(number);
  return most || 1;
}
// What is drawn as strongest: outliers do not make all others faint.
function strongest(numbers) {
  const sum = numbers.reduce((total, number) => total + number * number, 0);
  return Math.min(largest(numbers), 3 * Math.sqrt(sum / numbers.length)) || 1;
}
const short = (x) => x === null || !Number.isFinite(x) ? "not a number" :
    Math.abs(x) >= 1e-3 || x === 0                     ? x.toFixed(4) :
                                                         x.toExponential(1);

const percent = (share) => `${(100 * share).toFixed(0)} %`;

// ---- drawing

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "text", "faint", "line", "blue", "orange"]) {
    const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
    const wide = hex.length === 3 ? [...hex].map((c) => c + c).join("") : hex;
    colors[name] = [0, 2, 4].map((at) => parseInt(wide.slice(at, at + 2), 16));
  }
}
readColors();
// Paper is white in the dark theme too, and the screen dark again afterwards.
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => {
    readColors();
    choose({});
  });
}

// From the page's colour at 0 to blue at 1 and to orange at -1.
function mixed(share) {
  const size = Math.min(1, Math.abs(share)) || 0;
  const ink = share < 0 ? colors.orange : colors.blue;
  return colors.page.map((part, i) => Math.round(part + (ink[i] - part) * size));
}
const css = (parts, alpha = 1) => `rgb(${parts.join(" ")} / ${alpha})`;

// Sets the size of a canvas in CSS pixels; its context draws in these.
function sized(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}
