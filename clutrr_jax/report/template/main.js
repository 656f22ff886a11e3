$("title").textContent = DATA.title;
$("facts").textContent = DATA.facts;
curves();
table();
noise();
extraction();
const browse = stories();
confusion(browse);
groups(browse);
