// From rows to leaves, and from leaves to class probabilities [Ristin2014 Eq. 4].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "predict/leaf_reading.hpp"
#include "predict/vote_weights.hpp"
#include "run/parallel_tasks.hpp"
#include "samples/standardizer.hpp"
#include "tree/forest.hpp"

namespace evergrow {

// Rows to classify, in single or double precision.
struct Query {
    const void* data;
    bool is_double;
    std::size_t n_rows;
    const Standardizer& standardizer;
    const LeafReading* reading = nullptr;  // needed for probabilities
    const VoteWeights* votes = nullptr;    // null if all votes count alike
};

struct Outputs {
    double* probabilities = nullptr;       // n_rows x n_classes, zeroed by the caller
    std::int32_t* leaves = nullptr;        // n_rows x n_trees
    std::uint64_t* comparisons = nullptr;  // one per row
};

// Fills the outputs that are not null. False if the poll asked to stop.
bool predict(const Forest& forest, const Query& query, const Outputs& outputs,
             std::size_t n_threads, const Poll& poll);

// What every leaf of a tree votes, from left to right: the shares of leaf i are those from begin[i]
// to begin[i + 1], weighted as in `predict`.
struct LeafVotes {
    std::vector<std::int32_t> node;
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> class_id;
    std::vector<double> share;
};
LeafVotes read_leaves(const Forest& forest, std::size_t tree, const LeafReading& reading,
                      const VoteWeights* votes);

// One node on the path of a row through a tree.
struct PathStep {
    std::int32_t node;
    bool right;
    std::int32_t nearest;  // ncm: index of the nearest centroid
    double score;          // ncm: squared distance to that centroid; else negative on the right
};

// The splitting nodes that a row passes in one tree, and the leaf in which it ends.
struct Path {
    std::vector<PathStep> steps;
    std::int32_t leaf;
};
Path trace(const Forest& forest, std::size_t tree, const double* row,
           const Standardizer& standardizer);

// The j-th vector of a splitting node, `n_features` numbers.
void copy_centroid(const Forest& forest, const Tree& tree, std::int32_t node, std::size_t j,
                   float* out);

}  // namespace evergrow
