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

// How many copies of a sample a tree draws on average: its weight times that of its class. Class
// weights are by class, or none if all are 1.
struct RowWeights {
    const Samples& samples;
    const std::vector<double>& of_classes;

    static constexpr double kLargest = 268435456;  // the most rows of a tree

    bool are_one() const { return !samples.has_weights() && of_classes.empty(); }
    double of(std::int32_t row) const;
    // The most copies that a tree can draw of these rows.
    std::size_t most_copies(const std::vector<std::int32_t>& rows) const;
};

// All rows that are not removed, sorted by class and within a class by number.
std::vector<std::int32_t> rows_by_class(const Samples& samples);

// Stable: rows of one class keep their order.
void sort_by_class(const Samples& samples, std::vector<std::int32_t>& rows);

// Merges two lists that are sorted by class; within a class the rows of `first` come first.
std::vector<std::int32_t> merge_by_class(const Samples& samples,
                                         const std::vector<std::int32_t>& first,
                                         const std::vector<std::int32_t>& second);

// Each row as often as its weight says, copies next to each other; the fraction of a weight is the
// probability of one more copy. `key` is that of the tree.
std::vector<std::int32_t> repeat_rows(const std::vector<std::int32_t>& sorted,
                                      const RowWeights& weights, std::uint64_t key);

// The rows of one tree, in the order of `sorted`.
std::vector<std::int32_t> draw_rows(const std::vector<std::int32_t>& sorted,
                                    const RowSampling& sampling, Stream stream);

}  // namespace evergrow
