// The page: answers, problems and texts, then its parts, each where there is data for it.

function head() {
  byId("title").textContent = data.title;
  document.title = `${data.title}: treadle report`;
  byId("about").textContent = data.about || "";
  for (const answer of data.answers || []) element("li", byId("answers"), answer.text, answer.kind);
  const rows = byId("problems").querySelector("tbody");
  for (const problem of data.problems || []) {
    const row = element("tr", rows);
    element("td", row, problem.level, problem.level === "error" ? "bad-word" : "");
    element("td", row, problem.what);
  }
  byId("problems").hidden = !rows.children.length;
  if (data.trace && data.trace.found) {
    byId("found").hidden = false;
    byId("found").querySelector("pre").textContent = data.trace.text;
  }
  byId("text").hidden = !data.text;
  byId("text").textContent = data.text || "";
}

head();
boxes();
flame();
memory();
heat();
roof();
pushes();
document.documentElement.dataset.ready = "yes";
