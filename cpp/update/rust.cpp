#include "update/rust.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "propose/class_means.hpp"
#include "run/random_stream.hpp"
#include "score/objective.hpp"
#include "update/nearest_finder.hpp"
#include "update/side_counts.hpp"

namespace evergrow {
namespace {

// A class of the batch that is new to a node, and its rows among the arrivals.
struct NewClass {
    std::int32_t class_id;
    std::vector<std::int32_t> rows;
};

struct NewClasses {
    std::vector<NewClass> classes;
    std::size_t n_held = 0;  // classes that the node already has samples of
};

// The classes with samples at a node, stored or arriving.
struct ClassesAtNode {
    std::vector<std::int32_t> classes;  // sorted
    std::vector<std::uint8_t> is_held;  // whether the node already has samples of it
    std::vector<std::size_t> begins;    // of their rows among the arrivals
    std::vector<std::size_t> ends;

    void add(std::int32_t class_id, bool held, std::size_t begin, std::size_t end) {
        classes.push_back(class_id);
        is_held.push_back(held ? 1 : 0);
        begins.push_back(begin);
        ends.push_back(end);
    }
};

ClassesAtNode classes_at(const Tree& tree, const Samples& samples, const NodeVisit& visit) {
    const Node& node = tree.node(visit.node);
    const std::vector<std::int32_t>& arrivals = visit.arrivals;
    ClassesAtNode present;
    std::size_t j = 0;
    const auto add_held_below = [&](std::int32_t limit, std::size_t begin) {
        for (; j < as_index(node.count_size) && tree.count(node, j).class_id < limit; ++j)
            present.add(tree.count(node, j).class_id, true, begin, begin);
    };
    for (std::size_t begin = 0; begin < arrivals.size();) {
        const std::int32_t class_id = samples.class_of(arrivals[begin]);
        std::size_t end = begin;
        while (end < arrivals.size() && samples.class_of(arrivals[end]) == class_id) ++end;
        add_held_below(class_id, begin);
        const bool held = j < as_index(node.count_size) && tree.count(node, j).class_id == class_id;
        if (held) ++j;
        present.add(class_id, held, begin, end);
        begin = end;
    }
    add_held_below(std::numeric_limits<std::int32_t>::max(), arrivals.size());
    return present;
}

// Reservoir sampling over the classes that a node has seen [Ristin2014 Sec. 4d]: returns by place
// of a centroid the index of its new class, or kOld if the centroid stays.
constexpr int kOld = -1;
std::vector<int> draw_reservoir(std::size_t n_old, std::size_t n_new, std::size_t n_seen,
                                std::size_t n_wanted, Stream stream) {
    std::vector<int> places(n_old, kOld);
    for (std::size_t i = 0; i < n_new; ++i) {
        ++n_seen;
        if (places.size() < n_wanted)
            places.push_back(static_cast<int>(i));
        else if (stream.below(static_cast<std::uint32_t>(n_seen)) < n_wanted)
            places[stream.below(static_cast<std::uint32_t>(places.size()))] = static_cast<int>(i);
    }
    return places;
}

// The places of new centroids.
std::vector<std::size_t> new_places(const std::vector<int>& places) {
    std::vector<std::size_t> found;
    for (std::size_t j = 0; j < places.size(); ++j)
        if (places[j] != kOld) found.push_back(j);
    return found;
}

class RustDecider final : public NodeDecider {
  public:
    RustDecider(const Tree& tree, const TreeContext& context,
                const std::vector<std::int32_t>& batch, UpdateReport& report)
        : tree_(tree),
          context_(context),
          objective_(rules().objective, rules().hierarchy, rules().coarse_weight,
                     rules().coarse_means),
          finder_(tree, context, report),
          class_means_(context.samples),
          in_batch_(context.plan.n_classes, 0) {
        for (const std::int32_t row : batch) in_batch_[as_index(samples().class_of(row))] = 1;
    }

    NodeEdit decide(const NodeVisit& visit) override;

  private:
    const Samples& samples() const { return context_.samples; }
    const SplitRules& rules() const { return context_.plan.rules; }

    NewClasses find_new_classes(const NodeVisit& visit) const;
    Split with_new_means(const Node& node, const std::vector<int>& places,
                         const std::vector<NewClass>& classes);
    void choose_sides(const NodeVisit& visit, const std::vector<std::size_t>& open,
                      ReplaceCentroids& edit) const;

    const Tree& tree_;
    const TreeContext& context_;
    Objective objective_;
    NearestFinder finder_;
    ClassMeans class_means_;
    std::vector<std::uint8_t> in_batch_;  // by class
};

// What becomes of one node that was chosen to be reused:
// 1. Find the classes of the batch that arrive here and are new to the node.
// 2. Draw which old centroids their means replace, by reservoir sampling over all classes that the
//    node has seen, so that old and new classes are equally likely to be kept.
// 3. Find the stored rows and the arrivals that are now nearest to a new mean.
// 4. Give each new mean the side with the larger gain.
// TreeEditor::replace_centroids then moves the rows whose side has changed. A node that would send
// everything to one side is cut instead, and grown again.
NodeEdit RustDecider::decide(const NodeVisit& visit) {
    const NewClasses found = find_new_classes(visit);
    if (found.classes.empty()) return KeepNode{};
    const Node& node = tree_.node(visit.node);
    const std::size_t n_old = as_index(node.centroid_size);
    const std::size_t n_wanted = may_add_centroids(rules().proposer) ? rules().n_centroids : n_old;
    const std::vector<int> places = draw_reservoir(n_old, found.classes.size(), found.n_held,
                                                   n_wanted, Stream(derive(visit.key, kReservoir)));
    const std::vector<std::size_t> open = new_places(places);
    if (open.empty()) return KeepNode{};
    ReplaceCentroids edit;
    edit.split = with_new_means(node, places, found.classes);
    edit.below = collect_rows_below(tree_, visit.node);
    edit.nearest = finder_.find_changed(visit.node, edit.split, open, edit.below.rows);
    edit.nearest_of_arrivals = finder_.find(edit.split, visit.arrivals);
    choose_sides(visit, open, edit);
    if (is_one_sided(edit.split)) return CutNode{};
    return edit;
}

// Classes of the batch that arrive at the node and of which it has no samples. Where nodes compare
// with means of coarse classes, a coarse class includes its fine classes.
NewClasses RustDecider::find_new_classes(const NodeVisit& visit) const {
    const ClassesAtNode present = classes_at(tree_, samples(), visit);
    PooledClasses pooled;
    objective_.pool(present.classes, pooled);
    NewClasses found;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
        bool held = false, in_batch = false;
        NewClass one{pooled.class_id(i), {}};
        for (const std::size_t* at = pooled.begin(i); at != pooled.end(i); ++at) {
            held = held || present.is_held[*at] != 0;
            in_batch = in_batch || in_batch_[as_index(present.classes[*at])] != 0;
            one.rows.insert(one.rows.end(), visit.arrivals.data() + present.begins[*at],
                            visit.arrivals.data() + present.ends[*at]);
        }
        if (held)
            ++found.n_held;
        else if (in_batch)
            found.classes.push_back(std::move(one));
    }
    return found;
}

// The node's centroids with the means of new classes at their places, sides not yet chosen.
Split RustDecider::with_new_means(const Node& node, const std::vector<int>& places,
                                  const std::vector<NewClass>& classes) {
    const VectorCodec& codec = tree_.codec();
    AlignedVector<float> mean(codec.width());
    Split split;
    split.vectors.resize(places.size() * codec.slot_bytes());
    for (std::size_t j = 0; j < places.size(); ++j) {
        if (places[j] == kOld) {
            split.centroids.push_back(tree_.centroid(node, j));
            continue;
        }
        const NewClass& one = classes[static_cast<std::size_t>(places[j])];
        split.centroids.push_back(
            class_means_.centroid(one.class_id, one.rows.data(), one.rows.size(), codec,
                                  mean.data(), split.vectors.data() + j * codec.slot_bytes()));
    }
    return split;
}

// Gives each new centroid the side on which the samples nearest to it gain more [Ristin2014 Eq. 8],
// one after the other.
void RustDecider::choose_sides(const NodeVisit& visit, const std::vector<std::size_t>& open,
                               ReplaceCentroids& edit) const {
    std::vector<std::size_t> cell_of;
    for (const Centroid& centroid : edit.split.centroids) cell_of.push_back(centroid.side);
    for (std::size_t i = 0; i < open.size(); ++i) cell_of[open[i]] = 2 + i;
    SideCounts counts(context_.n_log_n, objective_, context_.plan.n_classes, open.size());
    for (std::size_t r = 0; r < edit.below.rows.size(); ++r) {
        const std::size_t side = r < edit.below.n_left ? 0 : 1;
        const std::uint16_t nearest = edit.nearest.index[r];
        counts.add(samples().class_of(edit.below.rows[r]),
                   nearest == kSameSide ? side : cell_of[nearest]);
    }
    for (std::size_t r = 0; r < visit.arrivals.size(); ++r)
        counts.add(samples().class_of(visit.arrivals[r]),
                   cell_of[edit.nearest_of_arrivals->index[r]]);
    for (const std::size_t j : open) edit.split.centroids[j].side = counts.assign_side(cell_of[j]);
}

}  // namespace

std::unique_ptr<NodeDecider> make_rust(const Tree& tree, const TreeContext& context,
                                       const std::vector<std::int32_t>& batch,
                                       UpdateReport& report) {
    return std::make_unique<RustDecider>(tree, context, batch, report);
}

}  // namespace evergrow
