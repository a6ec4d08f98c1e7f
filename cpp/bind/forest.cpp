// Forests: growth, prediction, inspection, and their arrays.
#include "tree/forest.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "grow/forest_grower.hpp"
#include "predict/prediction.hpp"
#include "tree/flat_tree.hpp"
#include "tree/tree_invariants.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

using SamplesPtr = std::shared_ptr<Samples>;
using ForestPtr = std::shared_ptr<Forest>;

// Calls visit(name, array) for every array of a tree, for reading and writing.
template <class TreeRef, class Visit>
void for_each_array(TreeRef& tree, Visit visit) {
    visit("left", tree.left);
    visit("centroid_begin", tree.centroid_begin);
    visit("centroid_size", tree.centroid_size);
    visit("count_begin", tree.count_begin);
    visit("count_size", tree.count_size);
    visit("row_begin", tree.row_begin);
    visit("row_size", tree.row_size);
    visit("centroid_class", tree.centroid_class);
    visit("centroid_source", tree.centroid_source);
    visit("half_norm", tree.half_norm);
    visit("side", tree.side);
    visit("exponent", tree.exponent);
    visit("count_class", tree.count_class);
    visit("count", tree.count);
    visit("rows", tree.rows);
}

nb::dict tree_arrays(const Forest& forest, std::size_t index, bool keep_numbers) {
    const auto flat =
        std::make_shared<const FlatTree>(flatten(*forest.trees.at(index), keep_numbers));
    nb::dict arrays;
    for_each_array(*flat, [&](const char* name, const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        arrays[name] = NumpyVector<const T>(values.data(), {values.size()}, keep_alive(flat));
    });
    const std::size_t n = flat->vectors.size();
    if (flat->format == VectorFormat::kBytes)
        arrays["bytes"] = NumpyVector<const std::int8_t>(
            reinterpret_cast<const std::int8_t*>(flat->vectors.data()), {n}, keep_alive(flat));
    else
        arrays["halves"] = NumpyVector<const std::uint16_t>(
            reinterpret_cast<const std::uint16_t*>(flat->vectors.data()), {n / 2},
            keep_alive(flat));
    return arrays;
}

// The arrays of a tree where they lie in Python's memory.
class BorrowedTree {
  public:
    explicit BorrowedTree(const nb::dict& arrays) {
        for_each_array(flat, [&](const char* name, auto& values) {
            using T = typename std::decay_t<decltype(values)>::value_type;
            values = borrow<T>(arrays, name);
        });
        // Vectors in one of the two formats; the name of their array says which.
        flat.format = arrays.contains("bytes") ? VectorFormat::kBytes : VectorFormat::kHalves;
        flat.vectors = flat.format == VectorFormat::kBytes
                           ? as_bytes(borrow<std::int8_t>(arrays, "bytes"))
                           : as_bytes(borrow<std::uint16_t>(arrays, "halves"));
    }

    FlatTreeView flat;

  private:
    template <class T>
    ArrayView<T> borrow(const nb::dict& arrays, const char* name) {
        auto array = std::make_shared<Vector<T>>();
        if (!arrays.contains(name) || !nb::try_cast(arrays[name], *array, false))
            throw std::invalid_argument(std::string("damaged tree: array '") + name +
                                        "' is missing or has the wrong type");
        owners_.push_back(array);
        return {array->data(), array->size()};
    }
    template <class T>
    static ArrayView<std::uint8_t> as_bytes(const ArrayView<T>& values) {
        return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
    }

    std::vector<std::shared_ptr<const void>> owners_;
};

ForestPtr forest_from_arrays(const SamplesPtr& samples, const std::vector<nb::dict>& trees,
                             const std::vector<std::uint64_t>& n_comparisons,
                             const std::string& proposer, std::size_t n_classes) {
    if (trees.size() != n_comparisons.size())
        throw std::invalid_argument("trees and n_comparisons differ in length");
    auto forest = std::make_shared<Forest>(Forest{samples, {}, n_classes, nullptr});
    for (std::size_t t = 0; t < trees.size(); ++t) {
        auto tree = std::make_shared<Tree>(
            unflatten(BorrowedTree(trees[t]).flat, kind_of_split(proposer), n_classes, *samples));
        tree->n_comparisons = n_comparisons[t];
        forest->trees.push_back(std::move(tree));
    }
    return forest;
}

ForestPtr grow(const SamplesPtr& samples, std::size_t n_trees, std::size_t n_classes,
               std::uint64_t seed, std::size_t rows_per_tree, bool bootstrap,
               const SplitRules& rules, std::size_t n_threads, nb::object progress,
               std::size_t first_tree, bool packs_trees, std::vector<double> class_weights) {
    if (samples->size() == samples->n_removed())
        throw std::invalid_argument("samples must have at least one row that is not removed");
    check_hierarchy(rules, n_classes);
    check_class_weights(class_weights, n_classes);
    const GrowRequest request{
        n_trees, n_classes,  seed,        RowSampling{rows_per_tree, bootstrap},
        rules,   first_tree, packs_trees, std::move(class_weights)};
    std::optional<Forest> forest;
    run_interruptibly(std::move(progress), [&](const Poll& poll) {
        forest = grow_forest(samples, request, n_threads, poll);
        return forest.has_value();
    });
    return std::make_shared<Forest>(std::move(*forest));
}

template <class T>
Query as_query(const Forest& forest, const Matrix<T>& rows, const Standardizer& standardizer) {
    if (rows.shape(1) != forest.n_features() || standardizer.n_features() != forest.n_features())
        throw std::invalid_argument("rows must have " + std::to_string(forest.n_features()) +
                                    " features, got " + std::to_string(rows.shape(1)));
    return Query{rows.data(), std::is_same_v<T, double>, rows.shape(0), standardizer};
}

void run_predict(const Forest& forest, const Query& query, const Outputs& outputs,
                 std::size_t n_threads) {
    run_interruptibly(nb::none(), [&](const Poll& poll) {
        return predict(forest, query, outputs, n_threads, poll);
    });
}

// How nodes split; see tree/split.hpp.
const char* kind_name(const Forest& forest) {
    switch (forest.trees.at(0)->kind()) {
        case SplitKind::kLinear: return "linear";
        case SplitKind::kAxis: return "axis";
        default: return "ncm";
    }
}

const LeafReading& reading_of(const Forest& forest, const LeafReading* reading,
                              const VoteWeights* votes) {
    static const LeafReading plain = plain_reading();
    if (reading != nullptr && reading->hierarchy.size() != forest.n_classes)
        throw std::invalid_argument("the reading of leaves must have every class of the forest");
    if (votes != nullptr &&
        (votes->n_classes() != forest.n_classes || votes->n_trees() != forest.trees.size()))
        throw std::invalid_argument("the votes must have every tree and class of the forest");
    return reading == nullptr ? plain : *reading;
}

nb::tuple leaf_votes(const Forest& forest, std::size_t tree, const LeafReading* reading,
                     const VoteWeights* votes) {
    if (tree >= forest.trees.size())
        throw std::invalid_argument("the forest has " + std::to_string(forest.trees.size()) +
                                    " trees, got tree " + std::to_string(tree));
    const LeafReading& how = reading_of(forest, reading, votes);
    std::shared_ptr<const LeafVotes> found;
    {
        const nb::gil_scoped_release release;
        found = std::make_shared<const LeafVotes>(read_leaves(forest, tree, how, votes));
    }
    const auto array = [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        return NumpyVector<const T>(values.data(), {values.size()}, keep_alive(found));
    };
    return nb::make_tuple(array(found->node), array(found->begin), array(found->class_id),
                          array(found->share));
}

template <class T>
NumpyMatrix<double> predict_proba(const Forest& forest, const Matrix<T>& rows,
                                  const Standardizer& standardizer, std::size_t n_threads,
                                  const LeafReading* reading, const VoteWeights* votes) {
    Query query = as_query(forest, rows, standardizer);
    query.reading = &reading_of(forest, reading, votes);
    query.votes = votes;
    auto [data, owner] = new_array<double>(query.n_rows * forest.n_classes);
    Outputs outputs;
    outputs.probabilities = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyMatrix<double>(data, {query.n_rows, forest.n_classes}, owner);
}

template <class T>
NumpyMatrix<std::int32_t> apply(const Forest& forest, const Matrix<T>& rows,
                                const Standardizer& standardizer, std::size_t n_threads) {
    const Query query = as_query(forest, rows, standardizer);
    auto [data, owner] = new_array<std::int32_t>(query.n_rows * forest.trees.size());
    Outputs outputs;
    outputs.leaves = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyMatrix<std::int32_t>(data, {query.n_rows, forest.trees.size()}, owner);
}

template <class T>
NumpyVector<std::uint64_t> comparisons(const Forest& forest, const Matrix<T>& rows,
                                       const Standardizer& standardizer, std::size_t n_threads) {
    const Query query = as_query(forest, rows, standardizer);
    auto [data, owner] = new_array<std::uint64_t>(query.n_rows);
    Outputs outputs;
    outputs.comparisons = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyVector<std::uint64_t>(data, {query.n_rows}, owner);
}

std::vector<std::tuple<std::int32_t, std::uint8_t>> centroids_of(const Tree& tree,
                                                                 std::int32_t at) {
    std::vector<std::tuple<std::int32_t, std::uint8_t>> centroids;
    const Node& node = tree.node(at);
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.centroid_size); ++j)
        centroids.emplace_back(tree.centroid(node, j).class_id, tree.centroid(node, j).side);
    return centroids;
}

nb::tuple trace_row(const Forest& forest, std::size_t tree_index, const Vector<double>& x,
                    const Standardizer& standardizer) {
    if (tree_index >= forest.trees.size())
        throw std::invalid_argument("the forest has " + std::to_string(forest.trees.size()) +
                                    " trees, got tree " + std::to_string(tree_index));
    if (x.size() != forest.n_features() || standardizer.n_features() != forest.n_features())
        throw std::invalid_argument("the row must have " + std::to_string(forest.n_features()) +
                                    " features, got " + std::to_string(x.size()));
    const Tree& tree = *forest.trees[tree_index];
    const Path path = trace(forest, tree_index, x.data(), standardizer);
    nb::list steps;
    for (const PathStep& step : path.steps)
        steps.append(nb::make_tuple(step.node, step.right, step.nearest, step.score,
                                    centroids_of(tree, step.node)));
    const Node& leaf = tree.node(path.leaf);
    nb::list counts;
    for (std::size_t j = 0; j < static_cast<std::size_t>(leaf.count_size); ++j)
        counts.append(nb::make_tuple(tree.count(leaf, j).class_id, tree.count(leaf, j).count));
    return nb::make_tuple(steps, path.leaf, counts);
}

NumpyVector<float> centroid(const Forest& forest, std::size_t tree_index, std::int32_t node,
                            std::size_t j) {
    const Tree& tree = *forest.trees.at(tree_index);
    if (node < 0 || static_cast<std::size_t>(node) >= tree.node_limit() ||
        j >= static_cast<std::size_t>(tree.node(node).centroid_size) ||
        tree.kind() == SplitKind::kAxis)
        throw std::invalid_argument("the node or the index of its centroid is out of range");
    auto [data, owner] = new_array<float>(forest.n_features());
    copy_centroid(forest, tree, node, j, data);
    return NumpyVector<float>(data, {forest.n_features()}, owner);
}

template <class T>
void bind_inputs(nb::class_<Forest>& forest) {
    forest.def("predict_proba", &predict_proba<T>, "rows"_a.noconvert(), "standardizer"_a,
               "n_threads"_a, "reading"_a = nb::none(), "votes"_a = nb::none());
    forest.def("apply", &apply<T>, "rows"_a.noconvert(), "standardizer"_a, "n_threads"_a);
    forest.def("comparisons", &comparisons<T>, "rows"_a.noconvert(), "standardizer"_a,
               "n_threads"_a);
}

}  // namespace

void bind_forest(nb::module_& m) {
    nb::class_<LeafReading>(m, "LeafReading")
        .def(
            "__init__",
            [](LeafReading* self, std::vector<std::int32_t> parents, const std::string& name,
               double smoothing) {
                new (self)
                    LeafReading(reading_named(name, ClassHierarchy(std::move(parents)), smoothing));
            },
            "parents"_a, "name"_a, "smoothing"_a);
    nb::class_<VoteWeights>(m, "VoteWeights")
        .def(nb::init<std::vector<std::int64_t>, std::vector<std::int64_t>, double, double>(),
             "tree_grown"_a, "class_came"_a, "older"_a, "gain"_a = 1.0)
        .def_prop_ro("sums", &VoteWeights::sums);
    nb::class_<Forest> forest(m, "Forest");
    forest
        .def_static("grow", &grow, nb::kw_only(), "samples"_a, "n_trees"_a, "n_classes"_a, "seed"_a,
                    "rows_per_tree"_a, "bootstrap"_a, "rules"_a, "n_threads"_a, "progress"_a.none(),
                    "first_tree"_a = 0, "packs_trees"_a = true,
                    "class_weights"_a = std::vector<double>())
        .def_static(
            "joined",
            [](const SamplesPtr& samples, const std::vector<ForestPtr>& forests) {
                return std::make_shared<Forest>(joined(samples, forests));
            },
            "samples"_a, "forests"_a)
        .def_static("from_arrays", &forest_from_arrays, nb::kw_only(), "samples"_a, "trees"_a,
                    "n_comparisons"_a, "proposer"_a, "n_classes"_a)
        .def("__len__", [](const Forest& self) { return self.trees.size(); })
        .def_prop_ro(
            "samples",
            [](const Forest& self) { return std::const_pointer_cast<Samples>(self.samples); })
        .def_ro("n_classes", &Forest::n_classes)
        .def_prop_ro("kind", &kind_name)
        .def_prop_ro("keeps_rows", &Forest::keeps_rows)
        .def_prop_ro("nbytes", &Forest::n_bytes)
        .def_prop_ro("n_comparisons", &Forest::n_comparisons)
        .def("check", &check_trees)
        .def("tree_arrays", &tree_arrays, "tree"_a, "keep_numbers"_a = false)
        .def("leaf_votes", &leaf_votes, "tree"_a, "reading"_a = nb::none(), "votes"_a = nb::none())
        .def("trace", &trace_row, "tree"_a, "x"_a, "standardizer"_a)
        .def("centroid", &centroid, "tree"_a, "node"_a, "j"_a);
    bind_inputs<float>(forest);
    bind_inputs<double>(forest);
    bind_update(forest);
}

}  // namespace evergrow
