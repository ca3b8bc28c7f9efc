/* Runs the networks of the page demo.html on a stream of numbers.

Each network is a WebAssembly module made from network.c. All read the same
sequences of numbers, of which two are marked. The first sequence is shown; the
errors are medians over all of them. Nothing is sent anywhere. */
"use strict";

const SEQUENCES = 9;
const COLUMNS = 300; // of each picture: one for each frame with a step
const FRAME_MS = 12; // the longest time that a frame may compute
const GREY = "128, 128, 128";
const NEGATIVE = [0, 150, 136]; // color of a negative hidden state
// The networks of the page, with the color of each in key, curve and picture.
const NETWORKS = [
  { name: "RIN", units: 50, color: [0, 114, 178] },
  { name: "GRU", units: 28, color: [230, 159, 0] },
  { name: "SimpleRNN", units: 50, color: [127, 127, 127] },
];
// The picture of the errors: powers of ten of the steps since the last mark
// and of the error, and pixels for each.
const STEPS = { powers: [0, 1, 2, 3, 4, 5], pixels: 53, from: 34 };
const ERRORS = { powers: [-3, -2, -1, 0], pixels: -30, from: 6 };
const LONGEST = 10_000; // steps of a sequence of the training
const LAST_ERROR = 100_000; // steps since the last mark

const element = (name) => document.getElementById(`demo-${name}`);
const count = (number) => Math.round(number).toLocaleString("en");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

let networks = [];
let steps = 0; // since the reset
let marks = []; // {step, numbers} of the marked numbers, one a sequence
let markNext = false;
let running = false;
let speed = 1_000; // steps a second
let due = 0; // steps that the speed asks for, not yet made
let previousFrame = 0; // in milliseconds, as all times
let previousUpdate = 0; // of the numbers on the page
let previousSteps = 0; // at the previous update
let previousPicture = 0;
let drawnSteps = 0;
let drawnMarks = 0;
let nextError = 0; // steps since the last mark at which errors are drawn
let announced = 0; // the highest power of ten announced since the last mark

// The latest number of each sequence, rounded as the networks read it.
const numbers = new Float32Array(SEQUENCES);

/* A network of NETWORKS, and its section of the page. */
class Network {
  constructor({ name, units, color }, exports) {
    const floats = (address, length) =>
      new Float32Array(exports.memory.buffer, address, length);
    [this.name, this.color] = [name, color];
    this.x = floats(exports.x(), 2);
    this.y = floats(exports.y(), 1);
    this.memory = floats(exports.states(), exports.units());
    this.states = Array.from({ length: SEQUENCES }, () => this.memory.slice());
    this.answers = new Float32Array(SEQUENCES);
    this.exports = exports;
    const section = document.createElement("section");
    section.dataset.name = name;
    section.innerHTML =
      `<p><i style="background: rgb(${color})"></i> ${name} of ${units} units:` +
      ' <data></data> <small></small></p>' +
      `<canvas role="img" aria-label="The hidden states of the ${name} over ` +
      'the latest steps"></canvas>';
    element("networks").append(section);
    this.curve = svg("polyline", { fill: "none", stroke: `rgb(${color})` });
    this.answer = section.querySelector("data");
    this.error = section.querySelector("small");
    this.picture = section.querySelector("canvas");
    this.picture.height = this.memory.length;
    this.reset();
  }

  static async load(network) {
    const folder = network.name.toLowerCase();
    const response = await fetch(`demo/${folder}/network.wasm`);
    if (!response.ok) throw new Error(`${response.status} ${response.url}`);
    const bytes = await response.arrayBuffer();
    const { instance } = await WebAssembly.instantiate(bytes);
    return [network, instance.exports];
  }

  reset() {
    this.exports.reset();
    for (const states of this.states) states.set(this.memory);
    this.answers.fill(0);
  }

  step() {
    this.x[1] = markNext ? 1 : 0;
    this.states.forEach((states, sequence) => {
      this.memory.set(states);
      this.x[0] = numbers[sequence];
      this.exports.step();
      states.set(this.memory);
      this.answers[sequence] = this.y[0];
    });
  }

  /* The median over the sequences; an answer that is no number is far off. */
  medianError() {
    const errors = Array.from(this.answers, (y, sequence) =>
      Number.isFinite(y) ? Math.abs(y - sum(sequence)) : Infinity,
    );
    return errors.sort((a, b) => a - b)[(SEQUENCES - 1) / 2];
  }

  says() {
    const y = this.answers[0];
    return Number.isFinite(y) ? y.toFixed(3) : "not a number";
  }

  writeAnswer() {
    this.answer.value = this.answers[0];
    this.answer.textContent = this.says();
    this.error.textContent = marks.length
      ? `median error ${this.medianError().toFixed(3)}`
      : "";
  }

  drawError() {
    const height = position(ERRORS, this.medianError());
    const x = position(STEPS, sinceMark());
    const points = this.curve.getAttribute("points") || "";
    this.curve.setAttribute("points", `${points} ${x},${height}`);
  }

  /* One pixel for each unit, as opaque as its state is large. */
  drawStates() {
    const image = new ImageData(1, this.memory.length);
    this.states[0].forEach((state, unit) => {
      const color = state < 0 ? NEGATIVE : this.color;
      const opacity = Math.abs(state) / (0.5 + Math.abs(state));
      image.data.set([...color, 255 * opacity], 4 * unit);
    });
    newColumn(this.picture).putImageData(image, COLUMNS - 1, 0);
  }
}

/* Adds an element to the picture of the errors. */
function svg(name, attributes, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.textContent = text;
  element("errors").append(node);
  return node;
}

/* Where a value is on a logarithmic axis, or the end that is nearest. */
function position({ powers, pixels, from }, value) {
  const [first, last] = [powers[0], powers[powers.length - 1]];
  const power = Math.min(last, Math.max(first, Math.log10(value)));
  const origin = pixels > 0 ? from : from - pixels * (last - first);
  return (origin + pixels * (power - first)).toFixed(1);
}

function drawAxes() {
  const bottom = position(ERRORS, 0);
  const right = position(STEPS, Infinity);
  for (const power of ERRORS.powers) {
    const y = position(ERRORS, 10 ** power);
    svg("path", { d: `M${STEPS.from} ${y}H${right}` });
    const place = { x: STEPS.from - 3, y: +y + 3, "text-anchor": "end" };
    svg("text", place, 10 ** power);
  }
  for (const power of STEPS.powers) {
    const x = position(STEPS, 10 ** power);
    svg("path", { d: `M${x} ${ERRORS.from}V${bottom}` });
    const place = { x, y: +bottom + 10, "text-anchor": "middle" };
    svg("text", place, count(10 ** power));
  }
  const x = position(STEPS, LONGEST);
  svg("path", { d: `M${x} ${ERRORS.from}V${bottom}`, class: "demo-longest" });
}

function sinceMark() {
  return marks.length ? steps - marks[marks.length - 1].step : 0;
}

function sum(sequence = 0) {
  return marks.reduce((total, mark) => total + mark.numbers[sequence], 0);
}

function step() {
  numbers.forEach((_, sequence) => (numbers[sequence] = Math.random()));
  for (const network of networks) network.step();
  steps += 1;
  if (markNext) {
    marks.push({ step: steps, numbers: numbers.slice() });
    for (const network of networks) network.curve.setAttribute("points", "");
    nextError = 1;
  }
  markNext = false;
  const isDrawn = sinceMark() >= nextError && sinceMark() <= LAST_ERROR;
  if (marks.length && isDrawn) {
    for (const network of networks) network.drawError();
    nextError = Math.max(sinceMark() + 1, 1.05 * sinceMark());
  }
}

/* Moves a picture to the left by one column. */
function newColumn(canvas) {
  const context = canvas.getContext("2d");
  context.globalCompositeOperation = "copy"; // also of what is transparent
  context.drawImage(canvas, -1, 0);
  context.globalCompositeOperation = "source-over";
  return context;
}

function drawNumbers() {
  const canvas = element("numbers");
  const context = newColumn(canvas);
  const height = canvas.height - 3;
  context.fillStyle = `rgb(${GREY})`;
  context.fillRect(COLUMNS - 1, (1 - numbers[0]) * height, 1, 3);
  if (marks.length > drawnMarks) {
    context.fillRect(COLUMNS - 1, 0, 1, canvas.height);
  }
}

function draw() {
  if (steps === drawnSteps) return;
  drawNumbers();
  for (const network of networks) network.drawStates();
  [drawnSteps, drawnMarks] = [steps, marks.length];
}

function writeNumbers() {
  element("step").textContent = count(steps);
  element("number").textContent = steps ? numbers[0].toFixed(3) : "none";
  const marked = marks.map(
    (mark) =>
      `<data value="${mark.numbers[0]}" data-step="${mark.step}">` +
      `${mark.numbers[0].toFixed(3)}</data> (step ${count(mark.step)})`,
  );
  element("marks").innerHTML = marked.join(" + ") || "none";
  element("sum").textContent = sum().toFixed(3);
  for (const network of networks) network.writeAnswer();
}

function say(text) {
  element("status").textContent = text;
}

function answers() {
  return networks.map((n) => `${n.name} says ${n.says()}`).join(", ");
}

/* Says what was marked, and the answers 10, 100, 1,000, ... steps later. */
function announce(marksBefore) {
  const last = marks[marks.length - 1];
  if (marks.length > marksBefore) {
    announced = 1;
    const next = marks.length < 2 ? "Mark a second one." : "Now wait.";
    say(
      `Marked ${last.numbers[0].toFixed(3)}; the sum is ${sum().toFixed(3)}. ${next}`,
    );
  } else if (last && steps - last.step >= 10 * announced) {
    const power = Math.floor(Math.log10(steps - last.step) + 1e-9);
    announced = 10 ** power;
    say(
      `${count(announced)} steps after the mark: the sum is ` +
        `${sum().toFixed(3)}; ${answers()}.`,
    );
  }
}

/* Makes the steps that are due, as many as fit into a frame, and pauses at the
length of the longest sequences of the training. */
function makeSteps() {
  const marksBefore = marks.length;
  const end = performance.now() + FRAME_MS;
  for (; due >= 1; due -= 1) {
    step();
    const isLate = steps % 8 === 0 && performance.now() > end;
    if (isLate || steps === LONGEST) due = 1;
  }
  announce(marksBefore);
  if (running && steps === LONGEST) {
    run(false);
    say(
      `Paused at step ${count(steps)}, the length of the longest sequences ` +
        `of the training: the sum is ${sum().toFixed(3)}; ${answers()}. ` +
        "Press Run to go on.",
    );
  }
}

function frame(now) {
  if (!running) return;
  const pause = reducedMotion.matches ? 1000 : 0; // between two pictures
  due += (speed * Math.min(now - previousFrame, 100)) / 1000;
  previousFrame = now;
  makeSteps();
  if (now - previousPicture >= pause) {
    draw();
    previousPicture = now;
  }
  if (now - previousUpdate >= Math.max(250, pause)) {
    writeNumbers();
    writeSpeed((1000 * (steps - previousSteps)) / (now - previousUpdate));
    [previousUpdate, previousSteps] = [now, steps];
  }
  requestAnimationFrame(frame);
}

function writeSpeed(measured) {
  const asked = `${count(speed)} steps a second`;
  const isSlower = measured > 0 && measured < 0.8 * speed && speed > 1000;
  element("speed").setAttribute("aria-valuetext", asked);
  element("speed-text").textContent = isSlower
    ? `${asked} (this device makes ${count(measured)})`
    : asked;
}

function run(isRunning) {
  running = isRunning;
  element("run").textContent = running ? "Pause" : "Run";
  if (running) {
    previousFrame = previousUpdate = performance.now();
    previousSteps = steps;
    requestAnimationFrame(frame);
  } else {
    writeNumbers();
  }
}

function toggle() {
  run(!running);
  say(
    running
      ? `Running at ${count(speed)} steps a second.`
      : `Paused at step ${count(steps)}.`,
  );
}

/* Makes a step and says so, unless it is one of those that are announced. */
function oneStep() {
  run(false);
  say(`Paused at step ${count(steps + 1)}.`);
  due = 1;
  makeSteps();
  draw();
  writeNumbers();
}

function mark() {
  if (marks.length + markNext >= 2) {
    say("Two numbers are marked. Reset to mark others.");
  } else {
    markNext = true;
    say("The next number will be marked.");
  }
}

function reset() {
  [steps, marks, markNext, due, announced] = [0, [], false, 0, 0];
  [previousSteps, drawnSteps, drawnMarks] = [0, 0, 0];
  for (const network of networks) {
    network.reset();
    network.curve.setAttribute("points", "");
  }
  for (const canvas of document.querySelectorAll("#demo canvas")) {
    canvas.getContext("2d").clearRect(0, 0, COLUMNS, canvas.height);
  }
  writeNumbers();
  say("The hidden states are 0. Mark a number.");
}

function changeSpeed() {
  speed = Math.round(10 ** element("speed").value);
  due = 0;
  writeSpeed();
}

async function start() {
  drawAxes();
  try {
    const loaded = await Promise.all(NETWORKS.map(Network.load));
    networks = loaded.map(
      ([network, exports]) => new Network(network, exports),
    );
  } catch (error) {
    say(
      "The networks could not be loaded. They need WebAssembly, and a page " +
        `from a server rather than from a file. (${error.message})`,
    );
    return;
  }
  for (const canvas of document.querySelectorAll("#demo canvas")) {
    canvas.width = COLUMNS;
  }
  const actions = { run: toggle, mark, one: oneStep, reset };
  for (const [name, action] of Object.entries(actions)) {
    element(name).addEventListener("click", action);
    element(name).disabled = false;
  }
  element("speed").addEventListener("input", changeSpeed);
  element("speed").addEventListener("change", () =>
    say(`${count(speed)} steps a second.`),
  );
  changeSpeed();
  reset();
  for (let marked = 0; marked < 2; marked += 1) {
    markNext = true;
    step();
  }
  draw();
  writeNumbers();
  say(
    `Two numbers are marked; their sum is ${sum().toFixed(3)}. ` +
      "Which network remembers it? Reset to mark numbers yourself.",
  );
  run(!reducedMotion.matches);
}

start();
