$("title").textContent = DATA.title;
$("summary").textContent = DATA.summary;
showCurves();
showTable();
showNoise();
showExtraction();
const browse = showStories();
showConfusion(browse);
showGroups(browse);
