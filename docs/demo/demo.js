/* Runs the networks of the page demo.html on a stream of numbers.

Each network is a WebAssembly module made from network.c. All read the same
numbers; a visitor marks two of them. Nothing is sent anywhere. */
"use strict";

const COLUMNS = 300; // of each picture: one for each frame with a step
const FRAME_MS = 12; // the longest time that a frame may compute
const GREY = "128, 128, 128";
const NEGATIVE = [0, 150, 136]; // color of a negative hidden state

const element = (name) => document.getElementById(`demo-${name}`);
const count = (number) => Math.round(number).toLocaleString("en");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

let networks = [];
let steps = 0; // since the reset
let marks = []; // {step, number} of the marked numbers
let markNext = false;
let running = false;
let speed = 10; // steps a second
let due = 0; // steps that the speed asks for, not yet made
let previousFrame = 0; // in milliseconds, as all times
let previousUpdate = 0; // of the numbers on the page
let previousSteps = 0; // at the previous update
let previousPicture = 0;
let drawnSteps = 0;
let drawnMarks = 0;
let announced = 0; // the highest power of ten announced since the last mark

const number = new Float32Array(1); // rounded as the networks read it

/* A network of the page, from the attributes of its <section>. */
class Network {
  constructor(section, exports) {
    const floats = (address, length) =>
      new Float32Array(exports.memory.buffer, address, length);
    this.name = section.dataset.name;
    this.color = section.dataset.color.split(", ").map(Number);
    this.x = floats(exports.x(), 2);
    this.y = floats(exports.y(), 1);
    this.states = floats(exports.states(), exports.units());
    this.step = exports.step;
    this.reset = () => {
      exports.reset();
      this.y[0] = 0;
    };
    this.answer = section.querySelector("data");
    this.error = section.querySelector("small");
    this.picture = section.querySelector("canvas");
    this.picture.height = this.states.length;
    this.reset();
  }

  static async load(section) {
    const response = await fetch(section.dataset.wasm);
    if (!response.ok) throw new Error(`${response.status} ${response.url}`);
    const functions = { expf: Math.exp, tanhf: Math.tanh };
    const { instance } = await WebAssembly.instantiate(
      await response.arrayBuffer(),
      { env: functions },
    );
    return new Network(section, instance.exports);
  }

  says() {
    const y = this.y[0];
    return Number.isFinite(y) ? y.toFixed(3) : "not a number";
  }

  writeAnswer() {
    this.answer.value = this.y[0];
    this.answer.textContent = this.says();
    this.error.textContent = marks.length
      ? `error ${Math.abs(this.y[0] - sum()).toFixed(3)}`
      : "";
  }

  /* One pixel for each unit, as opaque as its state is large. */
  drawStates() {
    const image = new ImageData(1, this.states.length);
    this.states.forEach((state, unit) => {
      const color = state < 0 ? NEGATIVE : this.color;
      const opacity = Math.abs(state) / (0.5 + Math.abs(state));
      image.data.set([...color, 255 * opacity], 4 * unit);
    });
    newColumn(this.picture).putImageData(image, COLUMNS - 1, 0);
  }
}

function sum() {
  return marks.reduce((total, mark) => total + mark.number, 0);
}

function step() {
  number[0] = Math.random();
  for (const network of networks) {
    network.x[0] = number[0];
    network.x[1] = markNext ? 1 : 0;
    network.step();
  }
  steps += 1;
  if (markNext) marks.push({ step: steps, number: number[0] });
  markNext = false;
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
  context.fillRect(COLUMNS - 1, (1 - number[0]) * height, 1, 3);
  if (marks.length > drawnMarks) {
    context.fillRect(COLUMNS - 1, 0, 1, canvas.height);
  }
}

/* The sum and the answers, from -0.25 at the bottom to 2.25 at the top. */
function drawAnswers() {
  const canvas = element("answers");
  const context = newColumn(canvas);
  const draw = (value, color, thickness) => {
    const top = ((2.25 - value) / 2.5) * canvas.height - thickness / 2;
    context.fillStyle = `rgb(${color})`;
    context.fillRect(COLUMNS - 1, top, 1, thickness);
  };
  draw(sum(), GREY, 5);
  for (const network of networks) draw(network.y[0], network.color, 2);
}

function draw() {
  if (steps === drawnSteps) return;
  drawNumbers();
  drawAnswers();
  for (const network of networks) network.drawStates();
  [drawnSteps, drawnMarks] = [steps, marks.length];
}

function writeNumbers() {
  element("step").textContent = count(steps);
  element("number").textContent = steps ? number[0].toFixed(3) : "none";
  const marked = marks.map(
    (mark) =>
      `<data value="${mark.number}" data-step="${mark.step}">` +
      `${mark.number.toFixed(3)}</data> (step ${count(mark.step)})`,
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
      `Marked ${last.number.toFixed(3)}; the sum is ${sum().toFixed(3)}. ${next}`,
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

/* Makes the steps that are due, as many as fit into a frame. */
function makeSteps() {
  const marksBefore = marks.length;
  const end = performance.now() + FRAME_MS;
  for (; due >= 1; due -= 1) {
    step();
    if (steps % 64 === 0 && performance.now() > end) due = 1;
  }
  announce(marksBefore);
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
  for (const network of networks) network.reset();
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
  const sections = [...document.querySelectorAll("#demo section")];
  for (const canvas of document.querySelectorAll("#demo canvas")) {
    canvas.width = COLUMNS;
  }
  try {
    networks = await Promise.all(sections.map(Network.load));
  } catch (error) {
    say(
      "The networks could not be loaded. They need WebAssembly, and a page " +
        `from a server rather than from a file. (${error.message})`,
    );
    return;
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
  run(!reducedMotion.matches);
}

start();
