"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const tip = byId("tip");
  const MOST_ROWS = 200;

  const time = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toPrecision(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms`
    : ns >= 1e3 ? `${(ns / 1e3).toPrecision(3)} us` : `${Math.round(ns)} ns`);
  const share = (part) => (part >= 0.1 ? `${(100 * part).toFixed(0)} %` : `${(100 * part).toPrecision(2)} %`);
  const count = (n) => n.toLocaleString("en-US");

  function element(kind, parent, text, name) {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    parent.append(made);
    return made;
  }

  function showTip(event, text) {
    tip.textContent = text;
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
  }
  const hideTip = () => { tip.style.display = "none"; };

  // ---- the head

  function head() {
    byId("title").textContent = data.title;
    document.title = `${data.title}: treadle report`;
    byId("about").textContent = data.about;
    for (const answer of data.answers) element("li", byId("answers"), answer.text, answer.kind);
    const rows = byId("problems").querySelector("tbody");
    for (const problem of data.problems) {
      const row = element("tr", rows);
      element("td", row, problem.level, problem.level === "error" ? "bad-word" : "");
      element("td", row, problem.what);
    }
    byId("problems").hidden = !data.problems.length;
    if (data.trace && data.trace.found) {
      byId("found").hidden = false;
      byId("found").querySelector("pre").textContent = data.trace.text;
    }
  }

  // ---- times by node

  const total = data.times ? data.times.profiled_ns : 0;
  const timeOf = new Map();  // by path: what it and all inside take
  const own = new Map();
  if (data.times) {
    for (const node of data.times.nodes) {
      const path = node.node || node.loop || "";
      own.set(path, (own.get(path) || 0) + node.ns);
      // "/Loop_1:body/LSTM_2/Gemm_3" is a part of "/Loop_1:body/LSTM_2", of "/Loop_1", and of the model.
      for (let at = path.length; at > 0; at = Math.max(path.lastIndexOf("/", at - 1), path.lastIndexOf(":", at - 1))) {
        const prefix = path.slice(0, at);
        timeOf.set(prefix, (timeOf.get(prefix) || 0) + node.ns);
      }
    }
  }
  const loopOf = new Map((data.explanation ? data.explanation.loops : []).map((loop) => [loop.node, loop]));
  const problemsAt = new Map();
  for (const problem of data.problems) if (problem.where) problemsAt.set(problem.where, problem);

  // ---- boxes

  function facts(node) {
    const found = [];
    const loop = loopOf.get(node.name);
    if (loop) {
      if (loop.iterations_per_run > 0) found.push(`${count(Math.round(loop.iterations_per_run))} iterations`);
      else if (loop.iterations !== null && loop.iterations !== undefined) found.push(`${count(loop.iterations)} iterations`);
      found.push(loop.tier);
      if (loop.measured_ns_per_iteration > 0) found.push(`${time(loop.measured_ns_per_iteration)} an iteration`);
      if (loop.why_not_native) found.push(`not native code: ${loop.why_not_native}`);
    }
    return found;
  }

  function fill(box, nodes) {
    const plain = nodes.filter((node) => !node.bodies);
    for (const node of nodes) if (node.bodies) addBox(box, node);
    if (!plain.length) return;
    const holder = element("details", box);
    const bar = element("summary", holder);
    element("span", bar, `${count(plain.length)} node${plain.length > 1 ? "s" : ""}`, "name");
    const kinds = new Map();
    for (const node of plain) kinds.set(node.op, (kinds.get(node.op) || 0) + 1);
    const most = [...kinds].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([op, n]) => (n > 1 ? `${n} ${op}` : op));
    element("span", bar, most.join(", "), "fact");
    holder.addEventListener("toggle", () => {
      if (!holder.open || holder.querySelector("table")) return;
      const ordered = [...plain].sort((a, b) => (timeOf.get(b.name) || 0) - (timeOf.get(a.name) || 0));
      const scroll = element("div", holder, undefined, "scroll");
      const table = element("table", scroll);
      const top = element("tr", element("thead", table));
      for (const name of ["time", "operator", "node", "makes", "of", "attributes and rewrites"]) element("th", top, name);
      const body = element("tbody", table);
      let shown = 0;
      const more = () => {
        for (const node of ordered.slice(shown, shown + MOST_ROWS)) addRow(body, node);
        shown = Math.min(shown + MOST_ROWS, ordered.length);
        button.hidden = shown === ordered.length;
        button.textContent = `${count(ordered.length - shown)} more`;
      };
      const button = element("button", holder, "");
      button.type = "button";
      button.addEventListener("click", more);
      more();
    });
  }

  function addValues(cell, values) {
    values.forEach(([name, type], i) => {
      if (!name) return;
      if (i) cell.append(", ");
      element("span", cell, name);
      if (type) element("span", cell, ` ${type}`, "types");
    });
  }

  function addRow(body, node) {
    const row = element("tr", body);
    const ns = timeOf.get(node.name);
    element("td", row, ns ? `${time(ns)}  ${share(ns / total)}` : "", "number");
    element("td", row, node.op);
    element("td", row, node.name);
    addValues(element("td", row), node.outputs);
    addValues(element("td", row), node.inputs);
    const last = element("td", row, node.attributes.map(([name, value]) => `${name} = ${value}`).join(", "));
    const rewritten = data.explanation && data.explanation.rewritten[node.name];
    if (rewritten) element("div", last, [...new Set(rewritten)].join(", "), "types");
    if (problemsAt.has(node.name)) element("div", last, problemsAt.get(node.name).what, "bad-word");
  }

  function addBox(parent, node) {
    const box = element("details", parent);
    const bar = element("summary", box);
    element("span", bar, `${node.op} ${node.name}`, "name");
    for (const fact of facts(node)) element("span", bar, fact, "fact");
    const ns = timeOf.get(node.name);
    if (ns && total) {
      element("span", bar, `${time(ns)}, ${share(ns / total)}`, "fact");
      element("i", element("div", bar, undefined, "bar")).style.width = `${100 * ns / total}%`;
    }
    box.addEventListener("toggle", () => {
      if (!box.open || box.dataset.filled) return;
      box.dataset.filled = "yes";
      const about = element("div", box, undefined, "scroll");
      addRow(element("tbody", element("table", about)), node);
      for (const body of node.bodies) {
        if (node.bodies.length > 1) element("p", box, body.name, "note").style.padding = "0 .7rem";
        fill(box, body.nodes);
      }
    });
    return box;
  }

  // ---- flame graph

  function tree() {
    const make = (node) => {
      const inside = (node.bodies || []).flatMap((body) => body.nodes);
      const children = inside.filter((child) => timeOf.get(child.name)).map(make);
      const whole = timeOf.get(node.name) || 0;
      const rest = whole - d3.sum(children, (child) => child.whole);
      if (children.length && rest > 0) children.push({ name: "the loop itself, and what rewriting made", op: "", rest: true, whole: rest, children: [] });
      return { name: node.name, op: node.op, whole, children };
    };
    const children = data.nodes.filter((node) => timeOf.get(node.name)).map(make);
    const rest = total - d3.sum(children, (child) => child.whole);
    if (rest > total * 0.001) children.push({ name: "what rewriting made, and glue", op: "", rest: true, whole: rest, children: [] });
    return { name: "the whole model", op: "", whole: total, children };
  }

  function flame() {
    if (!total || !data.nodes.length) return;
    byId("flame").hidden = false;
    const root = d3.hierarchy(tree()).sum((d) => (d.children.length ? 0 : d.whole)).sort((a, b) => b.value - a.value);
    const height = 20;
    const width = 1060;
    d3.partition().size([width, (root.height + 1) * height])(root);
    const colour = (d) => (d.data.rest ? "#b8c1cb" : d.children ? "#5eb5a8" : d3.interpolateYlGnBu(0.18 + 0.3 * ((d.data.op.length * 37 % 100) / 100)));
    const svg = d3.select("#flame div").append("svg").attr("class", "flame").attr("viewBox", [0, 0, width, (root.height + 1) * height + 2]);
    const shown = root.descendants().filter((d) => d.x1 - d.x0 > 0.05);
    const cells = svg.selectAll("g").data(shown).join("g");
    const boxes = cells.append("rect").attr("height", height - 1).attr("fill", colour);
    const texts = cells.append("text").attr("dy", "1.15em");
    const label = (d) => (d.data.op ? `${d.data.op} ` : "") + d.data.name.split("/").pop();
    function draw(focus) {
      const scale = width / (focus.x1 - focus.x0);
      const left = (d) => Math.max(0, Math.min(width, (d.x0 - focus.x0) * scale));
      const size = (d) => Math.max(0, Math.min(width, (d.x1 - focus.x0) * scale) - left(d));
      cells.attr("transform", (d) => `translate(${left(d)},${d.y0})`).attr("display", (d) => (size(d) > 0.1 ? null : "none"));
      boxes.attr("width", size);
      texts.attr("x", 4).text((d) => { const room = Math.floor((size(d) - 8) / 6.2); return room < 4 ? "" : label(d).slice(0, room); });
    }
    boxes.on("click", draw)
      .on("mousemove", (d) => showTip(d3.event, `${d.data.op} ${d.data.name}\n${time(d.value)}, ${share(d.value / total)}`))
      .on("mouseleave", hideTip);
    byId("flame").querySelector("button").addEventListener("click", () => draw(root));
    draw(root);
  }

  // ---- heat map

  function heat() {
    const maps = data.trace && data.trace.map;
    const names = maps ? Object.keys(maps) : [];
    if (!names.length) return;
    byId("heat").hidden = false;
    const select = byId("heat").querySelector("select");
    for (const name of names) {
      const option = element("option", select, `${name}  (${count(maps[name].values.length)} values)`);
      option.value = name;
    }
    const canvas = byId("heat").querySelector("canvas");
    const left = 190;
    let map;
    let cell = [1, 14];
    function draw() {
      map = maps[select.value];
      const numbers = map.values.flatMap((value) => value.cells.filter((x) => x !== null));
      const low = numbers.length ? d3.quantile(numbers.sort(d3.ascending), 0.02) : 0;
      const high = numbers.length ? d3.quantile(numbers, 0.98) : 1;
      const colour = d3.scaleSequential(d3.interpolateViridis).domain([low, Math.max(high, low + 1)]).clamp(true);
      const room = Math.max(280, byId("heat").querySelector(".heat").clientWidth - left - 12);
      cell = [Math.max(1, Math.min(18, room / map.columns)), 14];
      const width = Math.ceil(left + cell[0] * map.columns + 8);
      const height = 14 * map.values.length + 20;
      const dots = Math.min(2, devicePixelRatio || 1);
      canvas.width = width * dots;
      canvas.height = height * dots;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const context = canvas.getContext("2d");
      context.scale(dots, dots);
      const style = getComputedStyle(document.documentElement);
      context.font = "11px system-ui, sans-serif";
      map.values.forEach((value, row) => {
        const y = 14 * row;
        context.fillStyle = style.getPropertyValue("--ink");
        const shown = value.name.length > 30 ? `${value.name.slice(0, 12)}...${value.name.slice(-15)}` : value.name;
        context.fillText(shown, 6, y + 11);
        value.cells.forEach((x, column) => {
          if (x === null) return;
          context.fillStyle = colour(x);
          context.fillRect(left + column * cell[0], y + 1, Math.ceil(cell[0]), 12);
        });
        for (const [column, kind] of Object.entries(value.marks)) {
          const x = left + column * cell[0];
          context.fillStyle = kind === "nan" ? "#dc2626" : "#f59e0b";
          context.fillRect(x, y + 1, Math.max(cell[0], 2), 12);
          if (kind === "nan" && cell[0] >= 7) {
            context.strokeStyle = "#fff";
            context.beginPath();
            context.moveTo(x + 2, y + 3);
            context.lineTo(x + cell[0] - 2, y + 11);
            context.moveTo(x + cell[0] - 2, y + 3);
            context.lineTo(x + 2, y + 11);
            context.stroke();
          }
        }
      });
      context.fillStyle = style.getPropertyValue("--quiet");
      const last = (map.columns - 1) * map.step;
      context.fillText("iteration 0", left, height - 6);
      context.textAlign = "right";
      context.fillText(count(last), width - 8, height - 6);
      context.textAlign = "left";
      byId("low").textContent = `norm ${(10 ** (low / 10)).toPrecision(2)}`;
      byId("high").textContent = (10 ** (high / 10)).toPrecision(2);
      byId("heat").querySelector(".legend i").style.background =
        `linear-gradient(90deg, ${d3.range(0, 1.01, 0.1).map(d3.interpolateViridis).join(",")})`;
    }
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      const value = map.values[Math.floor((event.clientY - box.top) / 14)];
      if (!value) return hideTip();
      const column = Math.floor((event.clientX - box.left - left) / cell[0]);
      let text = `${value.name}: ${value.low === null ? "no numbers" : `${value.low.toPrecision(4)} to ${value.high === null ? "inf" : value.high.toPrecision(4)}`}`;
      if (column >= 0 && column < value.cells.length) {
        const mark = value.marks[column];
        const norm = value.cells[column];
        text += `\niteration ${count(column * map.step)}: ${mark || (norm === null ? "0" : `norm ${(10 ** (norm / 10)).toPrecision(2)}`)}`;
      }
      if (value.first) text += `\nfirst bad in iteration ${value.first.join("/")}`;
      showTip(event, text);
    });
    canvas.addEventListener("mouseleave", hideTip);
    select.addEventListener("change", draw);
    addEventListener("resize", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  }

  // ---- roofline

  function axes(svg, x, y, size, names) {
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${size.bottom})`).call(d3.axisBottom(x).ticks(6, "~g"));
    svg.append("g").attr("class", "axis").attr("transform", `translate(${size.left},0)`).call(d3.axisLeft(y).ticks(5, "~g"));
    svg.append("text").attr("x", size.right).attr("y", size.bottom - 6).attr("text-anchor", "end").text(names[0]);
    svg.append("text").attr("x", size.left + 6).attr("y", size.top + 6).text(names[1]);
  }

  function roof() {
    const machine = data.explanation && data.explanation.machine;
    if (!machine || !machine.flops_per_ns) return;
    const points = data.explanation.loops.map((loop) => {
      const ns = loop.measured_ns_per_iteration > 0 ? loop.measured_ns_per_iteration : loop.estimated_ns_per_iteration;
      const bytes = loop.bytes_per_iteration;
      return { name: loop.node, measured: loop.measured_ns_per_iteration > 0, x: loop.flops_per_iteration / bytes, y: loop.flops_per_iteration / ns };
    }).filter((point) => point.x > 0 && point.y > 0 && Number.isFinite(point.x) && Number.isFinite(point.y));
    if (!points.length) return;
    byId("roof").hidden = false;
    const size = { left: 56, right: 1040, top: 14, bottom: 276 };
    const svg = d3.select("#roof div").append("svg").attr("viewBox", [0, 0, 1060, 310]);
    const fastest = d3.max(machine.memory, (level) => level.bytes_per_ns);
    const x = d3.scaleLog().domain([Math.min(0.05, d3.min(points, (p) => p.x) / 2), Math.max(20, d3.max(points, (p) => p.x) * 2)]).range([size.left, size.right]);
    const y = d3.scaleLog().domain([Math.min(0.05, d3.min(points, (p) => p.y) / 2), machine.flops_per_ns * 2]).range([size.bottom, size.top]);
    axes(svg, x, y, size, ["operations for each byte", "operations in a nanosecond"]);
    const [from, to] = x.domain();
    const line = [from, machine.flops_per_ns / fastest, to].filter((v) => v >= from && v <= to);
    svg.append("path").attr("fill", "none").attr("stroke", "var(--ours)").attr("stroke-width", 2)
      .attr("d", d3.line()(line.map((v) => [x(v), y(Math.max(y.domain()[0], Math.min(machine.flops_per_ns, v * fastest)))])));
    const dots = svg.selectAll("circle").data(points).join("circle").attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y)).attr("r", 6)
      .attr("fill", (p) => (p.measured ? "var(--ours)" : "none")).attr("stroke", "var(--ours)");
    dots.on("mousemove", (p) => showTip(d3.event, `${p.name}\n${p.y.toPrecision(3)} operations in a nanosecond, ${p.measured ? "measured" : "estimated"}`)).on("mouseleave", hideTip);
    svg.selectAll(".label").data(points.slice(0, 12)).join("text").attr("x", (p) => Math.min(x(p.x) + 9, 900)).attr("y", (p) => y(p.y) + 4).text((p) => p.name.split("/").pop().slice(0, 24));
  }

  // ---- pushes of a stream

  function pushes() {
    const found = data.pushes;
    if (!found || !found.us.length) return;
    byId("pushes").hidden = false;
    const sorted = [...found.us].sort(d3.ascending);
    const at = (q) => d3.quantile(sorted, q);
    const names = [["p50", 0.5], ["p99", 0.99], ["p99.9", 0.999], ["maximum", 1]];
    let text = `${count(found.us.length)} pushes of ${count(found.hop)} samples: ` + names.map(([name, q]) => `${name} ${at(q).toPrecision(3)} us`).join(", ");
    if (found.rate > 0) text += `; ${share(d3.mean(sorted) / 1e6 / (found.hop / found.rate))} of real time`;
    byId("pushes").querySelector("p").textContent = text;
    byId("pushes").querySelector("pre").textContent = found.text;
    const size = { left: 56, right: 1040, top: 14, bottom: 196 };
    const svg = d3.select("#pushes div").append("svg").attr("viewBox", [0, 0, 1060, 226]);
    const x = d3.scaleLog().domain([sorted[0] * 0.95, sorted[sorted.length - 1] * 1.05]).range([size.left, size.right]);
    const bins = d3.histogram().domain(x.domain()).thresholds(d3.range(61).map((i) => x.invert(size.left + (size.right - size.left) * i / 60)))(sorted);
    const y = d3.scaleLinear().domain([0, d3.max(bins, (bin) => bin.length)]).range([size.bottom, size.top]);
    axes(svg, x, y, size, ["microseconds", "pushes"]);
    svg.selectAll(".bin").data(bins).join("rect").attr("class", "bin").attr("x", (bin) => x(bin.x0)).attr("width", (bin) => Math.max(1, x(bin.x1) - x(bin.x0) - 1))
      .attr("y", (bin) => y(bin.length)).attr("height", (bin) => size.bottom - y(bin.length)).attr("fill", "var(--ours)");
  }

  head();
  fill(byId("boxes"), data.nodes);
  const first = byId("boxes").querySelector("details");
  if (first && data.nodes.length < 400) first.open = true;
  if (!data.nodes.length) byId("loops").hidden = true;
  flame();
  heat();
  roof();
  pushes();
  document.documentElement.dataset.ready = "yes";
})();
