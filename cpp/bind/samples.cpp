// Samples, their standardisation, and sums for the variance of features.
#include "samples/samples.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "samples/feature_variance.hpp"
#include "samples/row_sampling.hpp"
#include "samples/sample_arrays.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

using SamplesPtr = std::shared_ptr<Samples>;
using Total = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Standardizer make_standardizer(const Vector<double>& mean, const Vector<double>& scale,
                               const std::optional<Matrix<float>>& whitening,
                               const std::optional<Vector<std::uint8_t>>& length_features) {
    if (mean.size() != scale.size() || mean.size() == 0)
        throw std::invalid_argument(
            "mean and scale must have the same length, which must not be 0");
    if (whitening && (whitening->shape(0) != mean.size() || whitening->shape(1) != mean.size()))
        throw std::invalid_argument("whitening must have a row and a column for every feature");
    if (length_features && length_features->size() != mean.size())
        throw std::invalid_argument("length_features must have an entry for every feature");
    return {{mean.data(), mean.data() + mean.size()},
            {scale.data(), scale.data() + scale.size()},
            whitening ? whitening->data() : nullptr,
            length_features ? std::vector<std::uint8_t>(length_features->data(),
                                                        length_features->data() + mean.size())
                            : std::vector<std::uint8_t>()};
}

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

void check_numbers(const Samples& samples, const Vector<std::int32_t>& numbers) {
    if (!all_within(numbers.data(), numbers.size(), samples.size()))
        throw std::invalid_argument("numbers of rows must be from 0 to " +
                                    std::to_string(samples.size()) + " - 1");
}

template <class T>
void write(Samples& samples, const Vector<std::int32_t>& numbers, const Matrix<T>& rows,
           const Vector<std::int32_t>& classes, const Vector<std::int64_t>& ids,
           const Standardizer& standardizer, std::size_t n_threads) {
    if (rows.shape(1) != samples.n_features() || standardizer.n_features() != samples.n_features())
        throw std::invalid_argument("rows and standardizer must have the width of the samples");
    if (rows.shape(0) != classes.size() || rows.shape(0) != numbers.size() ||
        rows.shape(0) != ids.size())
        throw std::invalid_argument("numbers, rows, classes and ids differ in length");
    check_numbers(samples, numbers);
    const nb::gil_scoped_release release;
    samples.write(numbers.data(), rows.data(), classes.data(), ids.data(), classes.size(),
                  standardizer, n_threads);
}

void remove(Samples& samples, const Vector<std::int32_t>& numbers) {
    check_numbers(samples, numbers);
    samples.remove(numbers.data(), numbers.size());
}

void set_classes(Samples& samples, const Vector<std::int32_t>& numbers,
                 const Vector<std::int32_t>& classes) {
    check_numbers(samples, numbers);
    if (numbers.size() != classes.size())
        throw std::invalid_argument("numbers and classes differ in length");
    samples.set_classes(numbers.data(), classes.data(), numbers.size());
}

void check_weights(const Vector<float>& weights, std::size_t n) {
    if (weights.size() != n) throw std::invalid_argument("rows and weights differ in length");
    for (std::size_t i = 0; i < n; ++i)
        if (!(weights.data()[i] >= 0 && weights.data()[i] <= RowWeights::kLargest))
            throw std::invalid_argument("weights must be from 0 to " +
                                        std::to_string(RowWeights::kLargest));
}

void set_weights(Samples& samples, const Vector<std::int32_t>& numbers,
                 const Vector<float>& weights) {
    check_numbers(samples, numbers);
    check_weights(weights, numbers.size());
    samples.set_weights(numbers.data(), weights.data(), numbers.size());
}

nb::object take(const Samples& samples, const Vector<std::int32_t>& numbers) {
    check_numbers(samples, numbers);
    const std::size_t n = numbers.size() * samples.n_features();
    if (samples.precision() == Precision::kFloat32) {
        auto [data, owner] = new_array<float>(n);
        gather_full(samples, numbers.data(), numbers.size(), data);
        return nb::cast(NumpyMatrix<float>(data, {numbers.size(), samples.n_features()}, owner));
    }
    auto [data, owner] = new_array<std::uint16_t>(n);
    gather_half(samples, numbers.data(), numbers.size(), data);
    return nb::cast(
        NumpyMatrix<std::uint16_t>(data, {numbers.size(), samples.n_features()}, owner));
}

// Numbers of rows by class and place.
NumpyVector<const std::int32_t> rows_at(const Samples& samples, const Vector<std::int32_t>& classes,
                                        const Vector<std::int64_t>& places) {
    if (classes.size() != places.size())
        throw std::invalid_argument("classes and places differ in length");
    std::vector<std::int32_t> rows(classes.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = samples.row_at(classes.data()[i], places.data()[i]);
    return to_numpy(rows);
}

nb::object class_sums(const Samples& samples, const Vector<std::int32_t>& classes) {
    const std::size_t width = samples.n_features();
    auto [data, owner] = new_array<double>(classes.size() * width);
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const std::vector<double> sum = samples.class_sum(classes.data()[i]);
        std::copy(sum.begin(), sum.end(), data + i * width);
    }
    return nb::cast(NumpyMatrix<double>(data, {classes.size(), width}, owner));
}

// The memory of an array, which keeps the array alive.
template <class T>
std::shared_ptr<const T> memory_of(const Matrix<T>& rows) {
    auto* held = new Matrix<T>(rows);
    return {rows.data(), [held](const T*) {
                const nb::gil_scoped_acquire gil;
                delete held;
            }};
}

template <class T>
SamplesPtr samples_over(const Matrix<T>& rows, const Vector<std::int32_t>& classes,
                        const Vector<std::int64_t>& ids, std::size_t n_features,
                        const std::optional<Vector<float>>& weights) {
    const std::size_t n = classes.size();
    if (n_features == 0 || rows.shape(1) != padded_width(n_features))
        throw std::invalid_argument("rows must have the padded width, " +
                                    std::to_string(padded_width(n_features)) + " columns, got " +
                                    std::to_string(rows.shape(1)));
    if (reinterpret_cast<std::uintptr_t>(rows.data()) % kAlignment != 0)
        throw std::invalid_argument("rows must start at a multiple of 64 bytes");
    if (rows.shape(0) != n || ids.size() != n)
        throw std::invalid_argument("rows, classes and ids differ in length");
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::invalid_argument("a forest holds at most 2^31 - 1 samples");
    if (!all_at_least(classes.data(), n, Samples::kRemoved))
        throw std::invalid_argument("classes must be at least -1");
    auto samples = std::make_shared<Samples>(n_features, memory_of(rows), classes.data(),
                                             ids.data(), classes.size());
    if (weights) {
        check_weights(*weights, classes.size());
        std::vector<std::int32_t> numbers(classes.size());
        std::iota(numbers.begin(), numbers.end(), 0);
        samples->set_weights(numbers.data(), weights->data(), numbers.size());
    }
    return samples;
}

template <class T, class Stored>
void standardize_into(const Matrix<T>& rows, const Standardizer& standardizer,
                      const nb::ndarray<Stored, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
                      std::size_t n_threads) {
    const std::size_t n_features = standardizer.n_features();
    if (rows.shape(1) != n_features || out.shape(1) != padded_width(n_features))
        throw std::invalid_argument(
            "rows must have the width of the standardizer, and out its padded width");
    if (rows.shape(0) != out.shape(0)) throw std::invalid_argument("rows and out differ in length");
    const nb::gil_scoped_release release;
    standardize_matrix(standardizer, rows.data(), rows.shape(0), out.data(), n_threads);
}

template <class Stored>
void bind_stored(nb::module_& m, nb::class_<Samples>& samples) {
    samples.def_static("over", &samples_over<Stored>, "rows"_a.noconvert(), "classes"_a, "ids"_a,
                       nb::kw_only(), "n_features"_a, "weights"_a = nb::none());
    m.def("standardize_rows", &standardize_into<float, Stored>, "rows"_a.noconvert(),
          "standardizer"_a, "out"_a.noconvert(), "n_threads"_a = 1);
    m.def("standardize_rows", &standardize_into<double, Stored>, "rows"_a.noconvert(),
          "standardizer"_a, "out"_a.noconvert(), "n_threads"_a = 1);
}

template <class T>
void bind_inputs(nb::module_& m, nb::class_<Samples>& samples) {
    m.def("add_sums", &sum_columns<T>, "rows"_a.noconvert(), "total"_a.noconvert());
    m.def("add_squares", &sum_squares<T>, "rows"_a.noconvert(), "mean"_a, "total"_a.noconvert());
    samples.def("write", &write<T>, "numbers"_a, "rows"_a.noconvert(), "classes"_a, "ids"_a,
                "standardizer"_a, "n_threads"_a = 1);
}

void bind_standardizer(nb::module_& m) {
    nb::class_<Standardizer>(m, "Standardizer")
        .def(
            "__init__",
            [](Standardizer* self, const Vector<double>& mean, const Vector<double>& scale,
               const std::optional<Matrix<float>>& whitening,
               const std::optional<Vector<std::uint8_t>>& length_features) {
                new (self) Standardizer(make_standardizer(mean, scale, whitening, length_features));
            },
            "mean"_a, "scale"_a, "whitening"_a = nb::none(), "length_features"_a = nb::none());
}

void bind_properties(nb::class_<Samples>& samples) {
    samples.def("__len__", &Samples::size)
        .def_prop_ro("half",
                     [](const Samples& self) { return self.precision() == Precision::kFloat16; })
        .def_prop_ro("n_features", &Samples::n_features)
        .def_prop_ro("in_file", [](const Samples& self) { return self.file() != nullptr; })
        .def_prop_ro("n_removed", &Samples::n_removed)
        .def_prop_ro("nbytes", &Samples::n_bytes)
        .def_prop_ro("width", &Samples::width)
        .def_prop_ro(
            "classes", [](const Samples& self) { return to_numpy(all_classes(self)); },
            nb::rv_policy::automatic)
        .def_prop_ro(
            "ids", [](const Samples& self) { return to_numpy(all_ids(self)); },
            nb::rv_policy::automatic)
        .def_prop_ro(
            "weights",
            [](const Samples& self) -> nb::object {
                if (!self.has_weights()) return nb::none();
                return nb::cast(to_numpy(all_weights(self)));
            },
            nb::rv_policy::automatic);
}

}  // namespace

void bind_samples(nb::module_& m) {
    bind_standardizer(m);
    nb::class_<Samples> samples(m, "Samples");
    samples
        .def(
            "__init__",
            [](Samples* self, std::size_t n_features, bool half) {
                new (self) Samples(n_features, half ? Precision::kFloat16 : Precision::kFloat32);
            },
            "n_features"_a, "half"_a = false)
        .def("copy", [](const Samples& self) { return std::make_shared<Samples>(self); })
        .def(
            "add", [](Samples& self, std::size_t n) { return to_numpy(self.add(n)); }, "n"_a)
        .def("remove", &remove, "numbers"_a)
        .def("rename_classes", &Samples::rename_classes, "columns"_a)
        .def("set_classes", &set_classes, "numbers"_a, "classes"_a)
        .def("set_weights", &set_weights, "numbers"_a, "weights"_a)
        .def("take", &take, "numbers"_a)
        .def(
            "class_sizes",
            [](const Samples& self, std::size_t n_classes) {
                return to_numpy(self.class_sizes(n_classes));
            },
            "n_classes"_a)
        .def("rows_at", &rows_at, "classes"_a, "places"_a)
        .def("class_sums", &class_sums, "classes"_a)
        .def(
            "move_to_file",
            [](Samples& self, const std::string& folder) {
                const nb::gil_scoped_release release;
                self.move_to(std::make_shared<SpillFile>(folder));
            },
            "folder"_a);
    bind_properties(samples);
    bind_inputs<float>(m, samples);
    bind_inputs<double>(m, samples);
    bind_stored<float>(m, samples);
    bind_stored<std::uint16_t>(m, samples);
    m.def("padded_width", &padded_width, "n_features"_a);
}

}  // namespace evergrow
