// Reuse subtree (RUST): chosen nodes take the means of classes that are new to them, Eq. (8) of
// Ristin 2014; nothing is cut.
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "score/objective.hpp"
#include "update/pass.hpp"
#include "update/strategy.hpp"

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

// A class of the batch that is new to a node, and its rows among the arrivals.
struct NewClass {
    std::int32_t class_id;
    std::vector<std::int32_t> rows;
};

// The classes with samples at a node, arriving ones included.
struct Meeting {
    std::vector<std::int32_t> classes;  // sorted
    std::vector<std::uint8_t> is_held;  // by the node already
    std::vector<std::size_t> begins;    // of their rows among the arrivals
    std::vector<std::size_t> ends;

    void add(std::int32_t class_id, bool held, std::size_t begin, std::size_t end) {
        classes.push_back(class_id);
        is_held.push_back(held ? 1 : 0);
        begins.push_back(begin);
        ends.push_back(end);
    }
};

Meeting meet(const TreeUpdate& update, const Node& node,
             const std::vector<std::int32_t>& arrivals) {
    Meeting met;
    std::size_t j = 0;
    const auto add_held_below = [&](std::int32_t limit, std::size_t begin) {
        for (; j < place(node.count_size) && update.tree().count(node, j).class_id < limit; ++j)
            met.add(update.tree().count(node, j).class_id, true, begin, begin);
    };
    for (std::size_t begin = 0; begin < arrivals.size();) {
        const std::int32_t class_id = update.samples().class_of(arrivals[begin]);
        std::size_t end = begin;
        while (end < arrivals.size() && update.samples().class_of(arrivals[end]) == class_id) ++end;
        add_held_below(class_id, begin);
        const bool held =
            j < place(node.count_size) && update.tree().count(node, j).class_id == class_id;
        if (held) ++j;
        met.add(class_id, held, begin, end);
        begin = end;
    }
    add_held_below(std::numeric_limits<std::int32_t>::max(), arrivals.size());
    return met;
}

// Classes of the batch that arrive at the node and that it holds no sample of, a coarse class
// together with its fine ones where their means are compared. Also counts those it holds.
std::vector<NewClass> new_classes(const TreeUpdate& update, const Objective& objective,
                                  const Node& node, const std::vector<std::int32_t>& arrivals,
                                  std::size_t* n_held) {
    const Meeting met = meet(update, node, arrivals);
    PooledClasses pooled;
    objective.pool(met.classes, pooled);
    std::vector<NewClass> found;
    *n_held = 0;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
        bool held = false, in_batch = false;
        NewClass one{pooled.class_id(i), {}};
        for (const std::size_t* at = pooled.begin(i); at != pooled.end(i); ++at) {
            held = held || met.is_held[*at] != 0;
            in_batch = in_batch || update.in_batch(met.classes[*at]);
            one.rows.insert(one.rows.end(), arrivals.data() + met.begins[*at],
                            arrivals.data() + met.ends[*at]);
        }
        if (held)
            ++*n_held;
        else if (in_batch)
            found.push_back(std::move(one));
    }
    return found;
}

// Reservoir sampling over the classes a node has seen: which new class, if any, stands at each of
// its places. Entries below zero are the old centroids.
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

// Samples per class on the left, on the right, and nearest to each centroid without a side.
class SideCounts {
  public:
    SideCounts(const TreeUpdate& update, const Objective& objective, std::size_t n_open)
        : update_(update),
          n_cells_(2 + n_open),
          counts_(update.plan().n_classes * n_cells_),
          right_(update.plan().n_classes),
          all_(update.plan().n_classes) {
        std::vector<std::int32_t> classes(update.plan().n_classes);
        std::iota(classes.begin(), classes.end(), 0);
        objective.see(classes, levels_);
    }

    void add(std::int32_t row, std::size_t cell) {
        ++counts_[place(update_.samples().class_of(row)) * n_cells_ + cell];
    }
    // The side on which the samples of an open cell are worth more, the left if neither is. They
    // are counted there from then on.
    std::uint8_t close(std::size_t cell) {
        const std::uint8_t side = gain(cell, 1) > gain(cell, 0) ? 1 : 0;
        for (std::size_t at = 0; at < counts_.size(); at += n_cells_)
            counts_[at + side] += counts_[at + cell];
        return side;
    }

  private:
    // What the split gains on all levels with a cell on this side, other open ones left out.
    double gain(std::size_t cell, std::size_t side) {
        const std::int32_t* counts = counts_.data();
        for (std::size_t c = 0; c < all_.size(); ++c, counts += n_cells_) {
            all_[c] = counts[0] + counts[1] + counts[cell];
            right_[c] = counts[1] + (side == 1 ? counts[cell] : 0);
        }
        double sum = 0;
        for (const Level& level : levels_) {
            add_up(level, all_, group_all_);
            add_up(level, right_, group_right_);
            const std::int32_t n = std::accumulate(group_all_.begin(), group_all_.end(), 0);
            sum += scale_of_gain(level, n) *
                   static_cast<double>(gain_of_split(update_.n_log_n(), group_all_, group_right_));
        }
        return sum;
    }

    const TreeUpdate& update_;
    std::size_t n_cells_;
    std::vector<std::int32_t> counts_;
    std::vector<Level> levels_;
    std::vector<std::int32_t> right_, all_;              // by class
    std::vector<std::int32_t> group_right_, group_all_;  // by group of a level
};

// The node's centroids with the new class means in their places, sides open.
Split with_new_means(TreeUpdate& update, const Node& node, const std::vector<int>& places,
                     const std::vector<NewClass>& found) {
    const std::size_t width = update.samples().width();
    AlignedVector<float> mean(width);
    Split split;
    split.halves.resize(places.size() * width);
    for (std::size_t j = 0; j < places.size(); ++j) {
        if (places[j] == kOld) {
            split.centroids.push_back(update.tree().centroid(node, j));
            continue;
        }
        const NewClass& one = found[static_cast<std::size_t>(places[j])];
        split.centroids.push_back(update.class_means().centroid(one.class_id, one.rows.data(),
                                                                one.rows.size(), mean.data(),
                                                                split.halves.data() + j * width));
    }
    return split;
}

bool reuse(TreeUpdate& update, std::int32_t i, std::uint64_t key,
           const std::vector<std::int32_t>& arrivals) {
    const Node node = update.tree().node(i);
    const SplitRules& rules = update.plan().rules;
    const Objective objective(rules.objective, rules.hierarchy, rules.coarse_weight,
                              rules.coarse_means);
    std::size_t n_held = 0;
    const std::vector<NewClass> found = new_classes(update, objective, node, arrivals, &n_held);
    if (found.empty()) return true;
    const std::size_t n_wanted =
        grows_wider(rules.proposer) ? rules.n_centroids : place(node.centroid_size);
    const std::vector<int> places = draw_reservoir(place(node.centroid_size), found.size(), n_held,
                                                   n_wanted, Stream(derive(key, kReservoir)));
    // Cells 0 and 1 are the sides; the others are new centroids in the order of their places.
    std::vector<std::size_t> cell_of(places.size());
    std::vector<std::size_t> open;
    for (std::size_t j = 0; j < places.size(); ++j) {
        cell_of[j] = places[j] == kOld ? update.tree().centroid(node, j).side : 2 + open.size();
        if (places[j] != kOld) open.push_back(j);
    }
    if (open.empty()) return true;
    Split split = with_new_means(update, node, places, found);
    StoredRows& stored = update.stored_rows(i);
    std::vector<std::uint16_t> nearest;
    update.assign_stored(i, split, open, stored);
    update.assign(split, arrivals, nearest);
    SideCounts counts(update, objective, open.size());
    for (std::size_t r = 0; r < stored.rows.size(); ++r) {
        const std::size_t side = r < stored.n_left ? 0 : 1;
        const std::uint16_t at = stored.nearest[r];
        counts.add(stored.rows[r], at == kSameSide ? side : cell_of[at]);
    }
    for (std::size_t r = 0; r < arrivals.size(); ++r) counts.add(arrivals[r], cell_of[nearest[r]]);
    for (const std::size_t j : open) split.centroids[j].side = counts.close(cell_of[j]);
    if (is_void(split)) {
        update.cut(i, arrivals);
        return false;
    }
    update.route_arrivals(i, split, arrivals, nearest);
    update.replace_centroids(i, split, stored);
    return true;
}

}  // namespace

const Strategy kReuseSubtree{"rust", true, true, reuse};

}  // namespace evergrow
