#include "update/update.hpp"

#include <algorithm>
#include <utility>

#include "grow/grower.hpp"
#include "samples/row_sampling.hpp"
#include "update/each_tree.hpp"
#include "update/row_copies.hpp"
#include "update/strategy.hpp"
#include "update/tree_edits.hpp"

namespace evergrow {
namespace {

// The rows that one tree draws of the new ones, at the rate of the first fit.
std::vector<std::int32_t> rows_for_tree(const std::vector<std::int32_t>& sorted,
                                        const UpdatePlan& plan, std::uint64_t key) {
    if (plan.row_rate == 1.0 && !plan.bootstrap) return sorted;
    Stream stream(purpose_key(key, Purpose::kRows));
    const double expected = plan.row_rate * static_cast<double>(sorted.size());
    const auto n_rows = static_cast<std::size_t>(expected + stream.uniform());
    return draw_rows(sorted, RowSampling{n_rows, plan.bootstrap}, stream);
}

// The same for a tree that has lost all its rows; at least one.
std::vector<std::int32_t> some_rows(const std::vector<std::int32_t>& sorted, const UpdatePlan& plan,
                                    std::uint64_t key) {
    std::vector<std::int32_t> rows = rows_for_tree(sorted, plan, key);
    if (!rows.empty()) return rows;
    return draw_rows(sorted, RowSampling{1, plan.bootstrap},
                     Stream(purpose_key(key, Purpose::kRows)));
}

bool is_refreshed(const UpdatePlan& plan, std::size_t tree) {
    const std::size_t n = plan.n_trees;
    return (tree + n - plan.first_refreshed % n) % n < plan.n_refreshed;
}

}  // namespace

void UpdateReport::add(const UpdateReport& other) {
    n_chosen += other.n_chosen;
    n_edited += other.n_edited;
    n_cut += other.n_cut;
    n_grown += other.n_grown;
    n_added += other.n_added;
    n_rerouted += other.n_rerouted;
    n_comparisons += other.n_comparisons;
    pass_seconds += other.pass_seconds;
    grow_seconds += other.grow_seconds;
    pack_seconds += other.pack_seconds;
}

std::optional<Updated> update_forest(const Forest& forest, const Batch& batch,
                                     const UpdatePlan& plan, std::size_t n_threads,
                                     const Poll& poll) {
    const Strategy& strategy = strategy_named(plan.strategy);
    const Samples& samples = *batch.samples;
    std::vector<std::int32_t> sorted = batch.rows;
    sort_by_class(samples, sorted);
    const RowFlags evicted = flags_of(batch.evicted, batch.evicted.empty() ? 0 : samples.size());
    const auto work = [&](Tree& tree, std::size_t index, TreeUpdate& update, Grower& grower) {
        const bool refreshed = is_refreshed(plan, index);
        const std::vector<std::int32_t> rows =
            rows_for_tree(sorted, plan, tree_key(plan.seed, index, plan.update));
        update.prepare(strategy);
        if (refreshed)
            update.start_again(rows);
        else
            update.add(rows, strategy);
        if (!evicted.empty()) {
            detach_rows(tree, samples, evicted);
            update.remove(evicted, true);
        }
        if (strategy.grows || refreshed) update.settle(grower);
    };
    return for_each_tree(forest, batch.samples, plan, sorted.size(), n_threads, poll, work);
}

std::optional<Updated> forget(const Forest& forest, const std::vector<std::int32_t>& rows,
                              const std::vector<std::int32_t>& classes, const UpdatePlan& plan,
                              std::size_t n_threads, const Poll& poll) {
    const RowFlags flags = flags_of(rows, forest.samples->size());
    const auto is_class = [&](std::int32_t class_id) {
        return std::find(classes.begin(), classes.end(), class_id) != classes.end();
    };
    std::vector<std::int32_t> single;
    for (const std::int32_t row : rows)
        if (!is_class(forest.samples->class_of(row))) single.push_back(row);
    const RowCopies copies(*forest.samples, single);
    std::vector<std::int32_t> left = rows_by_class(*forest.samples);
    left.erase(
        std::remove_if(left.begin(), left.end(),
                       [&](std::int32_t row) { return flags[static_cast<std::size_t>(row)] != 0; }),
        left.end());
    const auto work = [&](Tree& tree, std::size_t index, TreeUpdate& update, Grower& grower) {
        tree.scores.drop();
        update.remove(flags, false);
        update.drop_classes(classes);
        if (tree.node(kRoot).count_size == 0)
            update.start_again(some_rows(left, plan, tree_key(plan.seed, index, plan.update)));
        if (tree.kind() == SplitKind::kNcm)
            update.drop_centroids([&](const Centroid& centroid) {
                const auto source = CentroidSource::from_code(centroid.source);
                if (is_class(centroid.class_id)) return true;
                return source.is_row() ? flags[static_cast<std::size_t>(source.index())] != 0
                                       : copies.holds(tree.mean(source.index()));
            });
        update.settle(grower);
    };
    return for_each_tree(forest, forest.samples, plan, 0, n_threads, poll, work);
}

}  // namespace evergrow
