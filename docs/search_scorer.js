/*
 * Scores of search results. The numbers are Sphinx's own; a scorer replaces all of them.
 *
 * Sphinx ranks a page by its best matching word, 15 in a title and 5 in the text, and sorts equal
 * scores by title. Pages of results and the changelog mention nearly every word, so they come after
 * the guides: even their titles (15 - 11) rank below the text of a guide (5).
 */
var Scorer = {
  score: (result) => {
    const [name, , , , score] = result;
    if (name.startsWith("results/") || name === "changelog") return score - 11;
    // Guides have no folder; examples, classes and commands have one.
    if (!name.includes("/")) return score + 2;
    return name.startsWith("gallery/") ? score + 1 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
