// How results of a search are ordered: first pages with a heading that holds the words, last what is not for readers of an answer.
// Sphinx counts a word of a title three times as much as one of the text, however many other words were asked for.
const LAST = /^(CHANGELOG|ARCHITECTURE|CONTRIBUTING|studies\/CHANGELOG|docs\/questions|docs\/index)$/;
const BELOW = /^docs\/(note|objections|padding|labelling|coreference)$/; // pages that belong to another page

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  score: ([page, title, anchor, _description, score]) => {
    if (LAST.test(page)) return score - 100;
    const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
    const asked = split(new URLSearchParams(window.location.search).get("q")).map((word) => word.replace(/s$/, ""));
    const rate = (heading) => {
      const words = split(heading);
      const held = asked.filter((word) => words.some((other) => other.startsWith(word))).length;
      return held * (1 + held / Math.max(1, words.length)); // a heading of nothing but these words is best
    };
    const number = Search._index.docnames.indexOf(page);
    const headings = Object.entries(Search._index.alltitles)
      .filter(([_heading, places]) => places.some(([place]) => place === number))
      .map(([heading]) => rate(heading));
    const best = Math.max(0, ...headings) + rate(title) / 2 + (anchor ? rate(title.split(" > ").pop()) / 4 : 0);
    return score + 20 * best - (BELOW.test(page) ? 25 : 0);
  },
};
