// Forgetting: removes rows from leaves, and the centroids that are made of them from nodes.
#include <algorithm>

#include "run/random_stream.hpp"
#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "update/leaf_edits.hpp"
#include "update/nearest_finder.hpp"
#include "update/regrowth.hpp"
#include "update/row_copies.hpp"
#include "update/tree_pass.hpp"
#include "update/tree_tasks.hpp"
#include "update/update.hpp"

namespace evergrow {
namespace {

// What is to be forgotten.
struct Forgotten {
    Forgotten(const Samples& samples, const std::vector<std::int32_t>& rows,
              const std::vector<std::int32_t>& of_classes)
        : flags(flags_of(rows, samples.size())),
          classes(of_classes),
          copies(samples, rows_of_other_classes(samples, rows)) {}

    bool has_class(std::int32_t class_id) const {
        return std::find(classes.begin(), classes.end(), class_id) != classes.end();
    }
    bool has_row(std::int32_t row) const { return flags[static_cast<std::size_t>(row)] != 0; }
    // Whether a centroid is the mean of a forgotten class, or a single forgotten row.
    bool has_centroid(const Tree& tree, const Centroid& centroid) const {
        if (has_class(centroid.class_id)) return true;
        const auto source = CentroidSource::from_code(centroid.source);
        return source.is_row() ? has_row(source.index()) : copies.holds(tree, centroid);
    }

    RowFlags flags;
    const std::vector<std::int32_t>& classes;
    RowCopies copies;

  private:
    std::vector<std::int32_t> rows_of_other_classes(const Samples& samples,
                                                    const std::vector<std::int32_t>& rows) const {
        std::vector<std::int32_t> found;
        for (const std::int32_t row : rows)
            if (!has_class(samples.class_of(row))) found.push_back(row);
        return found;
    }
};

// Removes forgotten centroids. A node whose other centroids are all on one side is cut; others send
// their rows on by the centroids that remain.
class CentroidRemoval final : public NodeDecider {
  public:
    CentroidRemoval(const Tree& tree, const TreeContext& context, const Forgotten& forgotten,
                    UpdateReport& report)
        : tree_(tree), forgotten_(forgotten), finder_(tree, context, report) {}

    NodeEdit decide(const NodeVisit& visit) override {
        const Node& node = tree_.node(visit.node);
        const auto n_centroids = static_cast<std::size_t>(node.centroid_size);
        ReplaceCentroids edit;
        for (std::size_t j = 0; j < n_centroids; ++j) {
            const Centroid& centroid = tree_.centroid(node, j);
            if (!forgotten_.has_centroid(tree_, centroid)) edit.split.centroids.push_back(centroid);
        }
        if (edit.split.size() == n_centroids) return KeepNode{};
        if (is_one_sided(edit.split)) return CutNode{};
        edit.below = collect_rows_below(tree_, visit.node);
        edit.nearest = finder_.find(edit.split, edit.below.rows);
        return edit;
    }

  private:
    const Tree& tree_;
    const Forgotten& forgotten_;
    NearestFinder finder_;
};

void remove_centroids(TreeTask& task, const Forgotten& forgotten) {
    if (task.tree.kind() != SplitKind::kNcm) return;
    const Stopwatch watch(task.report.pass_seconds);
    CentroidRemoval removal(task.tree, task.context, forgotten, task.report);
    TreePass(task.editor, task.context, task.report).run({}, TreePass::Reach::kAllNodes, &removal);
}

// The rows with which a tree that has lost all of its rows starts again; at least one.
std::vector<std::int32_t> draw_some_rows(const TreeContext& context,
                                         const std::vector<std::int32_t>& sorted) {
    std::vector<std::int32_t> rows = context.draw_rows(sorted);
    if (!rows.empty()) return rows;
    return draw_rows(sorted, RowSampling{1, context.plan.bootstrap},
                     Stream(purpose_key(context.tree_key, Purpose::kRows)));
}

}  // namespace

std::optional<Updated> forget(const Forest& forest, const std::vector<std::int32_t>& rows,
                              const std::vector<std::int32_t>& classes, const UpdatePlan& plan,
                              std::size_t n_threads, const Poll& poll) {
    const Forgotten forgotten(*forest.samples, rows, classes);
    std::vector<std::int32_t> left = rows_by_class(*forest.samples);
    left.erase(std::remove_if(left.begin(), left.end(),
                              [&](std::int32_t row) { return forgotten.has_row(row); }),
               left.end());
    const auto work = [&](TreeTask& task) {
        task.tree.score_cache.clear();
        task.editor.remove_rows(forgotten.flags, false);
        task.editor.drop_classes(classes);
        if (task.tree.node(kRoot).count_size == 0)
            start_again(task, draw_some_rows(task.context, left));
        remove_centroids(task, forgotten);
        regrow(task);
    };
    // A tree that starts again may draw more copies than any tree had.
    const RowWeights weights{*forest.samples, plan.class_weights};
    const std::size_t n_most = weights.are_one() ? 0 : weights.most_copies(left);
    return update_trees(forest, forest.samples, plan, n_most, n_threads, poll, work);
}

}  // namespace evergrow
