// Single kernels, for tests and benchmarks.
#include "kernels/kernels.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "kernels/kernel_benchmark.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

NumpyVector<std::uint16_t> nearest_centroids(const Matrix<float>& rows,
                                             const Vector<std::int32_t>& order,
                                             const Matrix<float>& centroids, const std::string& isa,
                                             std::size_t repeat) {
    const Kernels* kernel = kernels_named(isa.c_str());
    if (kernel == nullptr) throw std::invalid_argument("this processor cannot run " + isa);
    if (centroids.shape(1) != rows.shape(1))
        throw std::invalid_argument("rows and centroids must have the same width");
    const KernelBenchmark input{rows.data(),      rows.shape(0),      order.data(), order.size(),
                                centroids.data(), centroids.shape(0), rows.shape(1)};
    auto [data, owner] = new_array<std::uint16_t>(order.size());
    {
        const nb::gil_scoped_release release;
        run_kernel(*kernel, input, repeat, data);
    }
    return NumpyVector<std::uint16_t>(data, {order.size()}, owner);
}

}  // namespace

void bind_kernels(nb::module_& m) {
    m.def("nearest_centroids", &nearest_centroids, "rows"_a, "order"_a, "centroids"_a, "isa"_a,
          "repeat"_a = 1);
    m.def("available_kernels", &available_kernels);
    m.def("chosen_kernel", [] { return std::string(kernels().name); });
}

}  // namespace evergrow
