#include "leaf_reading.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

void read_frequencies(const LeafReading& /*reading*/, const Tree& tree, std::int32_t leaf,
                      std::vector<ClassShare>& shares) {
    const Node& node = tree.node(leaf);
    std::int64_t total = 0;
    for (std::size_t j = 0; j < place(node.count_size); ++j) total += tree.count(node, j).count;
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        shares.push_back(ClassShare{seen.class_id,
                                    static_cast<double>(seen.count) / static_cast<double>(total)});
    }
}

// Where no sample of a tree tells the fine classes of a coarse one apart.
void split_evenly(const LeafReading& reading, const ClassShare& coarse,
                  std::vector<ClassShare>& shares) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    for (const std::int32_t f : fine)
        shares.push_back(ClassShare{f, coarse.share / static_cast<double>(fine.size())});
}

void read_joint(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                std::vector<ClassShare>& shares) {
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
                shares.push_back(ClassShare{
                    seen.class_id, static_cast<double>(seen.count) / static_cast<double>(total)});
        }
        return;
    }
    // A tree that has drawn no such sample knows coarse classes only.
    const std::size_t first = shares.size();
    read_frequencies(reading, tree, leaf, shares);
    const std::vector<ClassShare> coarse(shares.begin() + static_cast<std::ptrdiff_t>(first),
                                         shares.end());
    shares.resize(first);
    for (const ClassShare& share : coarse) split_evenly(reading, share, shares);
}

// What is left for the nodes above is then lost in rounding.
constexpr double kNegligible = 1e-16;

// The share of the coarse class, split among its fine ones. With n_f samples of a fine class and n
// of all fine classes at a node,
//
//     P(f | node) = (n_f + w P(f | parent node)) / (n + w),
//
// added up from the leaf to the root, where it is n_f / n.
void split_share(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                 const ClassShare& coarse, std::vector<ClassShare>& shares) {
    const std::vector<std::int32_t>& fine = reading.hierarchy.finest_of(coarse.class_id);
    const std::size_t first = shares.size();
    for (const std::int32_t f : fine) shares.push_back(ClassShare{f, 0.0});
    double left = coarse.share;
    for (std::int32_t at = leaf; at != kNoParent && left > kNegligible * coarse.share;
         at = tree.node(at).parent) {
        const Node& node = tree.node(at);
        std::int64_t n = 0;
        for (const std::int32_t f : fine) n += tree.count_of(node, f);
        if (n == 0) continue;
        const double smoothing = at == kRoot ? 0.0 : reading.smoothing;
        const double each = left / (static_cast<double>(n) + smoothing);
        for (std::size_t i = 0; i < fine.size(); ++i)
            shares[first + i].share += each * static_cast<double>(tree.count_of(node, fine[i]));
        left = each * smoothing;
    }
    if (left < coarse.share) return;
    shares.resize(first);
    split_evenly(reading, coarse, shares);
}

void read_hierarchical(const LeafReading& reading, const Tree& tree, std::int32_t leaf,
                       std::vector<ClassShare>& shares) {
    const Node& node = tree.node(leaf);
    std::int64_t total = 0;
    std::vector<ClassCount> coarse;
    for (std::size_t j = 0; j < place(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        const std::int32_t parent = reading.hierarchy.parent(seen.class_id);
        total += seen.count;
        auto found = std::find_if(coarse.begin(), coarse.end(), [parent](const ClassCount& other) {
            return other.class_id == parent;
        });
        if (found == coarse.end()) found = coarse.insert(found, ClassCount{parent, 0});
        found->count += seen.count;
    }
    for (const ClassCount& seen : coarse) {
        const ClassShare share{seen.class_id,
                               static_cast<double>(seen.count) / static_cast<double>(total)};
        if (reading.hierarchy.is_divided(seen.class_id))
            split_share(reading, tree, leaf, share, shares);
        else
            shares.push_back(share);
    }
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

LeafReading plain_reading() { return LeafReading{Hierarchy(), read_frequencies, 0.0}; }

LeafReading reading_named(const std::string& name, Hierarchy hierarchy, double smoothing) {
    for (const Entry& entry : kTable)
        if (name == entry.name) return LeafReading{std::move(hierarchy), entry.read, smoothing};
    throw std::invalid_argument("there is no reading of leaves named '" + name + "'");
}

}  // namespace evergrow
