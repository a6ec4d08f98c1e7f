// The training rows that a tree draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/random_stream.hpp"
#include "samples/samples.hpp"

namespace evergrow {

struct RowSampling {
    std::size_t n_rows;  // rows per tree
    bool replace;        // with replacement (bootstrap)
};

// All rows that are not removed, sorted by class and within a class by number.
std::vector<std::int32_t> rows_by_class(const Samples& samples);

// Stable: rows of one class keep their order.
void sort_by_class(const Samples& samples, std::vector<std::int32_t>& rows);

// Merges two lists that are sorted by class; within a class the rows of `first` come first.
std::vector<std::int32_t> merge_by_class(const Samples& samples,
                                         const std::vector<std::int32_t>& first,
                                         const std::vector<std::int32_t>& second);

// The rows of one tree, in the order of `sorted`.
std::vector<std::int32_t> draw_rows(const std::vector<std::int32_t>& sorted,
                                    const RowSampling& sampling, Stream stream);

}  // namespace evergrow
