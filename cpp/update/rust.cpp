// Reuse subtree (RUST): chosen nodes take the means of classes that are new to them, Eq. (8) of
// Ristin 2014; nothing is cut.
#include <cstddef>

#include "pass.hpp"
#include "strategy.hpp"

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

// The rows of one class among arrivals sorted by class.
struct Arrived {
    std::int32_t class_id;
    std::size_t begin, end;
};

// Classes of the batch that arrive at the node and that it holds no sample of.
std::vector<Arrived> new_classes(const TreeUpdate& update, const Node& node,
                                 const std::vector<std::int32_t>& arrivals) {
    std::vector<Arrived> found;
    for (std::size_t begin = 0; begin < arrivals.size();) {
        const std::int32_t class_id = update.samples().class_of(arrivals[begin]);
        std::size_t end = begin;
        while (end < arrivals.size() && update.samples().class_of(arrivals[end]) == class_id) ++end;
        if (update.in_batch(class_id) && update.tree().count_of(node, class_id) == 0)
            found.push_back(Arrived{class_id, begin, end});
        begin = end;
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
    SideCounts(const TreeUpdate& update, std::size_t n_open)
        : update_(update), n_cells_(2 + n_open), counts_(update.plan().n_classes * n_cells_) {}

    void add(std::int32_t row, std::size_t cell) {
        ++counts_[place(update_.samples().class_of(row)) * n_cells_ + cell];
    }
    // Eq. (3) up to what both sides share: the side on which the samples of an open cell separate
    // the classes better, the left if neither does. They are counted there from then on.
    std::uint8_t close(std::size_t cell) {
        const std::uint8_t side = score(cell, 1) > score(cell, 0) ? 1 : 0;
        for (std::size_t at = 0; at < counts_.size(); at += n_cells_)
            counts_[at + side] += counts_[at + cell];
        return side;
    }

  private:
    std::int64_t score(std::size_t cell, std::size_t side) const {
        std::int64_t sum = 0;
        std::int32_t total[2] = {0, 0};
        for (std::size_t at = 0; at < counts_.size(); at += n_cells_) {
            std::int32_t sides[2] = {counts_[at], counts_[at + 1]};
            sides[side] += counts_[at + cell];
            for (int s = 0; s < 2; ++s) {
                sum += update_.n_log_n()(sides[s]);
                total[s] += sides[s];
            }
        }
        return sum - update_.n_log_n()(total[0]) - update_.n_log_n()(total[1]);
    }

    const TreeUpdate& update_;
    std::size_t n_cells_;
    std::vector<std::int32_t> counts_;
};

// The node's centroids with the new class means in their places, sides open.
Split with_new_means(TreeUpdate& update, const Node& node, const std::vector<int>& places,
                     const std::vector<Arrived>& found, const std::vector<std::int32_t>& arrivals) {
    const std::size_t width = update.samples().width();
    AlignedVector<float> mean(width);
    Split split;
    split.halves.resize(places.size() * width);
    for (std::size_t j = 0; j < places.size(); ++j) {
        if (places[j] == kOld) {
            split.centroids.push_back(update.tree().centroid(node, j));
            continue;
        }
        const Arrived& rows = found[static_cast<std::size_t>(places[j])];
        split.centroids.push_back(update.class_means().centroid(
            rows.class_id, arrivals.data() + rows.begin, rows.end - rows.begin, mean.data(),
            split.halves.data() + j * width));
    }
    return split;
}

bool reuse(TreeUpdate& update, std::int32_t i, std::uint64_t key,
           const std::vector<std::int32_t>& arrivals) {
    const Node node = update.tree().node(i);
    const std::vector<Arrived> found = new_classes(update, node, arrivals);
    if (found.empty()) return true;
    const std::vector<int> places =
        draw_reservoir(place(node.centroid_size), found.size(), place(node.count_size),
                       update.plan().rules.n_centroids, Stream(derive(key, kReservoir)));
    // Cells 0 and 1 are the sides; the others are new centroids in the order of their places.
    std::vector<std::size_t> cell_of(places.size());
    std::vector<std::size_t> open;
    for (std::size_t j = 0; j < places.size(); ++j) {
        cell_of[j] = places[j] == kOld ? update.tree().centroid(node, j).side : 2 + open.size();
        if (places[j] != kOld) open.push_back(j);
    }
    if (open.empty()) return true;
    Split split = with_new_means(update, node, places, found, arrivals);
    StoredRows& stored = update.stored_rows(i);
    std::vector<std::uint16_t> nearest;
    update.assign_stored(i, split, open, stored);
    update.assign(split, arrivals, nearest);
    SideCounts counts(update, open.size());
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
