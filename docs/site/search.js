"use strict";
(function () {
  var field = document.getElementById("find"), said = document.getElementById("said"), list = document.getElementById("found");
  var rows = Array.from(list.children).map(function (li, i) { return { li: li, i: i, text: li.firstChild.textContent.toLowerCase(), all: li.textContent.toLowerCase() }; });
  /* 0: the name is the query. 1: begins with it. 2: has a word that begins with it. 3: contains it. 4: the row contains all its words. 5: none. */
  function rank(row, query, words) {
    var name = row.text.replace(/^weft_/, "");
    if (row.text === query || name === query) return 0;
    if (name.startsWith(query) || row.text.startsWith(query)) return 1;
    if (row.text.includes("_" + query) || row.text.includes(" " + query)) return 2;
    if (row.text.includes(query)) return 3;
    return words.every(function (w) { return row.all.includes(w); }) ? 4 : 5;
  }
  function find() {
    var query = field.value.trim().toLowerCase(), words = query.split(/\s+/), n = 0;
    rows.forEach(function (row) { row.rank = query ? rank(row, query, words) : 0; row.li.hidden = row.rank === 5; n += row.rank < 5; });
    rows.slice().sort(function (a, b) { return a.rank - b.rank || a.i - b.i; }).forEach(function (row) { list.appendChild(row.li); });
    said.textContent = query && !n ? "Nothing has \u201c" + query + "\u201d in its name. This search finds functions and headings, not the text of pages. " +
      "Try one word, such as lstm, clip, pack or schedule; for names of PyTorch see \u201cEvery function, with its name in other libraries\u201d." :
      query ? n + " of " + rows.length + " names and headings" : "All names of the library and all headings of these pages.";
  }
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.addEventListener("input", find);
  field.form.addEventListener("submit", function (e) { e.preventDefault(); find(); });
  find();
})();
