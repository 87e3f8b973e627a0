// The audio thread: takes the browser's blocks of 128 samples, hands hops to the compiled model, and gives its results, 384
// samples late: a sample waits for the end of its hop and of the next one, whose last block brings the first results.

/** Waits until this thread's clock goes on, which has whole milliseconds; how often that was asked. */
function toTick() {
  const at = Date.now();
  let asked = 1;
  while (Date.now() === at) asked++;
  return asked;
}

/** Milliseconds that `work` takes, and parts of them: by what is left of the last one. Takes up to three more. */
function measure(work) {
  toTick();
  const whole = toTick();
  const began = Date.now();
  work();
  const left = toTick() / whole;
  return Math.max(Date.now() - began - left, 0);
}

registerProcessor("denoise", class extends AudioWorkletProcessor {
  constructor({ processorOptions: { module } }) {
    super();
    this.model = new WebAssembly.Instance(module).exports;
    this.model.begin();
    this.hop = this.model.hop();
    const view = (at) => new Float32Array(this.model.memory.buffer, at, this.hop);
    [this.heard, this.given] = [view(this.model.heard()), view(this.model.given())];
    this.hops = 0;
    this.sampled = Math.round((0.5 * sampleRate) / this.hop); // one hop in so many is measured: two a second
    this.amount = 1;
    this.filled = 0; // samples of the hop that have come, and of the hop before that have gone
    this.over = false;
    this.port.onmessage = ({ data }) => Object.assign(this, data); // amount, over
  }

  process([input], [[output]]) {
    const size = output.length;
    if (this.hop % size) throw new Error(`expected blocks that divide a hop of ${this.hop} samples, found ${size}`);
    if (input.length) this.heard.set(input[0], this.filled);
    else this.heard.fill(0, this.filled, this.filled + size); // nothing plays
    this.filled += size;
    if (this.filled === this.hop) {
      this.push();
      this.filled = 0;
    }
    output.set(this.given.subarray(this.filled, this.filled + size));
    return !this.over;
  }

  push() {
    const began = Date.now();
    const measured = ++this.hops % this.sampled === 0;
    const took = measured ? measure(() => this.step()) : this.step();
    const late = !measured && Date.now() - began > (1000 * this.hop) / sampleRate;
    const [heard, given] = [this.heard.slice(), this.given.slice()];
    this.port.postMessage({ heard, given, took, late, error: this.error }, [heard.buffer, given.buffer]);
  }

  step() { this.error = this.model.push(this.amount); }
});
