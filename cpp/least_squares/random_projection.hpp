// Random vectors that depend on the seed only and are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace evergrow {

// Fills a matrix with nearly standard normal numbers; row r does not depend on the other rows.
void fill_random_projection(std::uint64_t seed, std::size_t n_rows, std::size_t n_columns,
                            double* values);

}  // namespace evergrow
