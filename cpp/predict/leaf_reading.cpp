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

// Divides a class evenly among those below it, and so on, for trees without samples of these.
void split_evenly(const LeafReading& reading, const ClassShare& whole,
                  std::vector<ClassShare>& shares) {
    const std::vector<std::int32_t>& finer = reading.hierarchy.children(whole.class_id);
    if (finer.empty()) return shares.push_back(whole);
    for (const std::int32_t f : finer)
        split_evenly(reading, ClassShare{f, whole.share / static_cast<double>(finer.size())},
                     shares);
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
    // The tree has only samples of classes that have finer ones.
    read_frequencies(reading, tree, leaf, buffers);
    std::vector<ClassShare> wholes;
    wholes.swap(buffers.shares);
    for (const ClassShare& share : wholes) split_evenly(reading, share, buffers.shares);
}

// A remaining share below this is ignored: its effect is negligible, and nodes near the root count
// many classes.
constexpr double kNegligible = 1e-10;

// P(class) of every class of the top level at a leaf. Classes with finer ones are added to
// `buffers.open`.
void share_among_top(const LeafReading& reading, const Tree& tree, const Node& node,
                     LeafBuffers& buffers) {
    std::int64_t total = 0;
    buffers.open.clear();
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        const std::int32_t top = reading.hierarchy.ancestor(seen.class_id, 0);
        if (buffers.n_of[as_index(top)] == 0) buffers.open.push_back(top);
        buffers.n_of[as_index(top)] += seen.count;
        total += seen.count;
    }
    std::size_t n_open = 0;
    for (const std::int32_t top : buffers.open) {
        const double share =
            static_cast<double>(buffers.n_of[as_index(top)]) / static_cast<double>(total);
        buffers.n_of[as_index(top)] = 0;
        if (!reading.hierarchy.is_divided(top)) {
            buffers.shares.push_back(ClassShare{top, share});
            continue;
        }
        buffers.remaining[as_index(top)] = share;
        buffers.open[n_open++] = top;
    }
    buffers.open.resize(n_open);
}

// One node on the path from a leaf to the root, for open classes at one depth. If it has n_f
// samples of a class f below an open class c, its finer classes included, and n samples of all
// classes below c,
//
//     P(f | c, node) = (n_f + w P(f | c, parent node)) / (n + w),
//
// and P(f | c, root) = n_f / n. The node distributes its part of the remaining share; the rest is
// for the nodes above. A node without such samples distributes nothing.
void divide(const LeafReading& reading, const Tree& tree, std::int32_t at, std::size_t depth,
            LeafBuffers& buffers) {
    const Node& node = tree.node(at);
    const ClassHierarchy& hierarchy = reading.hierarchy;
    buffers.below.clear();
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        if (hierarchy.depth(seen.class_id) <= depth) continue;
        const std::int32_t f = hierarchy.ancestor(seen.class_id, depth + 1);
        const std::size_t owner = as_index(hierarchy.parent(f));
        if (!(buffers.remaining[owner] > 0)) continue;
        if (buffers.n_of[as_index(f)] == 0) buffers.below.push_back(f);
        buffers.n_of[as_index(f)] += seen.count;
        buffers.n_of[owner] += seen.count;
    }
    const double smoothing = at == kRoot ? 0.0 : reading.smoothing;
    for (const std::int32_t f : buffers.below) {
        const std::size_t owner = as_index(hierarchy.parent(f));
        buffers.share_of[as_index(f)] += buffers.remaining[owner] *
                                         static_cast<double>(buffers.n_of[as_index(f)]) /
                                         (static_cast<double>(buffers.n_of[owner]) + smoothing);
        buffers.n_of[as_index(f)] = 0;
    }
    for (const std::int32_t c : buffers.open) {
        const auto n = static_cast<double>(buffers.n_of[as_index(c)]);
        if (n > 0) buffers.remaining[as_index(c)] *= smoothing / (n + smoothing);
        buffers.n_of[as_index(c)] = 0;
    }
}

// Distributes the share of a class over the classes below it, in proportion to what they got from
// the nodes, and clears the buffers. Those that have finer classes themselves are added to
// `buffers.open`.
void distribute(const LeafReading& reading, const ClassShare& whole, LeafBuffers& buffers) {
    const std::vector<std::int32_t>& finer = reading.hierarchy.children(whole.class_id);
    double given = 0;
    for (const std::int32_t f : finer) given += buffers.share_of[as_index(f)];
    buffers.remaining[as_index(whole.class_id)] = 0;
    if (!(given > 0)) return split_evenly(reading, whole, buffers.shares);
    for (const std::int32_t f : finer) {
        double& share = buffers.share_of[as_index(f)];
        const double own = whole.share * share / given;
        if (own > 0 && reading.hierarchy.is_divided(f)) {
            buffers.open.push_back(f);
            buffers.remaining[as_index(f)] = own;
        } else if (share > 0) {
            buffers.shares.push_back(ClassShare{f, own});
        }
        share = 0;
    }
}

// Divides the share of open classes at one depth among the classes below them.
void divide_open(const LeafReading& reading, const Tree& tree, std::int32_t leaf, std::size_t depth,
                 LeafBuffers& buffers) {
    std::vector<ClassShare> divided;
    for (const std::int32_t c : buffers.open)
        divided.push_back(ClassShare{c, buffers.remaining[as_index(c)]});
    for (std::int32_t at = leaf; at != kNoParent && !buffers.open.empty();
         at = tree.node(at).parent) {
        divide(reading, tree, at, depth, buffers);
        std::size_t n_open = 0;
        for (const std::int32_t c : buffers.open) {
            if (buffers.remaining[as_index(c)] > kNegligible)
                buffers.open[n_open++] = c;
            else
                buffers.remaining[as_index(c)] = 0;
        }
        buffers.open.resize(n_open);
    }
    buffers.open.clear();
    for (const ClassShare& whole : divided) distribute(reading, whole, buffers);
}

void read_hierarchical(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                       LeafBuffers& buffers) {
    buffers.n_of.resize(reading.hierarchy.size());
    buffers.remaining.resize(reading.hierarchy.size());
    buffers.share_of.resize(reading.hierarchy.size());
    share_among_top(reading, tree, tree.node(leaf), buffers);
    for (std::size_t depth = 0; !buffers.open.empty(); ++depth)
        divide_open(reading, tree, leaf, depth, buffers);
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
