// A forest and new samples, or samples to forget, make a new forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "run/parallel_tasks.hpp"
#include "tree/forest.hpp"
#include "update/plan.hpp"

namespace evergrow {

struct Updated {
    Forest forest;
    UpdateReport report;
};

// What an update brings and what it lets go, in rows of `samples`.
struct UpdateBatch {
    std::shared_ptr<const Samples> samples;  // old and new
    std::vector<std::int32_t> rows;          // new ones, in the order they came
    // Rows, new ones too, that leave the memory afterwards: leaves count them but do not hold them.
    std::vector<std::int32_t> evicted;
};

// Nothing if the poll asked to stop; the old forest is untouched either way.
std::optional<Updated> update_forest(const Forest& forest, const UpdateBatch& batch,
                                     const UpdatePlan& plan, std::size_t n_threads,
                                     const Poll& poll);

// Takes rows out of a forest, and every centroid that is one of them or the mean of one of the
// classes.
std::optional<Updated> forget(const Forest& forest, const std::vector<std::int32_t>& rows,
                              const std::vector<std::int32_t>& classes, const UpdatePlan& plan,
                              std::size_t n_threads, const Poll& poll);

// Some rows have other classes in `samples` than in the forest: leaves and counts follow them. The
// topmost nodes of whose samples at least `share` are of one coarse class that some of these rows
// belong to are grown again, and leaves that changed are offered to the grower.
std::optional<Updated> refine(const Forest& forest, std::shared_ptr<const Samples> samples,
                              const std::vector<std::int32_t>& rows, double share,
                              const UpdatePlan& plan, std::size_t n_threads, const Poll& poll);

// The forest with every class c named map[c] instead; classes may be joined. No tree may hold
// samples of a class whose new name is Samples::kGone. `samples` has the new names.
Forest relabel(const Forest& forest, std::shared_ptr<const Samples> samples,
               const std::vector<std::int32_t>& map, std::size_t n_classes);

// The forest without what updates have left behind, its samples numbered without gaps.
Forest compact(const Forest& forest);

}  // namespace evergrow
