// Rows that get other classes, finer ones mostly: leaves and counts follow, and where a tree is
// full of a refined class it is grown again. Joins both forest papers: labels are refined as in
// Ristin 2015, in a forest that goes on as in Ristin 2014.
#include <algorithm>
#include <numeric>
#include <utility>

#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "update/each_tree.hpp"
#include "update/pass.hpp"

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

constexpr std::int32_t kUntouched = -1;

// By class its coarse class, itself where there are none, if a row that changed belongs to that;
// kUntouched for others.
std::vector<std::int32_t> refined_classes(const Samples& samples,
                                          const std::vector<std::int32_t>& rows,
                                          const UpdatePlan& plan) {
    const ClassHierarchy& hierarchy = *plan.rules.hierarchy;
    std::vector<std::int32_t> coarse(plan.n_classes);
    std::iota(coarse.begin(), coarse.end(), 0);
    if (!hierarchy.is_flat())
        for (std::int32_t& c : coarse) c = hierarchy.parent(c);
    std::vector<std::uint8_t> touched(plan.n_classes, 0);
    for (const std::int32_t row : rows) touched[place(coarse[place(samples.class_of(row))])] = 1;
    for (std::int32_t& c : coarse)
        if (touched[place(c)] == 0) c = kUntouched;
    return coarse;
}

}  // namespace

// Takes the flagged rows of a leaf to where their classes belong in its order; returns the changes
// of its counts.
std::vector<ClassCount> TreeUpdate::relabel_leaf(std::int32_t leaf, const RowFlags& flags,
                                                 const Samples& before) {
    const Node node = tree_.node(leaf);
    std::vector<std::int32_t> rows;
    std::vector<ClassCount> changes;
    for (std::size_t j = 0; j < place(node.row_size); ++j) {
        const std::int32_t row = tree_.row(node, j);
        rows.push_back(row);
        if (flags[place(row)] == 0) continue;
        changes.push_back(ClassCount{before.class_of(row), -1});
        changes.push_back(ClassCount{samples_.class_of(row), 1});
    }
    if (changes.empty()) return changes;
    sort_by_class(samples_, rows);
    tree_.set_rows(leaf, rows.data(), rows.size());
    changed_.push_back(leaf);
    std::sort(changes.begin(), changes.end(),
              [](const ClassCount& a, const ClassCount& b) { return a.class_id < b.class_id; });
    std::size_t n = 0;
    for (std::size_t i = 1; i < changes.size(); ++i) {
        if (changes[i].class_id == changes[n].class_id)
            changes[n].count += changes[i].count;
        else
            changes[++n] = changes[i];
    }
    changes.resize(n + 1);
    return changes;
}

void TreeUpdate::relabel(const RowFlags& flags, const Samples& before) {
    const Stopwatch watch(report_.pass_seconds);
    change_below(kRoot, false,
                 [&](std::int32_t leaf) { return relabel_leaf(leaf, flags, before); });
}

void TreeUpdate::cut_full_of(const std::vector<std::int32_t>& group, double share) {
    const Stopwatch watch(report_.pass_seconds);
    std::vector<std::int64_t> n_of(group.size(), 0);
    std::vector<std::int32_t> pending{kRoot};
    while (!pending.empty() && !stop_) {
        const std::int32_t at = pending.back();
        pending.pop_back();
        if (tree_.is_leaf(at)) continue;
        const Node& node = tree_.node(at);
        std::int64_t n_all = 0, most = 0;
        for (std::size_t j = 0; j < place(node.count_size); ++j) {
            const ClassCount& seen = tree_.count(node, j);
            n_all += seen.count;
            const std::int32_t own = group[place(seen.class_id)];
            if (own != kUntouched) most = std::max(most, n_of[place(own)] += seen.count);
        }
        for (std::size_t j = 0; j < place(node.count_size); ++j) {
            const std::int32_t own = group[place(tree_.count(node, j).class_id)];
            if (own != kUntouched) n_of[place(own)] = 0;
        }
        // Below a node without any there are none either.
        if (most == 0) continue;
        if (static_cast<double>(most) >= share * static_cast<double>(n_all)) {
            cut(at, {});
            continue;
        }
        pending.push_back(node.left + 1);
        pending.push_back(node.left);
    }
}

std::optional<Updated> refine(const Forest& forest, std::shared_ptr<const Samples> samples,
                              const std::vector<std::int32_t>& rows, double share,
                              const UpdatePlan& plan, std::size_t n_threads, const Poll& poll) {
    const RowFlags flags = flags_of(rows, samples->size());
    const std::vector<std::int32_t> refined = refined_classes(*samples, rows, plan);
    const auto work = [&](Tree& tree, std::size_t, TreeUpdate& update, Grower& grower) {
        tree.scores.drop();
        update.relabel(flags, *forest.samples);
        update.cut_full_of(refined, share);
        update.settle(grower);
    };
    return for_each_tree(forest, std::move(samples), plan, 0, n_threads, poll, work);
}

}  // namespace evergrow
