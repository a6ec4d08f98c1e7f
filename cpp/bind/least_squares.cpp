// Least squares: sums over examples, Cholesky factors, weights and random projections.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "least_squares/cholesky.hpp"
#include "least_squares/example_sums.hpp"
#include "least_squares/random_projection.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

using WritableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

FactorRows as_rows(const Matrix<double>& rows, const Vector<double>& signs) {
    require(rows.shape(0) >= 1 && rows.shape(0) <= kFactorVectors,
            "there must be from 1 to 8 rows");
    require(signs.size() == rows.shape(0), "there must be one sign per row");
    return FactorRows{rows.data(), signs.data(), rows.shape(0)};
}

nb::object update_factor_of(const WritableMatrix& factor, const Matrix<double>& rows,
                            const Vector<double>& signs) {
    require(factor.shape(0) == factor.shape(1) && rows.shape(1) == factor.shape(0),
            "the factor must be square and have the width of the rows");
    const FactorRows entering = as_rows(rows, signs);
    auto [data, owner] = new_array<double>(rows.shape(0) * rows.shape(1));
    bool definite = false;
    {
        const nb::gil_scoped_release release;
        definite = update_factor(kernels(), factor.data(), factor.shape(0), entering, data);
    }
    if (!definite) return nb::none();
    return nb::cast(NumpyMatrix<double>(data, {rows.shape(0), rows.shape(1)}, owner));
}

NumpyMatrix<double> update_weights_of(const Matrix<double>& weights, const Matrix<double>& rows,
                                      const Vector<double>& signs, const Matrix<double>& gains,
                                      const Vector<std::int32_t>& codes,
                                      const Vector<double>& targets, const WritableMatrix& result) {
    require(rows.shape(1) == weights.shape(1), "rows must have the width of the weights");
    require(gains.shape(0) == rows.shape(0) && gains.shape(1) == rows.shape(1),
            "gains must have the shape of the rows");
    require(codes.size() == rows.shape(0) && targets.size() == rows.shape(0),
            "there must be one class and one target per row");
    require(result.shape(0) == weights.shape(0) && result.shape(1) == weights.shape(1),
            "the result must have the shape of the weights");
    const WeightRows entering{as_rows(rows, signs), gains.data(), codes.data(), targets.data()};
    auto [errors, owner] = new_array<double>(weights.shape(0) * rows.shape(0));
    {
        const nb::gil_scoped_release release;
        update_weights(kernels(), weights.data(), weights.shape(0), weights.shape(1), entering,
                       result.data(), errors);
    }
    return NumpyMatrix<double>(errors, {weights.shape(0), rows.shape(0)}, owner);
}

Nonlinearity nonlinearity_named(const std::string& name) {
    if (name == "none") return Nonlinearity::kNone;
    if (name == "relu") return Nonlinearity::kReLU;
    if (name == "rff") return Nonlinearity::kFourier;
    throw std::invalid_argument("there is no nonlinearity called " + name);
}

FeatureRule feature_rule(std::size_t n_inputs, std::size_t n_copied, const std::string& kind,
                         const Matrix<double>& directions, std::size_t n_random, bool constant,
                         const std::optional<Vector<double>>& shift) {
    const FeatureRule rule{
        n_inputs, n_copied, nonlinearity_named(kind),       directions.data(), directions.shape(0),
        n_random, constant, shift ? shift->data() : nullptr};
    const bool waves = rule.nonlinearity == Nonlinearity::kFourier;
    const std::size_t n_directions = waves ? (n_random + 1) / 2 : n_random;
    require(n_copied == 0 || n_copied == n_inputs, "none or all of the inputs can be copied");
    require(rule.nonlinearity != Nonlinearity::kNone || n_random == 0,
            "random features need a nonlinearity");
    require(rule.n_directions == n_directions && (n_random == 0 || directions.shape(1) == n_inputs),
            "the directions do not have the shape of the random features");
    require(n_inputs < (1U << 31) && rule.n_features() > 0 && rule.n_features() < (1U << 31),
            "the number of features is out of range");
    require(!shift || shift->size() == rule.n_features(), "the shift must be one per feature");
    return rule;
}

// Adds examples to the sums. Returns false if an input is too large; the sums are invalid then.
template <class T>
bool add_examples_of(std::uintptr_t gemm, std::uintptr_t syrk, const Matrix<T>& rows,
                     const Vector<std::int32_t>& codes,
                     const std::optional<Vector<double>>& weights, std::size_t n_copied,
                     const std::string& kind, const Matrix<double>& directions,
                     std::size_t n_random, bool constant,
                     const std::optional<Vector<double>>& shift, double largest,
                     const std::optional<WritableMatrix>& gram, const WritableMatrix& class_sums,
                     const nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>& squares,
                     std::size_t n_threads, nb::object progress) {
    const FeatureRule rule =
        feature_rule(rows.shape(1), n_copied, kind, directions, n_random, constant, shift);
    const std::size_t d = rule.n_features(), n_classes = class_sums.shape(0);
    require(codes.size() == rows.shape(0) && (!weights || weights->size() == rows.shape(0)),
            "there must be one class and one weight per row");
    require(!gram || (gram->shape(0) == d && gram->shape(1) == d), "the matrix must be square");
    require(class_sums.shape(1) == d && squares.size() == n_classes,
            "the sums must have the width of the features");
    for (std::size_t i = 0; i < codes.size(); ++i)
        require(codes.data()[i] >= 0 && static_cast<std::size_t>(codes.data()[i]) < n_classes,
                "a class is out of range");
    require(n_threads >= 1, "there must be a thread");
    const Blas blas{reinterpret_cast<Blas::Gemm>(gemm), reinterpret_cast<Blas::Syrk>(syrk)};
    const Examples examples{rows.data(), std::is_same_v<T, double>, rows.shape(0), codes.data(),
                            weights ? weights->data() : nullptr};
    const ExampleSums sums{gram ? gram->data() : nullptr, class_sums.data(), squares.data(),
                           n_classes};
    SumsResult result = SumsResult::kDone;
    run_interruptibly(std::move(progress), [&](const Poll& poll) {
        result = add_examples(blas, rule, examples, largest, sums, n_threads, poll);
        return result != SumsResult::kStopped;
    });
    return result == SumsResult::kDone;
}

template <class T>
void bind_add_examples(nb::module_& m) {
    m.def("add_examples", &add_examples_of<T>, "gemm"_a, "syrk"_a, "rows"_a.noconvert(), "codes"_a,
          "weights"_a.none(), "n_copied"_a, "kind"_a, "directions"_a, "n_random"_a, "constant"_a,
          "shift"_a.none(), "largest"_a, "gram"_a.noconvert().none(), "class_sums"_a.noconvert(),
          "class_squares"_a.noconvert(), "n_threads"_a, "progress"_a.none());
}

NumpyMatrix<double> random_projection(std::uint64_t seed, std::size_t n_rows, std::size_t n_columns,
                                      std::size_t n_threads) {
    auto [data, owner] = new_array<double>(n_rows * n_columns);
    double* values = data;
    run_interruptibly(nb::none(), [&](const Poll& poll) {
        return fill_random_projection(seed, n_rows, n_columns, values, n_threads, poll);
    });
    return NumpyMatrix<double>(data, {n_rows, n_columns}, owner);
}

}  // namespace

void bind_least_squares(nb::module_& m) {
    m.def("update_factor", &update_factor_of, "factor"_a.noconvert(), "rows"_a, "signs"_a);
    m.def("update_weights", &update_weights_of, "weights"_a, "rows"_a, "signs"_a, "gains"_a,
          "codes"_a, "targets"_a, "result"_a.noconvert());
    bind_add_examples<float>(m);
    bind_add_examples<double>(m);
    m.def("random_projection", &random_projection, "seed"_a, "n_rows"_a, "n_columns"_a,
          "n_threads"_a = 1);
}

}  // namespace evergrow
