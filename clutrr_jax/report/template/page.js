$("title").textContent = DATA.title;
$("headline").textContent = DATA.headline.replaceAll(" = ", "\u00a0=\u00a0");
$("task").textContent = DATA.task;
$("summary").textContent = DATA.summary;
showCurves();
showHeatMaps();
showClaims();
showTable();
showCompared();
showRuns();
if (DATA.sets.length) {
  showSetChoice();
  showTraining();
  showExtraction();
  const browse = showStories();
  showConfusion(browse);
  showGroups(browse);
} else $("set").remove();

for (const section of document.querySelectorAll("section")) {
  const heading = section.querySelector("h2");
  heading.id = `${section.id}-heading`;
  section.setAttribute("aria-labelledby", heading.id);
  $("sections").append(el("a", { href: `#${section.id}` }, heading.textContent));
}
