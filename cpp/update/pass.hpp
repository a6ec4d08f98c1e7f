// One pass of an update through one tree, from the root down: a node sees its stored and its new
// samples once, is changed if it was chosen, and sends both on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "grow/grower.hpp"
#include "propose/class_means.hpp"
#include "run/parallel_tasks.hpp"
#include "samples/row_view.hpp"
#include "samples/samples.hpp"
#include "tree/router.hpp"
#include "tree/tree.hpp"
#include "update/plan.hpp"
#include "update/strategy.hpp"

namespace evergrow {

// By row number: whether the row leaves.
using RowFlags = std::vector<std::uint8_t>;

// The stored rows below a splitting node, left to right, and the centroid each is nearest to, or
// kSameSide for a row that a change of centroids leaves where it is.
constexpr std::uint16_t kSameSide = 0xFFFF;
struct StoredRows {
    std::vector<std::int32_t> rows;
    std::size_t n_left;
    std::vector<std::uint16_t> nearest;
};

class TreeUpdate {
  public:
    TreeUpdate(Tree& tree, const Samples& samples, const UpdatePlan& plan,
               const EntropyTable& n_log_n, const StopFlag& stop)
        : tree_(tree),
          samples_(samples),
          plan_(plan),
          n_log_n_(n_log_n),
          stop_(stop),
          router_(samples),
          reader_(samples),
          class_means_(samples) {}

    // To be called first, with what will be done.
    void prepare(const Strategy& strategy);
    // Takes the rows, sorted by class, down the tree by the strategy.
    void add(const std::vector<std::int32_t>& rows, const Strategy& strategy);
    // Takes flagged rows out of the leaves; the class counts stay as they are if `keep_counts`.
    void remove(const RowFlags& flags, bool keep_counts);
    // Counts flagged rows under the classes they have now; `before` knows those they had.
    void relabel(const RowFlags& flags, const Samples& before);
    // Cuts the topmost splitting nodes of whose samples at least this share is of one group;
    // `group` is that of each class, negative for those in none.
    void cut_full_of(const std::vector<std::int32_t>& group, double share);
    // Takes classes out of all class counts.
    void drop_classes(const std::vector<std::int32_t>& classes);
    // Takes away every centroid that is named. A node that can do without sends its samples on by
    // its other centroids; one that cannot is cut.
    void drop_centroids(const std::function<bool(const Centroid&)>& named);
    // Makes a node a leaf that holds the rows of its subtree and the arrivals.
    void cut(std::int32_t node, const std::vector<std::int32_t>& arrivals);
    // Makes the whole tree one leaf, with these rows besides.
    void start_again(const std::vector<std::int32_t>& rows);
    // Cuts leaves that became too small, then grows the leaves that changed.
    void settle(Grower& grower);

    // For what changes centroids: the rows below a node, the nearest of a split's centroids to each
    // of some rows, and the change itself. Rows whose side changes leave their leaves and wait for
    // the pass to take them to the other child.
    // The rows stay valid until the next call.
    StoredRows& stored_rows(std::int32_t node);
    void assign(const Split& split, const std::vector<std::int32_t>& rows,
                std::vector<std::uint16_t>& nearest);
    // The same for the stored rows of a node whose centroids at some places are new: those whose
    // kept scores show that they stay are told by one look at the new ones.
    void assign_stored(std::int32_t node, const Split& split,
                       const std::vector<std::size_t>& new_places, StoredRows& stored);
    void replace_centroids(std::int32_t node, const Split& split, const StoredRows& stored);
    // Spares the pass the way to the children: the arrivals' nearest centroids, just assigned.
    void route_arrivals(std::int32_t node, const Split& split,
                        const std::vector<std::int32_t>& arrivals,
                        const std::vector<std::uint16_t>& nearest);

    const Tree& tree() const { return tree_; }
    const Samples& samples() const { return samples_; }
    const UpdatePlan& plan() const { return plan_; }
    const EntropyTable& n_log_n() const { return n_log_n_; }
    ClassMeans& class_means() { return class_means_; }
    // Whether the batch holds samples of the class.
    bool in_batch(std::int32_t class_id) const {
        return in_batch_[static_cast<std::size_t>(class_id)] != 0;
    }
    const UpdateReport& report() const { return report_; }

  private:
    // Called at splitting nodes with the arrivals; false if the node is now a leaf that holds them.
    using AtNode = std::function<bool(std::int32_t node, std::uint64_t key,
                                      const std::vector<std::int32_t>& arrivals)>;

    // Rows on their way to a node.
    struct Group {
        std::int32_t node;
        std::uint64_t key;
        std::vector<std::int32_t> arrivals;
    };

    // From the root down; to all nodes if `everywhere`, else to those that rows reach.
    void descend(const std::vector<std::int32_t>& rows, bool everywhere, const AtNode& at_node);
    void visit(Group& group, const AtNode& at_node, std::vector<Group>& pending);
    void route(std::int32_t node, const std::vector<std::int32_t>& rows,
               std::vector<std::int32_t>& left, std::vector<std::int32_t>& right);
    void put(std::int32_t leaf, const std::vector<std::int32_t>& arrivals);
    void count(std::int32_t node, const std::vector<std::int32_t>& arrivals);
    // Changes leaves, each by what `at_leaf` returns, and the counts of all nodes above them;
    // only the leaves if `keep_counts`.
    using AtLeaf = std::function<std::vector<ClassCount>(std::int32_t leaf)>;
    void change_below(std::int32_t node, bool keep_counts, const AtLeaf& at_leaf);
    void remove_below(std::int32_t node, const RowFlags& flags, bool keep_counts);
    std::vector<ClassCount> remove_from_leaf(std::int32_t leaf, const RowFlags& flags);
    std::vector<ClassCount> relabel_leaf(std::int32_t leaf, const RowFlags& flags,
                                         const Samples& before);
    void cut_small_leaves();
    bool is_alive(std::int32_t node) const;
    std::uint64_t root_key() const;
    std::uint64_t key_of(std::int32_t node) const;

    Tree& tree_;
    const Samples& samples_;
    const UpdatePlan& plan_;
    const EntropyTable& n_log_n_;
    const StopFlag& stop_;
    Router router_;
    RowReader reader_;
    ClassMeans class_means_;
    std::vector<std::uint8_t> in_batch_;
    std::vector<std::int32_t> changed_;             // leaves to be offered to the grower
    std::vector<std::int32_t> shrunk_;              // leaves that lost rows
    std::vector<std::int32_t> to_left_, to_right_;  // stored rows waiting for a node's children
    std::vector<std::int32_t> left_, right_;        // arrivals already routed
    bool are_routed_ = false;
    std::vector<std::uint8_t> goes_right_;
    AlignedVector<float> unpacked_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_, scores_;
    std::vector<ClassCount> counts_;
    RowFlags moving_;
    // Space for changes of counts below a node: its nodes, each with its parent's place in the
    // list, and the changes of each, empty between uses.
    struct Below {
        std::int32_t node;
        std::size_t parent;
    };
    std::vector<Below> below_;
    std::vector<std::vector<ClassCount>> changes_;
    // Space for what changes one node.
    StoredRows stored_;
    Split changed_split_;
    std::vector<std::int32_t> unsure_;
    std::vector<std::size_t> unsure_places_;
    std::vector<std::uint16_t> unsure_nearest_;
    UpdateReport report_;
};

}  // namespace evergrow
