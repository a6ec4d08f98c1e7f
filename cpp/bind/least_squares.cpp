// Least squares: Cholesky factors, weights and random projections.
#include <stdexcept>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "least_squares/cholesky.hpp"
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

NumpyMatrix<double> random_projection(std::uint64_t seed, std::size_t n_rows,
                                      std::size_t n_columns) {
    auto [data, owner] = new_array<double>(n_rows * n_columns);
    {
        const nb::gil_scoped_release release;
        fill_random_projection(seed, n_rows, n_columns, data);
    }
    return NumpyMatrix<double>(data, {n_rows, n_columns}, owner);
}

}  // namespace

void bind_least_squares(nb::module_& m) {
    m.def("update_factor", &update_factor_of, "factor"_a.noconvert(), "rows"_a, "signs"_a);
    m.def("update_weights", &update_weights_of, "weights"_a, "rows"_a, "signs"_a, "gains"_a,
          "codes"_a, "targets"_a, "result"_a.noconvert());
    m.def("random_projection", &random_projection, "seed"_a, "n_rows"_a, "n_columns"_a);
}

}  // namespace evergrow
