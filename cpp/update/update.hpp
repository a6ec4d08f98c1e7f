// Updates: from a forest and new samples, or samples to forget, to a new forest.
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

// New and evicted samples, by their row numbers in `samples`.
struct UpdateBatch {
    std::shared_ptr<const Samples> samples;  // old and new
    std::vector<std::int32_t> rows;          // new rows, in order of arrival
    // Rows, possibly new ones, that are evicted: leaves count them but do not hold them.
    std::vector<std::int32_t> evicted;
};

// Adds new samples. Nothing if the poll asked to stop; the old forest does not change.
std::optional<Updated> update_forest(const Forest& forest, const UpdateBatch& batch,
                                     const UpdatePlan& plan, std::size_t n_threads,
                                     const Poll& poll);

// Removes rows from a forest, and every centroid that is one of them or the mean of one of the
// classes.
std::optional<Updated> forget(const Forest& forest, const std::vector<std::int32_t>& rows,
                              const std::vector<std::int32_t>& classes, const UpdatePlan& plan,
                              std::size_t n_threads, const Poll& poll);

// Applies new classes of some rows: `samples` holds the new classes of `rows`, the trees still have
// the old ones. The topmost nodes with at least `share` of their samples from one class that
// these rows refine are grown again, and leaves that changed may split.
std::optional<Updated> refine(const Forest& forest, std::shared_ptr<const Samples> samples,
                              const std::vector<std::int32_t>& rows, double share,
                              const UpdatePlan& plan, std::size_t n_threads, const Poll& poll);

// Replaces every class c by map[c]; classes may be joined. No tree may have samples of a class that
// maps to Samples::kRemoved. `samples` has the new classes.
Forest relabel(const Forest& forest, std::shared_ptr<const Samples> samples,
               const std::vector<std::int32_t>& map, std::size_t n_classes);

// The forest without dead entries and removed samples; samples are renumbered.
Forest compact(const Forest& forest, std::shared_ptr<SpillFile> file);

}  // namespace evergrow
