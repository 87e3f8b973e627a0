// Memory over a run, loops against the machine, and pushes of a stream.

// ---- memory

function memory() {
  const use = data.times && data.times.memory;
  const held = (step) => step.planned + step.held;
  if (!use || !use.steps.length || !held(use.steps[use.peak])) return;
  byId("memory").hidden = false;
  const top = use.steps[use.peak];
  const rows = byId("memory").querySelector("tbody");
  for (const value of use.holders.filter(({ bytes }) => bytes >= held(top) / 100)) {
    const row = element("tr", rows);
    element("td", row, `${value.planned ? "" : "up to "}${bytes(value.bytes)}`, "number").dataset.label = "bytes";
    const what = element("td", row, lastPart(value.name) || value.what);
    what.dataset.label = "value";
    if (value.name && value.what !== "output") element("span", what, ` ${value.what}`, "types");
    const node = element("td", row, shortened(value.node, 70));
    node.dataset.label = "node";
    node.title = value.node;
  }
  byId("memory").querySelector(".peak").textContent = `The peak is ${bytes(held(top))}${top.node ? ` at ${titled(top.op, shortened(top.node, 70))}` : ""}`
    + `${top.held && top.planned ? ` (${bytes(top.planned)} planned, ${bytes(top.held)} of sizes that only the run knows)` : ""}. The largest values that are alive there:`;
  keepDrawn(() => {
    const { width, svg } = canvasOf("memory", 226, "Memory over the nodes of a run");
    const size = { left: 72, right: width - 16, top: 24, bottom: 186 };
    const x = d3.scaleLinear().domain([0, use.steps.length]).range([size.left, size.right]);
    const y = d3.scaleLinear().domain([0, held(top) * 1.08]).range([size.bottom, size.top]);
    const edges = [...use.steps, use.steps[use.steps.length - 1]];
    const area = (from, to) => d3.area().curve(d3.curveStepAfter).x((_, i) => x(i)).y0((d) => y(from(d))).y1((d) => y(to(d)))(edges);
    svg.append("path").attr("fill", "var(--ours)").attr("d", area(() => 0, (d) => d.planned));
    svg.append("path").attr("fill", "var(--warm)").attr("d", area((d) => d.planned, held));
    const few = (axis, n) => axis.ticks(Math.min(n, use.steps.length)).tickFormat((i) => (Number.isInteger(i) ? count(i) : ""));
    axes(svg, x, y, size, [`nodes in the order of the program${use.steps.length === 1000 ? ", the largest of each few" : ""}`, "bytes in use"],
      { x: few, y: (axis, n) => axis.ticks(n).tickFormat(bytes) });
    const middle = x(use.peak + 0.5);
    svg.append("circle").attr("cx", middle).attr("cy", y(held(top))).attr("r", 4).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
    svg.append("text").attr("x", middle + (middle > width / 2 ? -9 : 9)).attr("y", y(held(top)) - 3).attr("text-anchor", middle > width / 2 ? "end" : "start")
      .text(bytes(held(top)));
    svg.append("rect").attr("x", size.left).attr("width", size.right - size.left).attr("y", size.top).attr("height", size.bottom - size.top)
      .attr("fill", "transparent").on("mouseleave", hideTip).on("mousemove", function () {
        const step = use.steps[Math.floor(x.invert(d3.mouse(this)[0]))];
        if (step) showTip(d3.event, `${step.node ? titled(step.op, step.node) : "a copy or a back edge"}\n${bytes(step.planned)} planned${step.held ? `, ${bytes(step.held)} of sizes that only the run knows` : ""}`);
      });
  });
}

// ---- roofline

function roofPoints() {
  return loops.map((loop) => {
    const isNative = loop.tier === "native" || loop.tier === "inside";  // and was interpreted when it was measured
    const measured = !isNative && loop.iterations_per_run > 0 ? (loopTimeOf.get(loop.node) || 0) / loop.iterations_per_run : 0;
    const ns = measured || loop.estimated_ns_per_iteration;
    return { name: loop.node.replaceAll(":body", ""), measured: measured > 0, x: loop.flops_per_iteration / loop.bytes_per_iteration, y: loop.flops_per_iteration / ns };
  }).filter((point) => point.x > 0 && point.y > 0 && Number.isFinite(point.x) && Number.isFinite(point.y));
}

function roof() {
  const machine = data.explanation && data.explanation.machine;
  if (!machine || !machine.flops_per_ns) return;
  const points = roofPoints();
  if (!points.length) return;
  byId("roof").hidden = false;
  const fastest = d3.max(machine.memory, (level) => level.bytes_per_ns);
  const knee = machine.flops_per_ns / fastest;
  keepDrawn(() => {
    const { width, svg } = canvasOf("roof", 310, "Loops against the machine's limits");
    const size = { left: 52, right: width - 20, top: 26, bottom: 268 };
    const x = d3.scaleLog().domain([Math.min(knee / 4, d3.min(points, (p) => p.x) / 2), Math.max(knee * 4, d3.max(points, (p) => p.x) * 2)]).range([size.left, size.right]);
    const y = d3.scaleLog().domain([Math.min(machine.flops_per_ns / 20, d3.min(points, (p) => p.y) / 2), machine.flops_per_ns * 2]).range([size.bottom, size.top]);
    const powers = (axis, n) => axis.ticks(n, "~g");
    axes(svg, x, y, size, ["operations for each byte", "operations in a nanosecond"], { x: powers, y: powers });
    const line = [x.domain()[0], knee, x.domain()[1]];
    svg.append("path").attr("class", "roof").attr("d", d3.line()(line.map((v) => [x(v), y(Math.max(y.domain()[0], Math.min(machine.flops_per_ns, v * fastest)))])));
    svg.selectAll("circle").data(points).join("circle").attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y)).attr("r", 6)
      .attr("fill", (p) => (p.measured ? "var(--ours)" : "var(--card)")).attr("stroke", "var(--ours)").attr("stroke-width", 1.5)
      .on("mousemove", (p) => showTip(d3.event, `${p.name}\n${plain(p.y, 3)} operations in a nanosecond, ${p.measured ? "measured" : "estimated"}`)).on("mouseleave", hideTip);
    const taken = [];  // places of labels; one that would overlap goes below
    for (const p of points.slice(0, 12)) {
      const text = shortened(p.name, width < 600 ? 18 : 32);
      const room = 7 * text.length;
      const toLeft = x(p.x) + 12 + room > width;
      const from = toLeft ? x(p.x) - 12 - room : x(p.x) + 12;
      let at = y(p.y) + 4;
      while (taken.some((other) => Math.abs(other.at - at) < 14 && other.from < from + room && from < other.to)) at += 14;
      if (at > size.bottom - 4) continue;
      taken.push({ at, from, to: from + room });
      svg.append("text").attr("x", toLeft ? x(p.x) - 10 : x(p.x) + 10).attr("y", at).attr("text-anchor", toLeft ? "end" : "start").text(text);
    }
  });
}

// ---- pushes of a stream

function pushes() {
  const found = data.pushes;
  if (!found || !found.us.length) return;
  byId("pushes").hidden = false;
  byId("pushes").querySelector(".summary").textContent = found.summary;
  byId("pushes").querySelector("pre").textContent = found.text;
  const sorted = [...found.us].sort(d3.ascending);
  const last = sorted[sorted.length - 1];
  keepDrawn(() => {
    const { width, svg } = canvasOf("pushes", 246, "How long pushes take");
    const size = { left: 52, right: width - 16, top: 58, bottom: 206 };
    const x = d3.scaleLog().domain([sorted[0] * 0.95, Math.max(last * 1.05, sorted[0] * 1.5)]).range([size.left, size.right]);
    const bars = Math.round((size.right - size.left) / 14);
    const bins = d3.histogram().domain(x.domain()).thresholds(d3.range(bars + 1).map((i) => x.invert(size.left + (size.right - size.left) * i / bars)))(sorted);
    const most = d3.max(bins, (bin) => bin.length);
    const y = d3.scaleLinear().domain([0, most]).range([size.bottom, size.top]);
    axes(svg, x, y, size, ["microseconds", "pushes"], { x: (axis, n) => axis.ticks(n, "~g"), y: (axis, n) => axis.ticks(Math.min(n, most)).tickFormat(d3.format(",d")) });
    svg.selectAll(".bin").data(bins.filter((bin) => bin.length)).join("rect").attr("class", "bin").attr("x", (bin) => x(bin.x0)).attr("width", (bin) => Math.max(1, x(bin.x1) - x(bin.x0) - 1))
      .attr("y", (bin) => Math.min(y(bin.length), size.bottom - 2)).attr("height", (bin) => Math.max(2, size.bottom - y(bin.length))).attr("fill", "var(--ours)")
      .on("mousemove", (bin) => showTip(d3.event, `${count(bin.length)} pushes of ${plain(bin.x0, 3)} to ${plain(bin.x1, 3)} us`)).on("mouseleave", hideTip);
    Object.entries(found.percentiles).forEach(([name, us], i) => {
      const at = x(us);
      const end = at > size.right - 90;
      svg.append("line").attr("class", "percentile").attr("x1", at).attr("x2", at).attr("y1", 20 + 11 * i).attr("y2", size.bottom);
      svg.append("text").attr("class", "axis-name").attr("x", at + (end ? -4 : 4)).attr("y", 26 + 11 * i).attr("text-anchor", end ? "end" : "start").text(name);
    });
  });
}
