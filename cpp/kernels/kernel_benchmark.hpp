// The nearest-centroid kernel alone, for tests and benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace evergrow {

// Rows, in the given order, and centroids to compare them with; neither is padded.
struct KernelBenchmark {
    const float* rows;
    std::size_t n_rows;
    const std::int32_t* order;
    std::size_t n_order;
    const float* centroids;
    std::size_t n_centroids;
    std::size_t n_features;
};

// Runs the kernel `repeat` times. Throws std::invalid_argument if a number is out of range.
void run_kernel(const Kernels& kernel, const KernelBenchmark& input, std::size_t repeat,
                std::uint16_t* nearest);

}  // namespace evergrow
