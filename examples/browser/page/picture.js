// A spectrogram that moves: time to the right, frequency upwards, the level as a colour.

export const LEVELS = { low: -90, high: -15 }; // decibels of full scale: the first colour and the last
export const SPAN = 8; // seconds that a picture shows

const BYTES = 256; // colours
const GAMUT = {
  light: [[247, 249, 251], [204, 241, 235], [94, 200, 186], [15, 118, 110], [10, 74, 84], [24, 34, 56]],
  dark: [[17, 22, 28], [19, 52, 59], [15, 100, 98], [45, 190, 174], [158, 236, 204], [255, 250, 220]],
};

/** Colours from the lowest level to the highest, for a light page or a dark one. */
export function colours(isDark) {
  const stops = GAMUT[isDark ? "dark" : "light"];
  return Array.from({ length: BYTES }, (_, k) => {
    const at = (k / (BYTES - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((part, c) => Math.round(part + (at - low) * (stops[low + 1][c] - part)));
  });
}

export class Spectrogram {
  /** `bins`: frequencies of a column, from 0 to half of `rate`; columns are `each` seconds apart. */
  constructor(canvas, name, { bins, rate, each }) {
    Object.assign(this, { canvas, name, bins, rate, each });
    this.columns = Math.ceil(SPAN / each);
    this.levels = new Float32Array(this.columns * bins); // a ring of columns
    this.sheet = new OffscreenCanvas(this.columns, bins);
    this.pen = this.sheet.getContext("2d");
    this.pen.globalCompositeOperation = "copy"; // the sheet moves over itself
    this.stripe = new ImageData(1, bins);
    this.colours = colours(false);
    this.clear();
  }

  clear() {
    this.total = 0; // columns that have come
    this.levels.fill(-Infinity);
    this.pen.clearRect(0, 0, this.columns, this.bins);
  }

  /** The number of the oldest column. */
  get first() { return Math.max(0, this.total - this.columns); }

  set isDark(value) {
    this.colours = colours(value);
    for (let k = this.first; k < this.total; k++) this.paint(k);
  }

  /** The powers of a column, where a sine of full scale has 1. */
  push(powers) {
    const at = (this.total % this.columns) * this.bins;
    powers.forEach((power, k) => { this.levels[at + k] = 10 * Math.log10(power); });
    if (this.total++ >= this.columns) this.pen.drawImage(this.sheet, -1, 0);
    this.paint(this.total - 1);
  }

  paint(column) {
    const { data } = this.stripe;
    const from = (column % this.columns) * this.bins;
    for (let k = 0; k < this.bins; k++) {
      const level = (this.levels[from + k] - LEVELS.low) / (LEVELS.high - LEVELS.low);
      const colour = this.colours[Math.round(Math.min(Math.max(level, 0), 1) * (BYTES - 1))];
      const at = 4 * (this.bins - 1 - k);
      [data[at], data[at + 1], data[at + 2], data[at + 3]] = [...colour, 255];
    }
    this.pen.putImageData(this.stripe, column - this.first, 0);
  }

  /** Seconds from the beginning of the signal at the left edge and at the right one. */
  get range() {
    const end = Math.max(this.total * this.each, SPAN);
    return [end - SPAN, end];
  }

  /** Where the picture is, in pixels of the page. */
  get box() {
    return { left: 46, top: 6, width: this.canvas.clientWidth - 52, height: this.canvas.clientHeight - 30 };
  }

  /** The second and the frequency at a point of the canvas; null beside the picture. */
  at(x, y) {
    const { left, top, width, height } = this.box;
    const [across, up] = [(x - left) / width, 1 - (y - top) / height];
    if (across < 0 || across > 1 || up < 0 || up > 1) return null;
    return { second: this.range[0] + across * SPAN, frequency: (up * this.rate) / 2 };
  }

  /** The level in decibels at a second and a frequency; null where there is none. */
  level({ second, frequency }) {
    const column = Math.floor(second / this.each);
    if (column < this.first || column >= this.total) return null;
    const bin = Math.round((frequency / this.rate) * 2 * (this.bins - 1));
    return this.levels[(column % this.columns) * this.bins + bin];
  }

  /** `cross`: a second and a frequency to mark, or null. */
  draw(cross) {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((n) => Math.round(n * devicePixelRatio));
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    const { box } = this;
    this.drawLevels(pen, box);
    this.drawAxes(pen, box, getComputedStyle(canvas));
    if (cross) this.drawCross(pen, box, cross);
  }

  drawLevels(pen, { left, top, width, height }) {
    pen.save();
    pen.beginPath();
    pen.roundRect(left, top, width, height, 4);
    pen.clip();
    pen.fillStyle = `rgb(${this.colours[0]})`;
    pen.fillRect(left, top, width, height);
    pen.drawImage(this.sheet, left, top, width, height);
    pen.restore();
  }

  drawAxes(pen, { left, top, width, height }, style) {
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = style.getPropertyValue("--quiet");
    pen.strokeStyle = style.getPropertyValue("--rule");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(left - 0.5, top - 0.5, width + 1, height + 1, 4);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const most = this.rate / 2000;
    const step = height / most < 14 ? 4 : 2;
    for (let k = 0; k <= most; k += step) {
      const y = top + height * (1 - k / most);
      pen.fillText(k === 0 ? "0" : `${k} kHz`, left - 6, Math.min(Math.max(y, top + 6), top + height - 5));
      pen.moveTo(left - 3, y);
      pen.lineTo(left, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const [begin, end] = this.range;
    const seconds = width < 400 ? 2 : 1;
    for (let second = Math.ceil(begin / seconds) * seconds; second <= end; second += seconds) {
      const x = left + (width * (second - begin)) / SPAN;
      pen.fillText(clock(second), Math.min(x, left + width - 10), top + height + 8);
      pen.moveTo(x, top + height);
      pen.lineTo(x, top + height + 4);
    }
    pen.stroke();
  }

  drawCross(pen, { left, top, width, height }, { second, frequency }) {
    const x = left + (width * (second - this.range[0])) / SPAN;
    const y = top + height * (1 - (2 * frequency) / this.rate);
    if (x < left) return;
    pen.strokeStyle = "#d97706";
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + height);
    pen.moveTo(left, y);
    pen.lineTo(left + width, y);
    pen.stroke();
  }
}

/** Seconds as people read them: 7 s, or 2:05 from a minute on. */
function clock(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
