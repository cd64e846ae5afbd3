// The report of a run that is under way: asks the program for each step that it shows, and takes
// the parts of the page that change from a new copy of the page.

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const kRedraw = 2000;  // milliseconds between two copies

// Text stays text: the copy was escaped where it was made, and no script of it runs here.
async function redraw() {
  const reply = await fetch("./");
  const copy = new DOMParser().parseFromString(await reply.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = copy.querySelector(`[data-live="${part.dataset.live}"]`);
    // What has not changed stays, with the focus and with what is selected in it.
    if (part.innerHTML !== fresh.innerHTML) part.replaceChildren(...fresh.childNodes);
  }
}

function show(line) {
  const facts = [
    `step ${line.step.toLocaleString("en")}`, `loss ${line.loss.toFixed(4)}`,
    `learning rate ${line.lr.toExponential(2)}`,
    line.grad_norm === null ? "skipped" : `norm of the gradient ${line.grad_norm.toPrecision(3)}`,
    `${Math.round(line.tokens_per_second).toLocaleString("en")} tokens/s`
  ];
  find("now").textContent = facts.join(", ");
}

async function follow() {
  let drawnAt = -Infinity;
  for (let version = -1;;) {
    const reply = await fetch(`state?after=${version}`);
    const state = await reply.json();
    version = state.version;
    show(state.snapshot);
    if (state.finished || performance.now() > drawnAt + kRedraw) {
      // The program may be gone as soon as it has told that the run has ended.
      await redraw().catch((error) => {
        if (!state.finished) throw error;
      });
      drawnAt = performance.now();
    }
    if (state.finished) return;
    await pause(200);
  }
}
follow().then(
    () => find("notice").textContent = "The run has ended.",
    () => find("notice").textContent = "The program does not answer any more.");
