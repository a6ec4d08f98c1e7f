#include "predict/leaf_reading.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

void read_frequencies(const LeafReading& /*reading*/, const Tree& tree, std::int32_t leaf,
                      LeafSpace& space) {
    const Node& node = tree.node(leaf);
    std::int64_t total = 0;
    for (std::size_t j = 0; j < place(node.count_size); ++j) total += tree.count(node, j).count;
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        space.shares.push_back(ClassShare{
            seen.class_id, static_cast<double>(seen.count) / static_cast<double>(total)});
    }
}

// Where no sample of a tree tells the fine classes of a coarse one apart.
void split_evenly(const LeafReading& reading, const ClassShare& coarse,
                  std::vector<ClassShare>& shares) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    for (const std::int32_t f : fine)
        shares.push_back(ClassShare{f, coarse.share / static_cast<double>(fine.size())});
}

void read_joint(const LeafReading& reading, const Tree& tree, std::int32_t leaf, LeafSpace& space) {
    for (std::int32_t at = leaf; at != kNoParent; at = tree.node(at).parent) {
        const Node& node = tree.node(at);
        std::int64_t total = 0;
        for (std::size_t j = 0; j < place(node.count_size); ++j) {
            const ClassCount& seen = tree.count(node, j);
            if (reading.hierarchy.is_finest(seen.class_id)) total += seen.count;
        }
        if (total == 0) continue;
        for (std::size_t j = 0; j < place(node.count_size); ++j) {
            const ClassCount& seen = tree.count(node, j);
            if (reading.hierarchy.is_finest(seen.class_id))
                space.shares.push_back(ClassShare{
                    seen.class_id, static_cast<double>(seen.count) / static_cast<double>(total)});
        }
        return;
    }
    // A tree that has drawn no such sample knows coarse classes only.
    read_frequencies(reading, tree, leaf, space);
    std::vector<ClassShare> coarse;
    coarse.swap(space.shares);
    for (const ClassShare& share : coarse) split_evenly(reading, share, space.shares);
}

// Less than this is left for the nodes above: what they would change cannot be seen, and they count
// many classes.
constexpr double kNegligible = 1e-10;

// P(coarse) of every coarse class at a leaf; those that have fine classes are left to divide.
void share_among_coarse(const LeafReading& reading, const Tree& tree, const Node& node,
                        LeafSpace& space) {
    std::int64_t total = 0;
    space.open.clear();
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        const std::int32_t coarse = reading.hierarchy.parent(seen.class_id);
        if (space.n_of[place(coarse)] == 0) space.open.push_back(coarse);
        space.n_of[place(coarse)] += seen.count;
        total += seen.count;
    }
    std::size_t n_open = 0;
    for (const std::int32_t coarse : space.open) {
        const double share =
            static_cast<double>(space.n_of[place(coarse)]) / static_cast<double>(total);
        space.n_of[place(coarse)] = 0;
        if (!reading.hierarchy.is_divided(coarse)) {
            space.shares.push_back(ClassShare{coarse, share});
            continue;
        }
        space.left[place(coarse)] = share;
        space.open[n_open++] = coarse;
    }
    space.open.resize(n_open);
}

// One node on the way from a leaf to the root. With n_f samples of a fine class and n of all fine
// classes of its coarse one at the node,
//
//     P(f | node) = (n_f + w P(f | parent node)) / (n + w),
//
// and at the root n_f / n: the node divides its part of what is left and leaves the rest to those
// above. A node without such samples leaves all.
void divide(const LeafReading& reading, const Tree& tree, std::int32_t at, LeafSpace& space) {
    const Node& node = tree.node(at);
    const auto is_wanted = [&](const ClassCount& seen) {
        return !reading.hierarchy.is_coarse(seen.class_id) &&
               space.left[place(reading.hierarchy.parent(seen.class_id))] > 0;
    };
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        if (is_wanted(seen))
            space.n_of[place(reading.hierarchy.parent(seen.class_id))] += seen.count;
    }
    const double smoothing = at == kRoot ? 0.0 : reading.smoothing;
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        if (!is_wanted(seen)) continue;
        const std::size_t coarse = place(reading.hierarchy.parent(seen.class_id));
        space.share_of[place(seen.class_id)] +=
            space.left[coarse] * static_cast<double>(seen.count) /
            (static_cast<double>(space.n_of[coarse]) + smoothing);
    }
    for (const std::int32_t coarse : space.open) {
        const auto n = static_cast<double>(space.n_of[place(coarse)]);
        if (n > 0) space.left[place(coarse)] *= smoothing / (n + smoothing);
        space.n_of[place(coarse)] = 0;
    }
}

// Gives a coarse class's share to its fine classes in proportion to what nodes gave them, and
// clears the space.
void hand_out(const LeafReading& reading, const ClassShare& coarse, LeafSpace& space) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    double given = 0;
    for (const std::int32_t f : fine) given += space.share_of[place(f)];
    space.left[place(coarse.class_id)] = 0;
    if (!(given > 0)) return split_evenly(reading, coarse, space.shares);
    for (const std::int32_t f : fine) {
        double& share = space.share_of[place(f)];
        if (share > 0) space.shares.push_back(ClassShare{f, coarse.share * share / given});
        share = 0;
    }
}

void read_hierarchical(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                       LeafSpace& space) {
    space.n_of.resize(reading.hierarchy.size());
    space.left.resize(reading.hierarchy.size());
    space.share_of.resize(reading.hierarchy.size());
    share_among_coarse(reading, tree, tree.node(leaf), space);
    std::vector<ClassShare> divided;
    for (const std::int32_t coarse : space.open)
        divided.push_back(ClassShare{coarse, space.left[place(coarse)]});
    for (std::int32_t at = leaf; at != kNoParent && !space.open.empty();
         at = tree.node(at).parent) {
        divide(reading, tree, at, space);
        std::size_t n_open = 0;
        for (const std::int32_t coarse : space.open) {
            if (space.left[place(coarse)] > kNegligible)
                space.open[n_open++] = coarse;
            else
                space.left[place(coarse)] = 0;
        }
        space.open.resize(n_open);
    }
    for (const ClassShare& coarse : divided) hand_out(reading, coarse, space);
}

struct Entry {
    const char* name;
    LeafReading::Read read;
};

constexpr Entry kTable[] = {
    {"frequencies", read_frequencies},
    {"joint", read_joint},
    {"hierarchical", read_hierarchical},
};

}  // namespace

LeafReading plain_reading() { return LeafReading{ClassHierarchy(), read_frequencies, 0.0}; }

LeafReading reading_named(const std::string& name, ClassHierarchy hierarchy, double smoothing) {
    if (!(smoothing >= 0) || !std::isfinite(smoothing))
        throw std::invalid_argument("smoothing must be a number that is not negative");
    for (const Entry& entry : kTable)
        if (name == entry.name) return LeafReading{std::move(hierarchy), entry.read, smoothing};
    throw std::invalid_argument("there is no reading of leaves named '" + name + "'");
}

}  // namespace evergrow
