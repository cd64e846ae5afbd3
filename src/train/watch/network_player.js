// Part 5: time. Live, the program is asked for one state after another; a film has them all.

const isLive = data.film === null;
let isPaused = false;
let hasEnded = false;  // nothing is left to control

const kSpeeds = isLive ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 0] : [1, 2, 4, 8, 15, 30, 60];
let speed = isLive ? 20 : 8;

function showFacts(of) {
  const rate = of.learning_rate_now;
  find("facts").textContent = `step ${of.step.toLocaleString("en")} of ${
      network.n_steps.toLocaleString("en")}, loss ${short(of.loss)}, learning rate ${short(rate)}`;
  find("time").max = frames.length - 1;
  find("time").value = chosen.frame;
  find("time-value").textContent =
      follows && isLive ? "newest" : `step ${of.step.toLocaleString("en")}`;
}
views.push(showFacts);

function showControl() {
  find("pause").textContent = isPaused ? "Go on" : "Pause";
  const unit = isLive ? "steps/s" : "pictures/s";
  find("speed").textContent = speed === 0 ? "full speed" : `${speed} ${unit}`;
  const at = kSpeeds.indexOf(speed);
  find("slower").disabled = hasEnded || at === 0;
  find("faster").disabled = hasEnded || at === kSpeeds.length - 1;
  // Numbers that change with each picture are not read aloud.
  find("neuron-values").setAttribute("aria-live", isPaused || hasEnded ? "polite" : "off");
}

// The next position of the name with each picture.
function nextPosition() {
  return find("walk")?.checked ? (chosen.position + 1) % frame().n_positions : chosen.position;
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// ---- live

async function command(object) {
  try {
    await fetch("command", {method: "POST", body: JSON.stringify(object)});
  } catch {
    // The training has ended meanwhile, or the program has: follow() says which.
  }
}

function end(text) {
  hasEnded = true;
  find("notice").textContent = `${text} You can still look back.`;
  for (const id of ["pause", "step", "rate"]) find(id).disabled = true;
  showControl();
}

function receive(state) {
  isPaused = state.paused;
  speed = state.steps_per_second;
  if (document.activeElement !== find("rate")) showRate(state.learning_rate);
  addFrame(decoded(state.snapshot));
  choose(
      follows ? {frame: frames.length - 1, position: isPaused ? chosen.position : nextPosition()} :
                {});
  showControl();
  if (state.finished) end("The training has ended.");
}

async function follow() {
  for (let version = -1;;) {
    try {
      const reply = await fetch(`state?after=${version}`);
      const state = await reply.json();
      version = state.version;
      receive(state);
      if (state.finished) return;
    } catch {
      return end("The program does not answer.");
    }
    await pause(60);  // about twelve pictures a second, with the time for drawing
  }
}

function showRate(rate) {
  find("rate").value = Math.log10(rate);
  find("rate-value").textContent = rate.toPrecision(2);
}

// ---- film

let isPlaying = false;
async function play() {
  if (isPlaying) return;
  isPlaying = true;
  while (!isPaused) {
    if (chosen.frame + 1 >= frames.length) isPaused = true;
    else choose({frame: chosen.frame + 1, position: nextPosition()});
    showControl();
    await pause(1000 / speed);
  }
  isPlaying = false;
}

// ---- controls

find("pause").addEventListener("click", () => {
  if (isLive) return command({paused: !isPaused});
  isPaused = !isPaused;
  if (chosen.frame + 1 >= frames.length) choose({frame: 0});
  showControl();
  play();
});
find("step").addEventListener("click", () => {
  if (isLive) {
    follows = true;
    return command({paused: true, steps: 1});
  }
  isPaused = true;
  choose({frame: chosen.frame + 1, position: nextPosition()});
  showControl();
});
function changeSpeed(by) {
  const at = Math.max(0, Math.min(kSpeeds.length - 1, kSpeeds.indexOf(speed) + by));
  speed = kSpeeds[at];
  showControl();
  if (isLive) command({steps_per_second: speed});
}
find("slower").addEventListener("click", () => changeSpeed(-1));
find("faster").addEventListener("click", () => changeSpeed(1));
find("rate")?.addEventListener("input", () => {
  const rate = 10 ** Number(find("rate").value);
  find("rate-value").textContent = rate.toPrecision(2);
  command({learning_rate: rate});
});
find("time").addEventListener("input", () => {
  const at = Number(find("time").value);
  follows = at === frames.length - 1;
  if (!isLive) isPaused = true;
  choose({frame: at});
  showControl();
});
find("quantity").addEventListener("change", () => choose({quantity: find("quantity").value}));
addEventListener("resize", () => choose({}));

showControl();
if (isLive) {
  showRate(network.learning_rate);
  follow();
} else {
  setCurve(data.film.curve);
  for (const snapshot of data.film.frames) frames.push(decoded(snapshot));
  follows = false;
  choose({frame: 0});
  draw();
  play();
}
