#include "least_squares/random_projection.hpp"

#include "run/random_stream.hpp"

namespace evergrow {

bool fill_random_projection(std::uint64_t seed, std::size_t n_rows, std::size_t n_columns,
                            double* values, std::size_t n_threads, const Poll& poll) {
    const auto fill_row = [&](std::size_t r, std::size_t, const StopFlag&) {
        Stream stream(derive(mix(seed), r));
        for (std::size_t c = 0; c < n_columns; ++c) values[r * n_columns + c] = stream.normal();
    };
    return run_parallel(n_rows, n_threads, fill_row, poll);
}

}  // namespace evergrow
