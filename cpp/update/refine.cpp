// Refinement: some rows get other, usually finer, classes. Leaves and counts follow, and subtrees
// with many samples of a refined class grow again. This combines the refinement of labels of
// [Ristin2015 Sec. 4] with the updates of [Ristin2014 Sec. 4].
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "run/stopwatch.hpp"
#include "update/leaf_edits.hpp"
#include "update/regrowth.hpp"
#include "update/tree_tasks.hpp"

namespace evergrow {
namespace {

void check_refined(const Forest& forest, const Samples& samples,
                   const std::vector<std::int32_t>& rows, const UpdatePlan& plan) {
    if (samples.size() != forest.samples->size())
        throw std::invalid_argument(
            "samples must be those of the forest with other classes: the number of rows differs");
    for (const std::int32_t row : rows)
        if (samples.class_of(row) < 0 || as_index(samples.class_of(row)) >= plan.n_classes)
            throw std::invalid_argument("row " + std::to_string(row) +
                                        " has a class that is not below n_classes");
}

// By class the refined classes that it belongs to. A class is refined if a changed row belongs to
// it or to a finest class directly below it. Without a hierarchy, a class belongs to itself alone.
std::vector<std::vector<std::int32_t>> refined_classes(const Samples& samples,
                                                       const std::vector<std::int32_t>& rows,
                                                       const UpdatePlan& plan) {
    const ClassHierarchy& hierarchy = *plan.rules.hierarchy;
    std::vector<std::uint8_t> is_refined(plan.n_classes, 0);
    for (const std::int32_t row : rows) {
        const std::int32_t c = samples.class_of(row);
        const bool is_own = hierarchy.is_flat() || hierarchy.is_divided(c);
        is_refined[as_index(is_own ? c : hierarchy.parent(c))] = 1;
    }
    std::vector<std::vector<std::int32_t>> refined(plan.n_classes);
    for (std::size_t i = 0; i < plan.n_classes; ++i) {
        const auto c = static_cast<std::int32_t>(i);
        const std::size_t depth = hierarchy.is_flat() ? 0 : hierarchy.depth(c);
        for (std::size_t d = 0; d <= depth; ++d) {
            const std::int32_t above = hierarchy.is_flat() ? c : hierarchy.ancestor(c, d);
            if (is_refined[as_index(above)] != 0) refined[i].push_back(above);
        }
    }
    return refined;
}

// Cuts the topmost splitting nodes with at least this share of their samples from one refined
// class. `refined` is the result of refined_classes.
void cut_refined_subtrees(TreeTask& task, const std::vector<std::vector<std::int32_t>>& refined,
                          double share) {
    const Stopwatch watch(task.report.pass_seconds);
    const Tree& tree = task.tree;
    std::vector<std::int64_t> n_of(refined.size(), 0);
    std::vector<std::int32_t> pending{kRoot};
    while (!pending.empty() && !task.context.stop) {
        const std::int32_t at = pending.back();
        pending.pop_back();
        if (tree.is_leaf(at)) continue;
        const Node& node = tree.node(at);
        std::int64_t n_all = 0, most = 0;
        for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
            const ClassCount& seen = tree.count(node, j);
            n_all += seen.count;
            for (const std::int32_t own : refined[as_index(seen.class_id)])
                most = std::max(most, n_of[as_index(own)] += seen.count);
        }
        for (std::size_t j = 0; j < as_index(node.count_size); ++j)
            for (const std::int32_t own : refined[as_index(tree.count(node, j).class_id)])
                n_of[as_index(own)] = 0;
        // The nodes below have no samples of a refined class either.
        if (most == 0) continue;
        if (static_cast<double>(most) >= share * static_cast<double>(n_all)) {
            task.editor.cut(at, {});
            continue;
        }
        pending.push_back(node.left + 1);
        pending.push_back(node.left);
    }
}

}  // namespace

std::optional<Updated> refine(const Forest& forest, std::shared_ptr<const Samples> samples,
                              const std::vector<std::int32_t>& rows, double share,
                              const UpdatePlan& plan, std::size_t n_threads, const Poll& poll) {
    check_refined(forest, *samples, rows, plan);
    const RowFlags flags = flags_of(rows, samples->size());
    const std::vector<std::vector<std::int32_t>> refined = refined_classes(*samples, rows, plan);
    const auto work = [&](TreeTask& task) {
        task.tree.score_cache.clear();
        task.editor.relabel_rows(flags, *forest.samples);
        cut_refined_subtrees(task, refined, share);
        regrow(task);
    };
    return update_trees(forest, std::move(samples), plan, 0, n_threads, poll, work);
}

}  // namespace evergrow
