// Clustering trees whose leaves are visual words.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "codebook/word_trees.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

template <class T>
void read_array(const nb::dict& arrays, const char* name, std::vector<T>& values) {
    Vector<T> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw std::invalid_argument(std::string("damaged tree: array '") + name +
                                    "' is missing or has the wrong type");
    values.assign(array.data(), array.data() + array.size());
}

std::vector<WordTree> read_trees(const std::vector<nb::dict>& arrays) {
    std::vector<WordTree> trees;
    for (const nb::dict& from : arrays) {
        WordTree tree;
        read_array(from, "feature", tree.feature);
        read_array(from, "threshold", tree.threshold);
        read_array(from, "child", tree.child);
        read_array(from, "word", tree.word);
        trees.push_back(std::move(tree));
    }
    return trees;
}

// The pickled state: the arrays of every tree, and the number of features.
using State = std::tuple<std::vector<nb::dict>, std::size_t>;

std::vector<nb::dict> arrays_of(const WordTrees& forest) {
    std::vector<nb::dict> all;
    for (const WordTree& tree : forest.trees()) {
        nb::dict arrays;
        arrays["feature"] = to_numpy(tree.feature);
        arrays["threshold"] = to_numpy(tree.threshold);
        arrays["child"] = to_numpy(tree.child);
        arrays["word"] = to_numpy(tree.word);
        all.push_back(std::move(arrays));
    }
    return all;
}

WordRules word_rules(const nb::dict& rules) {
    return WordRules{
        nb::cast<bool>(rules["supervised"]),  nb::cast<std::size_t>(rules["max_trials"]),
        nb::cast<double>(rules["min_score"]), nb::cast<std::size_t>(rules["max_words"]),
        nb::cast<double>(rules["min_gain"]),  nb::cast<bool>(rules["stop_early"])};
}

void check_width(const Matrix<float>& rows, const WordTrees& forest) {
    if (rows.shape(1) != forest.n_features())
        throw std::invalid_argument("the descriptors must have the width of the trees, " +
                                    std::to_string(forest.n_features()) + ", got " +
                                    std::to_string(rows.shape(1)));
}

WordTrees* grown(const WordTrees& before, const Matrix<float>& rows,
                 const Vector<std::int32_t>& classes, std::size_t first_new, const nb::dict& rules,
                 std::uint64_t seed, std::uint64_t update, std::size_t n_threads,
                 nb::object progress) {
    check_width(rows, before);
    if (classes.size() != rows.shape(0) || first_new > rows.shape(0))
        throw std::invalid_argument(
            "there must be one class per descriptor, and first_new at most their number");
    const WordRules read = word_rules(rules);
    std::optional<WordTrees> after;
    run_interruptibly(std::move(progress), [&](const Poll& poll) {
        const Descriptors descriptors(rows.data(), rows.shape(0), rows.shape(1), classes.data(),
                                      first_new);
        after = before.grown(descriptors, read, seed, update, n_threads, poll);
        return after.has_value();
    });
    return new WordTrees(std::move(*after));
}

NumpyMatrix<std::int32_t> code(const WordTrees& forest, const Matrix<float>& rows,
                               std::size_t n_threads) {
    check_width(rows, forest);
    const std::size_t n_rows = rows.shape(0), n_trees = forest.trees().size();
    auto [data, owner] = new_array<std::int32_t>(n_rows * n_trees);
    run_interruptibly(nb::none(), [&, words = data](const Poll& poll) {
        return forest.code(rows.data(), n_rows, words, n_threads, poll);
    });
    return NumpyMatrix<std::int32_t>(data, {n_rows, n_trees}, owner);
}

}  // namespace

void bind_codebook(nb::module_& m) {
    nb::class_<WordTrees>(m, "WordTrees")
        .def_static(
            "stumps",
            [](std::size_t n_trees, std::size_t n_features) {
                return new WordTrees(WordTrees::stumps(n_trees, n_features));
            },
            "n_trees"_a, "n_features"_a, nb::rv_policy::take_ownership)
        .def_static(
            "from_arrays",
            [](const std::vector<nb::dict>& trees, std::size_t n_features) {
                return new WordTrees(read_trees(trees), n_features);
            },
            "trees"_a, "n_features"_a, nb::rv_policy::take_ownership)
        .def("__getstate__",
             [](const WordTrees& forest) { return State(arrays_of(forest), forest.n_features()); })
        .def("__setstate__",
             [](WordTrees& forest, const State& state) {
                 new (&forest) WordTrees(read_trees(std::get<0>(state)), std::get<1>(state));
             })
        .def_prop_ro("arrays", &arrays_of)
        .def_prop_ro("n_features", &WordTrees::n_features)
        .def_prop_ro("words_per_tree", &WordTrees::words_per_tree)
        .def("grown", &grown, "rows"_a, "classes"_a, "first_new"_a, "rules"_a, "seed"_a, "update"_a,
             "n_threads"_a, "progress"_a.none() = nb::none(), nb::rv_policy::take_ownership)
        .def("code", &code, "rows"_a, "n_threads"_a);
}

}  // namespace evergrow
