// Parameters of an update, and a report of what it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "propose/proposer.hpp"
#include "update/node_choice.hpp"

namespace evergrow {

struct UpdatePlan {
    std::size_t n_classes;  // known after the update
    std::uint64_t seed;
    std::uint64_t update;  // number of the update, from 1
    std::string strategy;  // a name in the table of update/strategy_table.cpp
    double share;          // of the splitting nodes, for strategies that choose nodes
    NodeWeights node_weights;
    double row_rate;  // rows that a tree draws per new sample
    bool bootstrap;
    // Of classes, for new samples; see RowWeights.
    std::vector<double> class_weights;
    // Trees that are grown again from scratch: `n_refreshed` trees starting with
    // `first_refreshed`, wrapping around.
    std::size_t first_refreshed;
    std::size_t n_refreshed;
    SplitRules rules;
    bool keep_rows;  // whether leaves store the new rows
    // Only leaves count the new rows, for trees that vote and are not updated any more.
    bool leaves_only = false;
};

struct UpdateReport {
    std::uint64_t n_chosen = 0;    // splitting nodes drawn
    std::uint64_t n_edited = 0;    // nodes whose centroids changed
    std::uint64_t n_cut = 0;       // nodes that became leaves
    std::uint64_t n_grown = 0;     // leaves that the grower tried to split
    std::uint64_t n_added = 0;     // rows added to leaves
    std::uint64_t n_rerouted = 0;  // stored rows that changed their side of a node
    std::uint64_t n_comparisons = 0;
    double pass_seconds = 0;  // routing rows and editing nodes, summed over threads
    double grow_seconds = 0;
    double pack_seconds = 0;
};

}  // namespace evergrow
