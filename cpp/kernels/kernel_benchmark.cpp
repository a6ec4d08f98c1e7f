#include "kernels/kernel_benchmark.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {
namespace {

AlignedVector<float> pad(const float* rows, std::size_t n_rows, std::size_t n_features) {
    const std::size_t width = padded_width(n_features);
    AlignedVector<float> padded(n_rows * width, 0.0F);
    for (std::size_t i = 0; i < n_rows; ++i)
        std::copy_n(rows + i * n_features, n_features, padded.data() + i * width);
    return padded;
}

}  // namespace

void run_kernel(const Kernels& kernel, const KernelBenchmark& input, std::size_t repeat,
                std::uint16_t* nearest) {
    if (input.n_centroids == 0 || input.n_centroids > 65535)
        throw std::invalid_argument("there must be from 1 to 65535 centroids");
    const std::size_t width = padded_width(input.n_features);
    const AlignedVector<float> rows = pad(input.rows, input.n_rows, input.n_features);
    const AlignedVector<float> centroids =
        pad(input.centroids, input.n_centroids, input.n_features);
    std::vector<const float*> row_vectors, centroid_vectors;
    std::vector<float> half_norms;
    for (std::size_t i = 0; i < input.n_order; ++i) {
        const std::int32_t row = input.order[i];
        if (row < 0 || static_cast<std::size_t>(row) >= input.n_rows)
            throw std::invalid_argument("order must hold numbers of rows, from 0 to n_rows - 1");
        row_vectors.push_back(rows.data() + static_cast<std::size_t>(row) * width);
    }
    for (std::size_t j = 0; j < input.n_centroids; ++j) {
        const float* vector = centroids.data() + j * width;
        centroid_vectors.push_back(vector);
        half_norms.push_back(0.5F * kernel.dot_full(vector, vector, width));
    }
    const Centroids all{centroid_vectors.data(), half_norms.data(), input.n_centroids};
    std::vector<float> scores(input.n_order);
    for (std::size_t r = 0; r < repeat; ++r)
        kernel.nearest_centroids(row_vectors.data(), input.n_order, all, width, nearest,
                                 scores.data());
}

}  // namespace evergrow
