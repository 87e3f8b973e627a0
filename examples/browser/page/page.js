// The page: where the sound comes from, what is shown of it, and what goes wrong.
import { LEVELS, Spectrogram, colours } from "./picture.js";

const QUANTUM = 128; // samples of the browser's blocks
const STARTS = 3000; // milliseconds after which a sound that does not play has failed
const REFUSALS = {
  NotAllowedError:
    "The browser or its user does not let this page use the microphone. Allow it beside the address, and try again.",
  NotFoundError: "There is no microphone. The example and sound files work without one.",
  NotReadableError: "The microphone cannot be opened: another program may have it.",
  NotSupportedError: "This browser does not change the microphone's rate to the model's. Sound files work.",
};
const element = (id) => document.getElementById(id);

/** What the pictures need of the model: its sizes, and a Fourier transform for them. */
class Model {
  constructor(module) {
    this.module = module;
    this.exports = new WebAssembly.Instance(module).exports;
    this.exports.begin();
    [this.rate, this.hop] = [this.exports.rate(), this.exports.hop()];
    this.bins = this.hop + 1;
  }

  powers(samples) {
    const { buffer } = this.exports.memory;
    new Float32Array(buffer, this.exports.window_to_look_at(), samples.length).set(samples);
    return new Float32Array(buffer, this.exports.look(), this.bins);
  }
}

/** One of the two signals: its picture, and its level. */
class Side {
  constructor(id, name, model) {
    const section = element(id).parentElement;
    [this.meter, this.figure] = [section.querySelector(".level"), section.querySelector("output")];
    const each = model.hop / model.rate;
    this.picture = new Spectrogram(section.querySelector("canvas"), name, { bins: model.bins, rate: model.rate, each });
    [this.name, this.model] = [name, model];
    this.window = new Float32Array(2 * model.hop);
    this.clear();
  }

  clear() {
    this.picture.clear();
    this.window.fill(0);
    this.energies = []; // of the hops that the picture shows
    this.shown = LEVELS.low;
  }

  push(samples) {
    this.window.copyWithin(0, this.model.hop);
    this.window.set(samples, this.model.hop);
    this.picture.push(this.model.powers(this.window));
    const energy = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    this.energies.push(energy);
    if (this.energies.length > this.picture.columns) this.energies.shift();
    const level = decibels(energy);
    this.shown = level > this.shown ? level : this.shown + 0.1 * (level - this.shown); // rises at once, falls slowly
  }

  /** The level of pauses: of the quietest tenth of the hops that hold sound. */
  get quiet() {
    const sorted = this.energies.filter((energy) => energy > 0).sort((a, b) => a - b);
    const tenth = sorted.slice(0, Math.ceil(sorted.length / 10));
    return decibels(tenth.reduce((sum, energy) => sum + energy, 0) / tenth.length);
  }

  draw(cross) {
    this.picture.draw(cross);
    const level = Math.round(Math.max(this.shown, LEVELS.low));
    this.meter.firstElementChild.style.setProperty("--part", String((level - LEVELS.low) / -LEVELS.low));
    this.figure.textContent = this.picture.total ? `${minus(level)} dB` : "";
  }

  /** For readers who do not see the picture; once a second, so that it can be heard to its end. */
  describe() {
    const level = Math.round(Math.max(this.shown, LEVELS.low));
    this.meter.setAttribute("aria-valuenow", String(level));
    this.meter.setAttribute("aria-valuetext", `${level} decibels`);
    const seconds = (this.picture.total * this.picture.each).toFixed(0);
    this.picture.canvas.setAttribute("aria-label", `Spectrogram ${this.name}: ${seconds} seconds of sound`);
  }
}

const decibels = (energy) => 10 * Math.log10(Math.max(energy, 1e-12));
const minus = (number) => String(number).replace("-", "\u2212");

/** How long hops take: `recent` holds the newest milliseconds that were measured. */
class Load {
  constructor(seconds) {
    this.each = 1000 * seconds; // milliseconds of sound in a hop
    this.hops = this.late = 0;
    this.recent = [];
  }

  push(took, late) {
    this.hops++;
    if (late) this.late++;
    if (took === undefined) return;
    this.recent.push(took);
    if (this.recent.length > 9) this.recent.shift();
  }

  /** The median. */
  get took() { return [...this.recent].sort((a, b) => a - b)[this.recent.length >> 1]; }
}

/** A sound that plays through the model. `hop` gets what the audio thread says of each hop. */
class Player {
  static async open(model, hop) {
    const player = new Player();
    const context = (player.context = new AudioContext({ sampleRate: model.rate, latencyHint: "interactive" }));
    await context.audioWorklet.addModule("worklet.js");
    const options = { channelCount: 1, channelCountMode: "explicit", outputChannelCount: [1] };
    player.node = new AudioWorkletNode(context, "denoise", { ...options, processorOptions: { module: model.module } });
    player.node.port.onmessage = ({ data }) => hop(data);
    player.node.onprocessorerror = () => failed(new Error("The audio thread has failed; the console says how."));
    player.volume = context.createGain();
    player.node.connect(player.volume).connect(context.destination);
    player.hear(element("listen").checked);
    player.suppress(element("suppress").checked);
    return player;
  }

  hear(on) { this.volume.gain.setTargetAtTime(on ? 1 : 0, this.context.currentTime, 0.02); }

  suppress(on) { this.node.port.postMessage({ amount: on ? 1 : 0 }); }

  async playMicrophone() {
    const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };
    this.media = await navigator.mediaDevices.getUserMedia({ audio: raw });
    this.media.getTracks()[0].onended = () => over("The microphone has gone.");
    this.context.createMediaStreamSource(this.media).connect(this.node);
    await this.run();
  }

  /** Plays a file to its end, and what is late behind it. */
  async playFile(bytes, name) {
    let buffer;
    try {
      buffer = await this.context.decodeAudioData(bytes);
    } catch (error) {
      throw new Error(`The browser cannot read '${name}' as sound (${error.message}).`);
    }
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.node);
    source.onended = () => setTimeout(() => this.isOpen && over("The sound has ended."), 100);
    await this.run();
    source.start();
  }

  /** Until the audio thread runs. Some browsers have none where there is no sound device. */
  async run() {
    let timer;
    const late = new Promise((_, refuse) => {
      const words = "The browser does not start its sound. Is there a device that plays sound?";
      timer = setTimeout(() => refuse(new Error(words)), STARTS);
    });
    await Promise.race([this.context.resume(), late]).finally(() => clearTimeout(timer));
  }

  get isOpen() { return this.context.state !== "closed"; }

  close() {
    if (!this.isOpen) return;
    this.node.port.onmessage = null;
    this.node.port.postMessage({ over: true });
    this.media?.getTracks().forEach((track) => track.stop());
    this.context.close();
  }
}

let model = null;
let sides = null; // before and after
let player = null;
let load = null;
let cross = null; // where the pointer is in a picture

function say(state, text) {
  const line = element("status");
  line.dataset.state = state;
  line.textContent = text;
}

function busy(on) {
  for (const id of ["microphone", "example", "file"]) element(id).disabled = on;
  element("file").parentElement.classList.toggle("disabled", on);
  element("stop").disabled = !on;
}

function over(text) {
  player?.close();
  busy(false);
  report();
  say("done", text);
}

function failed(error) {
  player?.close();
  busy(false);
  say("failed", REFUSALS[error.name] ?? error.message);
}

/** What the audio thread says of a hop. */
function hop({ heard, given, took, late, error }) {
  sides[0].push(heard);
  sides[1].push(given);
  load.push(took, late);
  if (error) failed(new Error(`The model has failed with error ${error}.`));
}

/** Plays what `play` connects, through a new audio thread. */
async function start(words, play) {
  busy(true);
  say("waiting", "Starting.");
  for (const side of sides) side.clear();
  load = new Load(model.hop / model.rate);
  try {
    player = await Player.open(model, hop);
    await play(player);
    if (player.isOpen) say("running", words);
  } catch (error) {
    failed(error);
  }
}

function fromMicrophone() {
  if (!navigator.mediaDevices) {
    failed(new Error("Browsers give the microphone to pages of https:// or localhost alone."));
    return;
  }
  element("listen").checked = false; // loudspeakers would play into the microphone
  start("The microphone is on, and what you hear is off. With headphones, switch Listen on.", (to) => to.playMicrophone());
}

function fromBytes(name, bytes) {
  element("listen").checked = true;
  start(`Playing '${name}'.`, async (to) => to.playFile(await bytes(), name));
}

async function fetched(name) {
  const reply = await fetch(name);
  if (!reply.ok) throw new Error(`${name}: HTTP ${reply.status}.`);
  return reply.arrayBuffer();
}

function report() {
  if (!load?.recent.length) return;
  const { took } = load;
  element("took").textContent = `${took.toFixed(took < 10 ? 1 : 0)} of ${load.each.toFixed(0)} ms`;
  element("load").textContent = `${Math.max(1, Math.round((100 * took) / load.each))} %`;
  element("late").textContent = String(load.late);
  element("gaps").textContent = String(player.context.playbackStats?.underrunEvents ?? "not counted");
  const device = player.context.outputLatency || player.context.baseLatency || 0;
  const own = (2 * model.hop - QUANTUM) / model.rate;
  element("delay").textContent = `${Math.round(1000 * (own + device))} ms`;
  const quieter = sides[0].quiet - sides[1].quiet;
  element("quieter").textContent = Number.isFinite(quieter) ? `${minus(Math.round(quieter))} dB` : "\u2013";
  for (const side of sides) side.describe();
}

function draw() {
  for (const side of sides) side.draw(cross);
}

function animate() {
  if (player?.isOpen) draw();
  requestAnimationFrame(animate);
}

function point(event, picture) {
  cross = event.type === "pointerleave" ? null : picture.at(event.offsetX, event.offsetY);
  draw();
  if (!cross) return;
  const [before, after] = sides.map((side) => side.picture.level(cross));
  const level = (value) => (value === null ? "no sound" : `${minus(Math.round(Math.max(value, -120)))} dB`);
  const place = `${cross.second.toFixed(1)} s, ${Math.round(cross.frequency / 10) * 10} Hz`;
  element("readout").textContent = `${place}: ${level(before)} before, ${level(after)} after`;
}

/** The colours of the pictures, as the reader prefers. */
function paint({ matches }) {
  const pen = element("colours").getContext("2d");
  colours(matches).forEach((colour, k) => {
    pen.fillStyle = `rgb(${colour})`;
    pen.fillRect(k, 0, 1, 1);
  });
  for (const side of sides) side.picture.isDark = matches;
  draw();
}

async function begin() {
  busy(true);
  element("stop").disabled = true;
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  [element("low").textContent, element("high").textContent] = [`${minus(LEVELS.low)} dB`, `${minus(LEVELS.high)} dB`];
  model = new Model(await WebAssembly.compile(await fetched("denoise.wasm")));
  sides = [new Side("before", "before", model), new Side("after", "after", model)];
  scheme.onchange = paint;
  paint(scheme);
  for (const { picture } of sides) {
    for (const kind of ["pointermove", "pointerdown", "pointerleave"])
      picture.canvas.addEventListener(kind, (event) => point(event, picture));
  }
  addEventListener("resize", draw);
  setInterval(() => player?.isOpen && report(), 1000);
  element("microphone").onclick = fromMicrophone;
  element("example").onclick = () => fromBytes("example.wav", () => fetched("example.wav"));
  element("file").onchange = ({ target }) => {
    const [file] = target.files;
    if (file) fromBytes(file.name, () => file.arrayBuffer());
  };
  element("file").onclick = ({ target }) => { target.value = ""; }; // the same file can be chosen again
  element("stop").onclick = () => over("Stopped.");
  element("suppress").onchange = ({ target }) => player?.isOpen && player.suppress(target.checked);
  element("listen").onchange = ({ target }) => player?.isOpen && player.hear(target.checked);
  busy(false);
  requestAnimationFrame(animate);
}

begin().catch(failed);
