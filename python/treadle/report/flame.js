// Where the time goes: a flame graph over the paths of nodes.

function flameTree() {
  const ops = new Map((data.times.loops || []).map((loop) => [loop.node, loop.op]));
  const make = (name, path) => ({ name, path, op: ops.get(path) || "", own: 0, parts: new Map() });
  const root = make("the whole model", "");
  for (const node of data.times.nodes) {
    let at = root;
    let path = "";
    for (const part of (node.node || node.loop || "").split(/(?=[/:])/)) {
      path += part;
      if (!part || part === ":body") continue;  // a loop has one body
      if (!at.parts.has(part)) at.parts.set(part, make(part.slice(1), path));
      at = at.parts.get(part);
    }
    at.own += node.ns;
    if (node.node) at.op = node.op;
  }
  const settled = (at) => {
    const children = [...at.parts.values()].map(settled);
    if (!children.length) return { ...at, children };
    if (children.length === 1 && !at.own && at !== root) return { ...children[0], name: `${at.name}/${children[0].name}` };
    if (at.own) children.push({ name: "copies, jumps and back edges", path: at.path, op: "", own: at.own, rest: true, children: [] });
    return { ...at, own: 0, children };
  };
  return settled(root);
}

function flame() {
  if (!total) return;
  byId("flame").hidden = false;
  const root = d3.hierarchy(flameTree()).sum((d) => d.own).sort((a, b) => b.value - a.value);
  d3.partition().size([1, root.height + 1])(root);
  const reading = byId("flame").querySelector(".reading");
  const HEIGHT = 22;
  const colour = (d) => (d.data.rest ? "#b8c1cb" : d.children ? "#5eb5a8" : d3.interpolateYlGnBu(0.18 + 0.3 * ((d.data.op.length * 37 % 100) / 100)));
  const said = (d) => `${d.data.op && !d.data.name.startsWith(d.data.op) ? `${shortOp(d.data.op)} ` : ""}${d.data.path || d.data.name}${d.data.rest ? `: ${d.data.name}` : ""}, ${time(d.value)}, ${share(d.value / total)}`;
  let focus = root;
  let at = root;
  let boxes;
  let place;

  function draw() {
    const { width, svg } = canvasOf("flame", (root.height + 1) * HEIGHT + 2, "Where the time goes, by node");
    const scale = width / (focus.x1 - focus.x0);
    const left = (d) => Math.max(0, Math.min(width, (d.x0 - focus.x0) * scale));
    const size = (d) => Math.max(0, Math.min(width, (d.x1 - focus.x0) * scale) - left(d));
    const shown = root.descendants().filter((d) => size(d) > 0.3);
    place = (d) => [left(d), size(d)];
    svg.attr("class", "flame").attr("tabindex", 0).on("keydown", onKey).on("blur", () => mark(null));
    const cells = svg.selectAll("g").data(shown).join("g").attr("transform", (d) => `translate(${left(d)},${d.depth * HEIGHT})`);
    boxes = cells.append("rect").attr("height", HEIGHT - 1).attr("width", size).attr("fill", colour).attr("stroke-width", (d) => (size(d) < 3 ? 0 : 1))
      .on("click", (d) => zoom(d)).on("mousemove", (d) => showTip(d3.event, said(d))).on("mouseleave", hideTip);
    cells.append("text").attr("x", 4).attr("y", 15).text((d) => {
      const room = Math.floor((size(d) - 8) / 6.4);
      const label = titled(d.data.op, d.data.name);
      return room < 4 ? "" : label.length <= room ? label : `${label.slice(0, room - 1)}\u2026`;
    });
  }

  function zoom(d) {
    hideTip();
    focus = d;
    draw();
    byId("flame").querySelector("button").hidden = focus === root;
  }

  function mark(d) {
    boxes.attr("class", (other) => (other === d ? "marked" : null));
    reading.textContent = d ? said(d) : "";
  }

  // Arrows go along the tree, Enter shows a part alone.
  function onKey() {
    const siblings = at.parent ? at.parent.children : [at];
    const next = { ArrowDown: at.children && at.children[0], ArrowUp: at.parent, ArrowRight: siblings[siblings.indexOf(at) + 1], ArrowLeft: siblings[siblings.indexOf(at) - 1] }[d3.event.key];
    if (d3.event.key === "Enter") {
      zoom(at);
      byId("flame").querySelector("svg").focus();
    } else if (next) {
      at = next;
      if (place(at)[1] < 0.3) zoom(at.parent);
    } else if (!d3.event.key.startsWith("Arrow")) {
      return;
    }
    d3.event.preventDefault();
    mark(at);
  }

  byId("flame").querySelector("button").addEventListener("click", () => zoom(root));
  keepDrawn(draw);
}
