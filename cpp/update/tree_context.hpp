// What stays fixed while one tree is updated.
#pragma once

#include <cstdint>
#include <vector>

#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "samples/row_sampling.hpp"
#include "samples/samples.hpp"
#include "score/information_gain.hpp"
#include "update/plan.hpp"

namespace evergrow {

struct TreeContext {
    const Samples& samples;  // old and new
    const UpdatePlan& plan;
    const EntropyTable& n_log_n;
    const StopFlag& stop;
    std::uint64_t tree_key;  // of the random numbers of this tree in this update

    RowWeights weights() const { return {samples, plan.class_weights}; }
    // The rows that this tree draws from new rows, by their weights and at the rate of the first
    // fit.
    std::vector<std::int32_t> draw_rows(const std::vector<std::int32_t>& sorted) const;
    std::uint64_t root_key() const { return purpose_key(tree_key, Purpose::kNodes); }
};

}  // namespace evergrow
