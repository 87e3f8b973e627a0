// Values over iterations: a heat map of norms, by loop.

function heat() {
  const maps = data.trace && data.trace.map;
  const names = maps ? Object.keys(maps) : [];
  if (!names.length) return;
  byId("heat").hidden = false;
  const ROW = 15;
  const TOP = 4;  // room above the first row
  const select = byId("heat").querySelector("select");
  for (const name of names) {
    const rows = maps[name].values.length;
    element("option", select, `${shortened(name, 60)}  (${count(rows)} value${rows > 1 ? "s" : ""})`).value = name;
  }
  byId("heat").querySelector("label").hidden = names.length < 2;
  const canvas = byId("heat").querySelector("canvas");
  const reading = byId("heat").querySelector(".reading");
  const norm = (x) => plain(10 ** (x / 10), 2);
  const label = (value) => shortened(value.name, innerWidth < 600 ? 18 : 30);
  let map;
  let left = 0;
  let cell = 1;
  let cursor = null;  // row and column of the keyboard

  function draw() {
    map = maps[select.value];
    const numbers = map.values.flatMap((value) => value.cells.filter((x) => x !== null)).sort(d3.ascending);
    const low = numbers.length ? d3.quantile(numbers, 0.02) : 0;
    const high = Math.max(numbers.length ? d3.quantile(numbers, 0.98) : 1, low + 1);
    const colour = d3.scaleSequential(d3.interpolateViridis).domain([low, high]).clamp(true);
    const context = canvas.getContext("2d");
    const room = byId("heat").querySelector(".heat").clientWidth;
    const font = "12px system-ui, sans-serif";
    context.font = font;
    left = 14 + Math.ceil(Math.max(60, ...map.values.map((value) => context.measureText(label(value)).width)));
    cell = Math.min(72, (room - left - 8) / map.columns);
    const width = room;
    const height = TOP + ROW * map.values.length + 24;
    const dots = Math.min(2, devicePixelRatio || 1);
    canvas.width = width * dots;
    canvas.height = height * dots;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(dots, dots);
    const style = getComputedStyle(document.documentElement);
    context.font = font;
    map.values.forEach((value, row) => drawRow(context, style, colour, value, TOP + ROW * row));
    context.fillStyle = style.getPropertyValue("--quiet");
    context.fillText("iteration 0", left, height - 7);
    if (cell * map.columns > 150) {
      context.textAlign = "right";
      context.fillText(where(map.columns - 1), left + cell * map.columns, height - 7);
      context.textAlign = "left";
    }
    byId("low").textContent = `norm ${norm(low)}`;
    byId("high").textContent = norm(high);
    byId("heat").querySelector(".legend .scale").style.background = `linear-gradient(90deg, ${d3.range(0, 1.01, 0.1).map(d3.interpolateViridis).join(",")})`;
  }

  function drawRow(context, style, colour, value, y) {
    context.fillStyle = style.getPropertyValue("--ink");
    context.fillText(label(value), 6, y + 12);
    value.cells.forEach((x, column) => {
      context.fillStyle = x === null ? style.getPropertyValue("--rule") : colour(x);
      context.fillRect(left + column * cell, y + 1, cell < 6 ? cell + 0.3 : cell - 0.5, ROW - 2);
    });
    for (const [column, kind] of Object.entries(value.marks)) drawMark(context, left + column * cell, y, kind);
    if (cursor && map.values[cursor.row] === value) {
      context.strokeStyle = style.getPropertyValue("--ink");
      context.lineWidth = 2;
      context.strokeRect(left + cursor.column * cell, y + 1, Math.max(cell, 3), ROW - 2);
      context.lineWidth = 1;
    }
  }

  function drawMark(context, x, y, kind) {
    context.fillStyle = kind === "nan" ? "#dc2626" : "#f59e0b";
    context.fillRect(x, y + 1, Math.max(cell - 0.5, 2), ROW - 2);
    if (kind !== "nan" || cell < 7) return;
    context.strokeStyle = "#fff";
    context.beginPath();
    context.moveTo(x + 2, y + 3);
    context.lineTo(x + cell - 2, y + ROW - 3);
    context.moveTo(x + cell - 2, y + 3);
    context.lineTo(x + 2, y + ROW - 3);
    context.stroke();
  }

  // The number of the iteration, with those of the loops around it in front.
  const where = (column) => (map.at[column] || [column * map.step]).map(count).join("/");

  function said(value, column) {
    const range = value.low === null ? "no finite number" : `${plain(value.low, 4)} to ${value.high === null ? "inf" : plain(value.high, 4)}`;
    let text = `${value.name}: ${range}`;
    if (column >= 0 && column < value.cells.length) {
      const x = value.cells[column];
      text += `\niteration ${where(column)}: ${value.marks[column] || (x === null ? "all 0" : `norm ${norm(x)}`)}`;
    }
    return value.first ? `${text}\nfirst NaN or infinity in iteration ${value.first.join("/")}` : text;
  }

  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const value = map.values[Math.floor((event.clientY - box.top - TOP) / ROW)];
    if (!value) return hideTip();
    showTip(event, said(value, Math.floor((event.clientX - box.left - left) / cell)));
  });
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const { row, column } = cursor || { row: 0, column: 0 };
    cursor = {
      row: Math.max(0, Math.min(map.values.length - 1, row + (cursor ? step[0] : 0))),
      column: Math.max(0, Math.min(map.columns - 1, column + (cursor ? step[1] : 0))),
    };
    reading.textContent = said(map.values[cursor.row], cursor.column).replaceAll("\n", "; ");
    draw();
  });
  canvas.addEventListener("blur", () => {
    cursor = null;
    reading.textContent = "";
    draw();
  });
  select.addEventListener("change", draw);
  keepDrawn(draw);
}
