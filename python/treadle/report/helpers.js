"use strict";

// What all parts of the page use: the data, elements, numbers as people write them, and drawings that follow the window.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function element(kind, parent, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  parent.append(made);
  return made;
}

// ---- numbers

const count = (n) => n.toLocaleString("en-US");
const plain = (x, digits) => (x === 0 ? "0" : Math.abs(x) >= 1e-3 && Math.abs(x) < 1e6 ? count(Number(x.toPrecision(digits))) : x.toPrecision(digits));
const time = (ns) => (ns >= 1e9 ? `${plain(ns / 1e9, 3)} s` : ns >= 1e6 ? `${plain(ns / 1e6, 3)} ms`
  : ns >= 1e3 ? `${plain(ns / 1e3, 3)} us` : `${Math.round(ns)} ns`);
const bytes = (n) => (n >= 1e9 ? `${plain(n / 1e9, 3)} GB` : n >= 1e6 ? `${plain(n / 1e6, 3)} MB` : n >= 1e3 ? `${plain(n / 1e3, 3)} KB`
  : `${count(Math.round(n))} byte${Math.round(n) === 1 ? "" : "s"}`);
const share = (part) => `${plain(100 * part, part >= 0.1 ? 2 : 1)} %`;

// ---- paths of nodes: "/Loop_3:body/LSTM_2/Gemm_3" is a part of "/Loop_3:body/LSTM_2", of "/Loop_3", and of the model

const lastPart = (path) => path.slice(path.lastIndexOf("/") + 1);
const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.floor(most / 3))}...${text.slice(text.length - Math.ceil(2 * most / 3) + 3)}`);
const prefixes = function* (path) {
  for (let at = path.length; at > 0; at = Math.max(path.lastIndexOf("/", at - 1), path.lastIndexOf(":", at - 1))) yield path.slice(0, at);
};
const shortOp = (op) => (op.length <= 30 ? op : `${op.slice(0, 27)}...`);  // of a group of nodes: all of theirs
const titled = (op, name) => (name.startsWith(op) ? name : `${shortOp(op)} ${name}`);

const total = data.times ? data.times.profiled_ns : 0;
const timeOf = new Map();  // by path: what it and all inside take
const loopTimeOf = new Map();  // by path of a loop: what its iterations take, also in nodes that are not named after it
function addTimes({ nodes, loops }) {
  const byName = new Map(loops.map((loop) => [loop.node, loop]));
  const add = (times, path, ns) => times.set(path, (times.get(path) || 0) + ns);
  for (const node of nodes) {
    for (const path of prefixes(node.node || node.loop || "")) add(timeOf, path, node.ns);
    for (let loop = byName.get(node.loop); loop; loop = loops[loop.parent]) add(loopTimeOf, loop.node, node.ns);
  }
}
if (data.times) addTimes(data.times);

// ---- what the pointer or the keyboard is at

const tip = byId("tip");
function showTip(event, text) {
  tip.textContent = text;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
}
const hideTip = () => { tip.style.display = "none"; };

// ---- drawings are made again in the window's new width or colours

const drawings = [];
function keepDrawn(draw) {
  drawings.push(draw);
  draw();
}
let waiting = 0;
function drawAll() {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { for (const draw of drawings) draw(); });
}
addEventListener("resize", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

// An empty drawing as wide as its section.
function canvasOf(section, height, label) {
  const holder = byId(section).querySelector(".drawing");
  holder.textContent = "";
  const width = Math.max(280, holder.clientWidth);
  return { width, svg: d3.select(holder).append("svg").attr("viewBox", [0, 0, width, height]).attr("role", "img").attr("aria-label", label) };
}

// Axes with their names above and below.
function axes(svg, x, y, size, names, ticks) {
  const few = size.right - size.left < 500 ? 4 : 8;
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${size.bottom})`).call(ticks.x(d3.axisBottom(x), few));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${size.left},0)`).call(ticks.y(d3.axisLeft(y), 5));
  svg.append("text").attr("class", "axis-name").attr("x", size.right).attr("y", size.bottom + 34).attr("text-anchor", "end").text(names[0]);
  svg.append("text").attr("class", "axis-name").attr("x", 8).attr("y", 14).text(names[1]);
}
