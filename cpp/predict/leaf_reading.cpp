#include "predict/leaf_reading.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace evergrow {
namespace {

void read_frequencies(const LeafReading& /*reading*/, const Tree& tree, std::int32_t leaf,
                      LeafBuffers& buffers) {
    const Node& node = tree.node(leaf);
    std::int64_t total = 0;
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) total += tree.count(node, j).count;
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        buffers.shares.push_back(ClassShare{
            seen.class_id, static_cast<double>(seen.count) / static_cast<double>(total)});
    }
}

// Divides a coarse class evenly, for trees without samples of its fine classes.
void split_evenly(const LeafReading& reading, const ClassShare& coarse,
                  std::vector<ClassShare>& shares) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    for (const std::int32_t f : fine)
        shares.push_back(ClassShare{f, coarse.share / static_cast<double>(fine.size())});
}

void read_joint(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                LeafBuffers& buffers) {
    for (std::int32_t at = leaf; at != kNoParent; at = tree.node(at).parent) {
        const Node& node = tree.node(at);
        std::int64_t total = 0;
        for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
            const ClassCount& seen = tree.count(node, j);
            if (reading.hierarchy.is_finest(seen.class_id)) total += seen.count;
        }
        if (total == 0) continue;
        for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
            const ClassCount& seen = tree.count(node, j);
            if (reading.hierarchy.is_finest(seen.class_id))
                buffers.shares.push_back(ClassShare{
                    seen.class_id, static_cast<double>(seen.count) / static_cast<double>(total)});
        }
        return;
    }
    // The tree has only samples of coarse classes.
    read_frequencies(reading, tree, leaf, buffers);
    std::vector<ClassShare> coarse;
    coarse.swap(buffers.shares);
    for (const ClassShare& share : coarse) split_evenly(reading, share, buffers.shares);
}

// A remaining share below this is ignored: its effect is negligible, and nodes near the root count
// many classes.
constexpr double kNegligible = 1e-10;

// P(coarse) of every coarse class at a leaf. Classes with fine classes are added to
// `buffers.open`.
void share_among_coarse(const LeafReading& reading, const Tree& tree, const Node& node,
                        LeafBuffers& buffers) {
    std::int64_t total = 0;
    buffers.open.clear();
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        const std::int32_t coarse = reading.hierarchy.parent(seen.class_id);
        if (buffers.n_of[as_index(coarse)] == 0) buffers.open.push_back(coarse);
        buffers.n_of[as_index(coarse)] += seen.count;
        total += seen.count;
    }
    std::size_t n_open = 0;
    for (const std::int32_t coarse : buffers.open) {
        const double share =
            static_cast<double>(buffers.n_of[as_index(coarse)]) / static_cast<double>(total);
        buffers.n_of[as_index(coarse)] = 0;
        if (!reading.hierarchy.is_divided(coarse)) {
            buffers.shares.push_back(ClassShare{coarse, share});
            continue;
        }
        buffers.remaining[as_index(coarse)] = share;
        buffers.open[n_open++] = coarse;
    }
    buffers.open.resize(n_open);
}

// One node on the path from a leaf to the root. If it has n_f samples of a fine class f, and n
// samples of all fine classes of the same coarse class,
//
//     P(f | node) = (n_f + w P(f | parent node)) / (n + w),
//
// and P(f | root) = n_f / n. The node distributes its part of the remaining share; the rest is for
// the nodes above. A node without such samples distributes nothing.
void divide(const LeafReading& reading, const Tree& tree, std::int32_t at, LeafBuffers& buffers) {
    const Node& node = tree.node(at);
    const auto is_wanted = [&](const ClassCount& seen) {
        return !reading.hierarchy.is_coarse(seen.class_id) &&
               buffers.remaining[as_index(reading.hierarchy.parent(seen.class_id))] > 0;
    };
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        if (is_wanted(seen))
            buffers.n_of[as_index(reading.hierarchy.parent(seen.class_id))] += seen.count;
    }
    const double smoothing = at == kRoot ? 0.0 : reading.smoothing;
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        if (!is_wanted(seen)) continue;
        const std::size_t coarse = as_index(reading.hierarchy.parent(seen.class_id));
        buffers.share_of[as_index(seen.class_id)] +=
            buffers.remaining[coarse] * static_cast<double>(seen.count) /
            (static_cast<double>(buffers.n_of[coarse]) + smoothing);
    }
    for (const std::int32_t coarse : buffers.open) {
        const auto n = static_cast<double>(buffers.n_of[as_index(coarse)]);
        if (n > 0) buffers.remaining[as_index(coarse)] *= smoothing / (n + smoothing);
        buffers.n_of[as_index(coarse)] = 0;
    }
}

// Distributes the share of a coarse class over its fine classes, in proportion to what they got
// from the nodes, and clears the buffers.
void distribute(const LeafReading& reading, const ClassShare& coarse, LeafBuffers& buffers) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    double given = 0;
    for (const std::int32_t f : fine) given += buffers.share_of[as_index(f)];
    buffers.remaining[as_index(coarse.class_id)] = 0;
    if (!(given > 0)) return split_evenly(reading, coarse, buffers.shares);
    for (const std::int32_t f : fine) {
        double& share = buffers.share_of[as_index(f)];
        if (share > 0) buffers.shares.push_back(ClassShare{f, coarse.share * share / given});
        share = 0;
    }
}

void read_hierarchical(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                       LeafBuffers& buffers) {
    buffers.n_of.resize(reading.hierarchy.size());
    buffers.remaining.resize(reading.hierarchy.size());
    buffers.share_of.resize(reading.hierarchy.size());
    share_among_coarse(reading, tree, tree.node(leaf), buffers);
    std::vector<ClassShare> divided;
    for (const std::int32_t coarse : buffers.open)
        divided.push_back(ClassShare{coarse, buffers.remaining[as_index(coarse)]});
    for (std::int32_t at = leaf; at != kNoParent && !buffers.open.empty();
         at = tree.node(at).parent) {
        divide(reading, tree, at, buffers);
        std::size_t n_open = 0;
        for (const std::int32_t coarse : buffers.open) {
            if (buffers.remaining[as_index(coarse)] > kNegligible)
                buffers.open[n_open++] = coarse;
            else
                buffers.remaining[as_index(coarse)] = 0;
        }
        buffers.open.resize(n_open);
    }
    for (const ClassShare& coarse : divided) distribute(reading, coarse, buffers);
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
        throw std::invalid_argument("smoothing must be finite and not negative");
    for (const Entry& entry : kTable)
        if (name == entry.name) return LeafReading{std::move(hierarchy), entry.read, smoothing};
    throw std::invalid_argument("unknown reading of leaves '" + name + "'");
}

}  // namespace evergrow
