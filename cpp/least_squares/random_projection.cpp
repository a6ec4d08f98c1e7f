#include "least_squares/random_projection.hpp"

#include "run/random_stream.hpp"

namespace evergrow {

void fill_random_projection(std::uint64_t seed, std::size_t n_rows, std::size_t n_columns,
                            double* values) {
    for (std::size_t r = 0; r < n_rows; ++r) {
        Stream stream(derive(mix(seed), r));
        for (std::size_t c = 0; c < n_columns; ++c) values[r * n_columns + c] = stream.normal();
    }
}

}  // namespace evergrow
