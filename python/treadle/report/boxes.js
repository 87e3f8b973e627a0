// The model as boxes: loops, branches and calls of functions, and tables of their nodes.

const MOST_ROWS = 200;
const TIERS = { program: "interpreted", chain: "one instruction", native: "native code", inside: "in the native code around it" };

const loops = data.explanation ? data.explanation.loops : [];
const loopsOf = new Map();  // by path of the model's node: it, or what rewriting made of it (an LSTM becomes a Scan)
const rewrittenAt = (path) => [...new Set((data.explanation && data.explanation.rewritten[path]) || [])];
const problemsAt = new Map();
for (const problem of data.problems || []) if (problem.where) problemsAt.set(problem.where, problem);

function findLoops(nodes) {
  const known = new Set();
  const walk = (some) => {
    for (const node of some) {
      known.add(node.name);
      for (const body of node.bodies || []) walk(body.nodes);
    }
  };
  walk(nodes);
  for (const loop of loops) {
    const path = [...prefixes(loop.node)].find((prefix) => known.has(prefix));
    if (path) loopsOf.set(path, [...(loopsOf.get(path) || []), loop]);
  }
}

function facts(loop) {
  const found = [];
  const iterations = loop.iterations_per_run > 0 ? Math.round(loop.iterations_per_run) : loop.iterations;
  if (iterations !== null && iterations !== undefined) found.push(`${count(iterations)} iteration${iterations === 1 ? "" : "s"}`);
  found.push(TIERS[loop.tier] || loop.tier);
  const ns = loopTimeOf.get(loop.node);
  if (ns && iterations > 0) found.push(`${time(ns / iterations)} each`);
  return found;
}

const isBox = (node) => Boolean(node.bodies) || loopsOf.has(node.name);

// `within`: the path that the names of all these nodes begin with.
function fill(box, nodes, within) {
  const flat = nodes.filter((node) => !isBox(node));
  for (const node of nodes) if (isBox(node)) addBox(box, node, within);
  if (flat.length) addTable(box, flat, within);
}

function addTable(box, nodes, within) {
  const holder = element("details", box);
  const bar = element("summary", holder);
  element("span", bar, `${count(nodes.length)} node${nodes.length > 1 ? "s" : ""}`, "name");
  const kinds = new Map();
  for (const node of nodes) kinds.set(node.op, (kinds.get(node.op) || 0) + 1);
  const most = [...kinds].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([op, n]) => (n > 1 ? `${count(n)} ${op}` : op));
  element("span", bar, most.join(", ") + (kinds.size > 8 ? ", ..." : ""), "fact");
  const ns = nodes.reduce((sum, node) => sum + (timeOf.get(node.name) || 0), 0);
  if (ns) element("span", bar, `${time(ns)}, ${share(ns / total)}`, "fact");
  holder.addEventListener("toggle", () => {
    if (!holder.open || holder.querySelector("table")) return;
    const ordered = [...nodes].sort((a, b) => (timeOf.get(b.name) || 0) - (timeOf.get(a.name) || 0));
    const table = element("table", element("div", holder, undefined, "scroll"), undefined, "nodes");
    const top = element("tr", element("thead", table));
    for (const name of COLUMNS) if (total || name !== "time") element("th", top, name, name === "time" ? "number" : "");
    const body = element("tbody", table);
    let shown = 0;
    const button = element("button", holder, "");
    button.type = "button";
    const more = () => {
      for (const node of ordered.slice(shown, shown + MOST_ROWS)) addRow(body, node, within);
      shown = Math.min(shown + MOST_ROWS, ordered.length);
      button.hidden = shown === ordered.length;
      button.textContent = `${count(ordered.length - shown)} more`;
    };
    button.addEventListener("click", more);
    more();
  });
}

const COLUMNS = ["time", "node", "makes", "reads", "attributes and rewrites"];

function addRow(body, node, within) {
  const row = element("tr", body);
  const cell = (name, kind) => {
    const made = element("td", row, undefined, kind);
    made.dataset.label = name;
    return made;
  };
  const ns = timeOf.get(node.name);
  if (total) cell("time", "number").textContent = ns ? `${time(ns)}, ${share(ns / total)}` : "";
  addName(cell("node"), node, within);
  addValues(cell("makes"), node.outputs);
  addValues(cell("reads"), node.inputs);
  const last = cell("also");
  if (node.attributes.length) element("div", last, attributesOf(node));
  if (rewrittenAt(node.name).length) element("div", last, `rewritten: ${rewrittenAt(node.name).join(", ")}`, "types");
  if (problemsAt.has(node.name)) element("div", last, problemsAt.get(node.name).what, "bad-word");
}

// A name often begins with the operator; then the operator is not said twice.
function addName(cell, node, within) {
  const name = node.name.slice(within.length);
  const begins = name.startsWith(node.op);
  element("span", cell, node.op, "op");
  element("span", cell, begins ? name.slice(node.op.length) : ` ${name}`, begins ? "" : "types");
}

function addValues(cell, values) {
  for (const [name, type] of values) {
    if (!name) continue;
    const line = element("div", cell);
    element("span", line, name);
    if (type) element("span", line, ` ${type}`, "types");
  }
}

const attributesOf = (node) => node.attributes.map(([name, value]) => `${name} = ${value}`).join(", ");

function addBox(parent, node, within) {
  const box = element("details", parent);
  const bar = element("summary", box);
  addName(element("span", bar, undefined, "name"), node, within);
  if (node.function !== undefined) element("span", bar, `function${node.function ? ` of ${node.function}` : ""}`, "fact");
  const own = loopsOf.get(node.name) || [];
  if (own.length === 1) for (const fact of facts(own[0])) element("span", bar, fact, "fact");
  const ns = timeOf.get(node.name);
  if (ns && total) {
    element("span", bar, `${time(ns)}, ${share(ns / total)}`, "fact");
    element("i", element("div", bar, undefined, "bar")).style.width = `${100 * ns / total}%`;
  }
  box.addEventListener("toggle", () => {
    if (!box.open || box.dataset.filled) return;
    box.dataset.filled = "yes";
    describe(box, node, own);
    for (const body of node.bodies || []) {
      if (node.bodies.length > 1) element("p", box, body.name, "body-name");
      fill(box, body.nodes, node.name + (node.function === undefined ? `:${body.name}/` : "/"));
    }
  });
}

// A box's own lines: path, values, how its loops run, what is wrong.
function describe(box, node, own) {
  const list = element("dl", box);
  const line = (name) => {
    element("dt", list, name);
    return element("dd", list);
  };
  line("path").textContent = node.name;
  if (node.outputs.some(([name]) => name)) addValues(line("makes"), node.outputs);
  if (node.inputs.some(([name]) => name)) addValues(line("reads"), node.inputs);
  if (node.attributes.length) line("attributes").textContent = attributesOf(node);
  if (rewrittenAt(node.name).length) line("rewritten").textContent = rewrittenAt(node.name).join(", ");
  if (problemsAt.has(node.name)) element("span", line("problem"), problemsAt.get(node.name).what, "bad-word");
  for (const loop of own) {
    if (own.length > 1 || loop.node !== node.name) line("runs as").textContent = `${titled(loop.op, lastPart(loop.node))}: ${facts(loop).join(", ")}`;
    if (loop.why_not_native) line("not native").textContent = loop.why_not_native;
    for (const { node: at, op, why } of (loop.obstacles || []).slice(0, 3)) line("hindered by").textContent = `${titled(op, lastPart(at))}: ${why}`;
  }
  if (!node.bodies && data.times) addParts(box, node);
}

// Of a node that rewriting took apart.
function addParts(box, node) {
  const parts = data.times.nodes.filter((part) => part.node.startsWith(`${node.name}/`) && part.ns > 0);
  if (!parts.length) return;
  const table = element("table", element("div", box, undefined, "scroll"), undefined, "nodes parts");
  const top = element("tr", element("thead", table));
  for (const name of ["time", "part"]) element("th", top, name, name === "time" ? "number" : "");
  const body = element("tbody", table);
  for (const part of parts.slice(0, MOST_ROWS)) {
    const row = element("tr", body);
    element("td", row, `${time(part.ns)}, ${share(part.ns / total)}`, "number").dataset.label = "time";
    element("td", row, titled(part.op, part.node.slice(node.name.length + 1))).dataset.label = "part";
  }
}

function boxes() {
  if (!data.nodes || !data.nodes.length) return;
  byId("loops").hidden = false;
  findLoops(data.nodes);
  fill(byId("boxes"), data.nodes, "/");
  const first = byId("boxes").querySelector("details");
  if (first && data.nodes.length < 400) first.open = true;
}
