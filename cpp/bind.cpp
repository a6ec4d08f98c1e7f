// The Python face of the core: conversions, the GIL and Ctrl-C, no algorithm.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "forest.hpp"
#include "kernel_trial.hpp"
#include "moments.hpp"
#include "predict.hpp"
#include "samples.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace evergrow {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using NumpyMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;
template <class T>
using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

using SamplesPtr = std::shared_ptr<Samples>;
using ForestPtr = std::shared_ptr<Forest>;

// Keeps what a view looks into alive.
template <class T>
nb::capsule keep(std::shared_ptr<T> owner) {
    auto* held = new std::shared_ptr<T>(std::move(owner));
    return nb::capsule(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<T>*>(p); });
}

template <class T>
std::pair<T*, nb::capsule> fresh(std::size_t n) {
    T* data = new T[n]();
    return {data, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); })};
}

// Runs on the calling thread several times a second: lets Ctrl-C through and reports progress.
class PythonPoll {
  public:
    explicit PythonPoll(nb::object progress) : progress_(std::move(progress)) {}

    bool operator()(std::size_t n_done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) return false;
        if (!progress_.is_none() && n_done != reported_) {
            reported_ = n_done;
            try {
                progress_(n_done);
            } catch (nb::python_error& error) {
                error.restore();
                return false;
            }
        }
        return true;
    }

  private:
    nb::object progress_;
    std::size_t reported_ = 0;
};

// After a poll that asked to stop, the Python error is set; raise it.
void raise_if_stopped(bool finished) {
    if (!finished) throw nb::python_error();
}

Poll as_poll(const std::shared_ptr<PythonPoll>& poll) {
    return [poll](std::size_t n_done) { return (*poll)(n_done); };
}

Standardizer make_standardizer(const Vector<double>& mean, const Vector<double>& scale) {
    if (mean.size() != scale.size() || mean.size() == 0)
        throw std::invalid_argument("mean and scale must have the same, nonzero length");
    return Standardizer{{mean.data(), mean.data() + mean.size()},
                        {scale.data(), scale.data() + scale.size()}};
}

using Total = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
void sum_columns(const Matrix<T>& rows, const Total& total) {
    if (rows.shape(1) != total.size())
        throw std::invalid_argument("rows and total differ in width");
    const nb::gil_scoped_release release;
    add_sums(rows.data(), rows.shape(0), rows.shape(1), total.data());
}

template <class T>
void sum_squares(const Matrix<T>& rows, const Vector<double>& mean, const Total& total) {
    if (rows.shape(1) != total.size() || mean.size() != total.size())
        throw std::invalid_argument("rows, mean and total differ in width");
    const nb::gil_scoped_release release;
    add_squares(rows.data(), rows.shape(0), rows.shape(1), mean.data(), total.data());
}

template <class T>
void append(Samples& samples, const Matrix<T>& rows, const Vector<std::int32_t>& classes,
            const Standardizer& standardizer) {
    if (rows.shape(1) != samples.n_features() || standardizer.n_features() != samples.n_features())
        throw std::invalid_argument("rows and standardizer must have the width of the samples");
    if (rows.shape(0) != classes.size())
        throw std::invalid_argument("rows and classes differ in length");
    if (rows.shape(0) > samples.capacity() - samples.size())
        throw std::invalid_argument("the samples are full");
    const nb::gil_scoped_release release;
    samples.append(rows.data(), classes.data(), classes.size(), standardizer);
}

NumpyMatrix<const float> sample_rows(const SamplesPtr& samples) {
    return NumpyMatrix<const float>(samples->row(0), {samples->size(), samples->width()},
                                    keep(samples));
}

NumpyVector<const std::int32_t> sample_classes(const SamplesPtr& samples) {
    return NumpyVector<const std::int32_t>(samples->classes().data(), {samples->size()},
                                           keep(samples));
}

// Every array of a tree by name, in one place for reading and writing.
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
    visit("halves", tree.halves);
    visit("count_class", tree.count_class);
    visit("count", tree.count);
    visit("rows", tree.rows);
}

nb::dict tree_arrays(const Forest& forest, std::size_t index) {
    const std::shared_ptr<const Tree> tree = forest.trees.at(index);
    nb::dict arrays;
    for_each_array(*tree, [&](const char* name, const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        arrays[name] = NumpyVector<const T>(values.data(), {values.size()}, keep(tree));
    });
    return arrays;
}

template <class Values>
void read_array(const nb::dict& arrays, const char* name, Values& values) {
    using T = typename Values::value_type;
    Vector<T> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw std::invalid_argument(std::string("damaged tree: array '") + name +
                                    "' is missing or has the wrong type");
    values.assign(array.data(), array.data() + array.size());
}

ForestPtr forest_from_arrays(const SamplesPtr& samples, const std::vector<nb::dict>& trees,
                             const std::vector<std::uint64_t>& n_comparisons,
                             std::size_t n_classes) {
    if (trees.size() != n_comparisons.size())
        throw std::invalid_argument("trees and n_comparisons differ in length");
    auto forest = std::make_shared<Forest>();
    forest->samples = samples;
    forest->n_classes = n_classes;
    for (std::size_t t = 0; t < trees.size(); ++t) {
        auto tree = std::make_shared<Tree>();
        for_each_array(*tree,
                       [&](const char* name, auto& values) { read_array(trees[t], name, values); });
        tree->n_comparisons = n_comparisons[t];
        tree->validate(samples->width(), n_classes, samples->size());
        forest->trees.push_back(std::move(tree));
    }
    return forest;
}

ForestPtr grow(const SamplesPtr& samples, std::size_t n_trees, std::size_t n_classes,
               std::uint64_t seed, std::size_t rows_per_tree, bool bootstrap,
               std::size_t n_centroids, std::size_t n_assignments, std::int32_t min_samples_leaf,
               double min_gain, std::size_t n_threads, nb::object progress) {
    if (samples->size() == 0) throw std::invalid_argument("there are no samples");
    const ForestPlan plan{n_trees, n_classes, seed, RowSampling{rows_per_tree, bootstrap},
                          NcmRules{n_centroids, n_assignments, min_samples_leaf, min_gain}};
    const auto poll = std::make_shared<PythonPoll>(std::move(progress));
    std::optional<Forest> forest;
    {
        const nb::gil_scoped_release release;
        forest = grow_forest(samples, plan, n_threads, as_poll(poll));
    }
    raise_if_stopped(forest.has_value());
    return std::make_shared<Forest>(std::move(*forest));
}

void run_predict(const Forest& forest, const Query& query, const Outputs& outputs,
                 std::size_t n_threads) {
    const auto poll = std::make_shared<PythonPoll>(nb::none());
    bool finished = false;
    {
        const nb::gil_scoped_release release;
        finished = predict(forest, query, outputs, n_threads, as_poll(poll));
    }
    raise_if_stopped(finished);
}

template <class T>
Query as_query(const Forest& forest, const Matrix<T>& rows, const Standardizer& standardizer) {
    if (rows.shape(1) != forest.n_features() || standardizer.n_features() != forest.n_features())
        throw std::invalid_argument("rows must have " + std::to_string(forest.n_features()) +
                                    " features, got " + std::to_string(rows.shape(1)));
    return Query{rows.data(), std::is_same_v<T, double>, rows.shape(0), standardizer};
}

template <class T>
NumpyMatrix<double> predict_proba(const Forest& forest, const Matrix<T>& rows,
                                  const Standardizer& standardizer, std::size_t n_threads) {
    const Query query = as_query(forest, rows, standardizer);
    auto [data, owner] = fresh<double>(query.n_rows * forest.n_classes);
    Outputs outputs;
    outputs.probabilities = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyMatrix<double>(data, {query.n_rows, forest.n_classes}, owner);
}

template <class T>
NumpyMatrix<std::int32_t> apply(const Forest& forest, const Matrix<T>& rows,
                                const Standardizer& standardizer, std::size_t n_threads) {
    const Query query = as_query(forest, rows, standardizer);
    auto [data, owner] = fresh<std::int32_t>(query.n_rows * forest.trees.size());
    Outputs outputs;
    outputs.leaves = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyMatrix<std::int32_t>(data, {query.n_rows, forest.trees.size()}, owner);
}

template <class T>
NumpyVector<std::uint64_t> comparisons(const Forest& forest, const Matrix<T>& rows,
                                       const Standardizer& standardizer, std::size_t n_threads) {
    const Query query = as_query(forest, rows, standardizer);
    auto [data, owner] = fresh<std::uint64_t>(query.n_rows);
    Outputs outputs;
    outputs.comparisons = data;
    run_predict(forest, query, outputs, n_threads);
    return NumpyVector<std::uint64_t>(data, {query.n_rows}, owner);
}

using PythonStep = std::tuple<std::int32_t, std::int32_t, double>;

std::tuple<std::vector<PythonStep>, std::int32_t> trace_row(const Forest& forest, std::size_t tree,
                                                            const Vector<double>& x,
                                                            const Standardizer& standardizer) {
    if (tree >= forest.trees.size()) throw std::invalid_argument("there is no such tree");
    if (x.size() != forest.n_features() || standardizer.n_features() != forest.n_features())
        throw std::invalid_argument("the row has the wrong number of features");
    AlignedVector<float> row(forest.samples->width());
    standardizer.apply(x.data(), row.size(), row.data());
    std::vector<Step> steps;
    const std::int32_t leaf = trace(forest, tree, row.data(), steps);
    std::vector<PythonStep> result;
    for (const Step& step : steps)
        result.emplace_back(step.node, step.nearest, step.squared_distance);
    return {result, leaf};
}

NumpyVector<float> centroid(const Forest& forest, std::size_t tree_index, std::size_t index) {
    const Tree& tree = *forest.trees.at(tree_index);
    if (index >= tree.centroid_class.size())
        throw std::invalid_argument("there is no such centroid");
    auto [data, owner] = fresh<float>(forest.n_features());
    copy_centroid(forest, tree, index, data);
    return NumpyVector<float>(data, {forest.n_features()}, owner);
}

NumpyVector<std::uint16_t> nearest_centroids(const Matrix<float>& rows,
                                             const Vector<std::int32_t>& order,
                                             const Matrix<float>& centroids, const std::string& isa,
                                             std::size_t repeat) {
    const Kernels* kernel = kernels_named(isa.c_str());
    if (kernel == nullptr) throw std::invalid_argument("this processor cannot run " + isa);
    if (centroids.shape(1) != rows.shape(1))
        throw std::invalid_argument("rows and centroids must have the same width");
    const KernelTrial trial{rows.data(),      rows.shape(0),      order.data(), order.size(),
                            centroids.data(), centroids.shape(0), rows.shape(1)};
    auto [data, owner] = fresh<std::uint16_t>(order.size());
    {
        const nb::gil_scoped_release release;
        run_kernel(*kernel, trial, repeat, data);
    }
    return NumpyVector<std::uint16_t>(data, {order.size()}, owner);
}

std::vector<std::string> available_kernels() {
    std::vector<std::string> names;
    for (const char* name : {"portable", "avx2", "avx512"})
        if (kernels_named(name) != nullptr) names.emplace_back(name);
    return names;
}

template <class T>
void bind_inputs(nb::module_& m, nb::class_<Samples>& samples, nb::class_<Forest>& forest) {
    m.def("add_sums", &sum_columns<T>, "rows"_a.noconvert(), "total"_a.noconvert());
    m.def("add_squares", &sum_squares<T>, "rows"_a.noconvert(), "mean"_a, "total"_a.noconvert());
    samples.def("append", &append<T>, "rows"_a.noconvert(), "classes"_a, "standardizer"_a);
    forest.def("predict_proba", &predict_proba<T>, "rows"_a.noconvert(), "standardizer"_a,
               "n_threads"_a);
    forest.def("apply", &apply<T>, "rows"_a.noconvert(), "standardizer"_a, "n_threads"_a);
    forest.def("comparisons", &comparisons<T>, "rows"_a.noconvert(), "standardizer"_a,
               "n_threads"_a);
}

}  // namespace
}  // namespace evergrow

NB_MODULE(_core, m) {
    using namespace evergrow;
    m.doc() = "The compiled core of Evergrow; use it through the public classes.";

    nb::class_<Standardizer>(m, "Standardizer")
        .def(
            "__init__",
            [](Standardizer* self, const Vector<double>& mean, const Vector<double>& scale) {
                new (self) Standardizer(make_standardizer(mean, scale));
            },
            "mean"_a, "scale"_a);

    nb::class_<Samples> samples(m, "Samples");
    samples.def(nb::init<std::size_t, std::size_t>(), "n_features"_a, "capacity"_a)
        .def("__len__", &Samples::size)
        .def_prop_ro("nbytes", &Samples::n_bytes)
        .def_prop_ro("rows", &sample_rows, nb::rv_policy::automatic)
        .def_prop_ro("classes", &sample_classes, nb::rv_policy::automatic);

    nb::class_<Forest> forest(m, "Forest");
    forest
        .def_static("grow", &grow, nb::kw_only(), "samples"_a, "n_trees"_a, "n_classes"_a, "seed"_a,
                    "rows_per_tree"_a, "bootstrap"_a, "n_centroids"_a, "n_assignments"_a,
                    "min_samples_leaf"_a, "min_gain"_a, "n_threads"_a, "progress"_a.none())
        .def_static("from_arrays", &forest_from_arrays, nb::kw_only(), "samples"_a, "trees"_a,
                    "n_comparisons"_a, "n_classes"_a)
        .def("__len__", [](const Forest& self) { return self.trees.size(); })
        .def_prop_ro(
            "samples",
            [](const Forest& self) { return std::const_pointer_cast<Samples>(self.samples); })
        .def_ro("n_classes", &Forest::n_classes)
        .def_prop_ro("nbytes", &Forest::n_bytes)
        .def_prop_ro("n_comparisons",
                     [](const Forest& self) {
                         std::vector<std::uint64_t> counts;
                         for (const auto& tree : self.trees) counts.push_back(tree->n_comparisons);
                         return counts;
                     })
        .def("tree_arrays", &tree_arrays, "tree"_a)
        .def("trace", &trace_row, "tree"_a, "x"_a, "standardizer"_a)
        .def("centroid", &centroid, "tree"_a, "centroid"_a);
    bind_inputs<float>(m, samples, forest);
    bind_inputs<double>(m, samples, forest);

    m.def("nearest_centroids", &nearest_centroids, "rows"_a, "order"_a, "centroids"_a, "isa"_a,
          "repeat"_a = 1);
    m.def("available_kernels", &available_kernels);
    m.def("chosen_kernel", [] { return std::string(kernels().name); });
}
