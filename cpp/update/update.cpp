#include "update/update.hpp"

#include <algorithm>
#include <utility>

#include "run/random_stream.hpp"
#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "update/leaf_edits.hpp"
#include "update/node_choice.hpp"
#include "update/regrowth.hpp"
#include "update/strategy.hpp"
#include "update/tree_pass.hpp"
#include "update/tree_references.hpp"
#include "update/tree_tasks.hpp"

namespace evergrow {
namespace {

// Asks a strategy about the chosen nodes; all others stay as they are.
class ChosenNodes final : public NodeDecider {
  public:
    ChosenNodes(std::vector<std::uint8_t> chosen, NodeDecider& decider)
        : chosen_(std::move(chosen)), decider_(decider) {}

    NodeEdit decide(const NodeVisit& visit) override {
        if (chosen_[static_cast<std::size_t>(visit.node)] == 0) return KeepNode{};
        return decider_.decide(visit);
    }

  private:
    const std::vector<std::uint8_t> chosen_;  // by node
    NodeDecider& decider_;
};

void prepare_score_cache(Tree& tree, const Samples& samples, const Strategy& strategy) {
    if (!strategy.caches_scores) {
        tree.score_cache.clear();
        return;
    }
    tree.score_cache.activate();
    tree.score_cache.extend_to(samples.size());
}

// By node, 1 for those that the update may change.
std::vector<std::uint8_t> choose_by_plan(TreeTask& task, const std::vector<std::int32_t>& rows) {
    const UpdatePlan& plan = task.context.plan;
    const auto choose = [&](const Tree& tree) {
        return choose_nodes(tree, plan.share, plan.node_weights, task.context.root_key(),
                            task.context.n_log_n);
    };
    if (plan.node_weights != NodeWeights::kQuality) return choose(task.tree);
    // The quality of a node is that of old and new samples together, so these are counted first, in
    // a copy of the tree.
    Tree counted = task.tree;
    UpdateReport counting;
    TreeEditor editor(counted, task.context, counting);
    TreePass(editor, task.context, counting).run(rows, TreePass::Reach::kArrivals, nullptr);
    task.report.n_comparisons += counting.n_comparisons;
    return choose(counted);
}

// Takes the rows, sorted by class, down the tree by the strategy.
void add_rows(TreeTask& task, const std::vector<std::int32_t>& rows, const Strategy& strategy) {
    const Stopwatch watch(task.report.pass_seconds);
    task.report.n_added += rows.size();
    TreePass pass(task.editor, task.context, task.report);
    if (strategy.make_decider == nullptr) {
        pass.run(rows, TreePass::Reach::kArrivals, nullptr);
        return;
    }
    std::vector<std::uint8_t> chosen = choose_by_plan(task, rows);
    task.report.n_chosen += static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), 1));
    const auto decider = strategy.make_decider(task.tree, task.context, rows, task.report);
    ChosenNodes chosen_nodes(std::move(chosen), *decider);
    pass.run(rows, TreePass::Reach::kArrivals, &chosen_nodes);
}

// Whether this update grows the tree again from scratch.
bool is_refreshed(const UpdatePlan& plan, std::size_t tree, std::size_t n) {
    return (tree + n - plan.first_refreshed % n) % n < plan.n_refreshed;
}

}  // namespace

std::optional<Updated> update_forest(const Forest& forest, const UpdateBatch& batch,
                                     const UpdatePlan& plan, std::size_t n_threads,
                                     const Poll& poll) {
    const Strategy& strategy = strategy_named(plan.strategy);
    const Samples& samples = *batch.samples;
    std::vector<std::int32_t> sorted = batch.rows;
    sort_by_class(samples, sorted);
    const RowFlags evicted = flags_of(batch.evicted, batch.evicted.empty() ? 0 : samples.size());
    const auto work = [&](TreeTask& task) {
        const bool refreshed = is_refreshed(plan, task.index, forest.trees.size());
        const std::vector<std::int32_t> rows = task.context.draw_rows(sorted);
        prepare_score_cache(task.tree, samples, strategy);
        if (refreshed)
            start_again(task, rows);
        else
            add_rows(task, rows, strategy);
        if (!evicted.empty()) {
            detach_rows(task.tree, samples, evicted);
            task.editor.remove_rows(evicted, true);
        }
        if (strategy.grows || refreshed) regrow(task);
    };
    const std::size_t n_most = RowWeights{samples, plan.class_weights}.most_copies(sorted);
    return update_trees(forest, batch.samples, plan, n_most, n_threads, poll, work);
}

Forest relabel(const Forest& forest, std::shared_ptr<const Samples> samples,
               const std::vector<std::int32_t>& map, std::size_t n_classes) {
    Forest renamed{std::move(samples), {}, n_classes, forest.n_log_n};
    for (const auto& old : forest.trees) {
        Tree tree = *old;
        relabel_tree(tree, *renamed.samples, map);
        renamed.trees.push_back(std::make_shared<const Tree>(tree.packed()));
    }
    return renamed;
}

Forest compact(const Forest& forest, std::shared_ptr<SpillFile> file) {
    Forest packed{forest.samples, {}, forest.n_classes, forest.n_log_n};
    std::vector<std::int32_t> number;
    if (forest.samples->n_removed() > 0 || file || forest.samples->file())
        packed.samples =
            std::make_shared<const Samples>(forest.samples->compacted(number, std::move(file)));
    for (const auto& old : forest.trees) {
        Tree tree = *old;
        if (!number.empty()) renumber_rows(tree, number);
        packed.trees.push_back(std::make_shared<const Tree>(tree.packed()));
    }
    return packed;
}

}  // namespace evergrow
