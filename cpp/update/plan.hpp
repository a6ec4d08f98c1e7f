// What an update is told to do, and what it says it did.
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
    std::uint64_t update;  // its number, from 1
    std::string strategy;  // a name in the table of update/strategy_table.cpp
    double share;          // of the splitting nodes, where the strategy chooses nodes
    NodeWeights weights;
    double row_rate;  // rows a tree draws per new sample
    bool bootstrap;
    std::size_t first_refreshed;  // trees grown again from scratch: this one
    std::size_t n_refreshed;      // and so many in all, counted around
    // Where a forest is updated by groups of its trees, the first of this one, and how many trees
    // there are in all.
    std::size_t first_tree;
    std::size_t n_trees;
    std::size_t row_budget;  // bytes of rows that each thread may copy; see Grower
    SplitRules rules;
    bool keep_rows;  // leaves remember the new rows
};

struct UpdateReport {
    std::uint64_t n_chosen = 0;    // splitting nodes drawn
    std::uint64_t n_edited = 0;    // nodes whose centroids changed
    std::uint64_t n_cut = 0;       // nodes that became leaves
    std::uint64_t n_grown = 0;     // leaves offered to the grower
    std::uint64_t n_added = 0;     // rows added to leaves
    std::uint64_t n_rerouted = 0;  // stored rows that changed their side of a node
    std::uint64_t n_comparisons = 0;
    double pass_seconds = 0;  // taking rows down and editing nodes, over all threads
    double grow_seconds = 0;
    double pack_seconds = 0;
};

}  // namespace evergrow
