// Random vectors that depend on the seed only and are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "run/parallel_tasks.hpp"

namespace evergrow {

// Fills a matrix with nearly standard normal numbers; row r does not depend on the other rows.
// False if the poll asked to stop.
bool fill_random_projection(std::uint64_t seed, std::size_t n_rows, std::size_t n_columns,
                            double* values, std::size_t n_threads, const Poll& poll);

}  // namespace evergrow
