#include "update/node_choice.hpp"

#include <algorithm>
#include <cmath>

#include "run/random_stream.hpp"

namespace evergrow {
namespace {

struct Visited {
    std::int32_t node;
    std::uint64_t key;
};

// All nodes from the root down, left before right.
std::vector<Visited> in_order(const Tree& tree, std::uint64_t key) {
    std::vector<Visited> order, pending{{kRoot, key}};
    while (!pending.empty()) {
        const Visited at = pending.back();
        pending.pop_back();
        order.push_back(at);
        const std::int32_t left = tree.node(at.node).left;
        if (left == kLeaf) continue;
        pending.push_back({left + 1, derive(at.key, 1)});
        pending.push_back({left, derive(at.key, 0)});
    }
    return order;
}

// n times the entropy of the classes at a node, in fixed point.
std::int64_t n_times_entropy(const Tree& tree, const Node& node, const EntropyTable& n_log_n) {
    std::int64_t sum = 0;
    std::int32_t n = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.count_size); ++j) {
        n += tree.count(node, j).count;
        sum += n_log_n(tree.count(node, j).count);
    }
    return n_log_n(n) - sum;
}

std::int64_t n_samples(const Tree& tree, const Node& node) {
    std::int64_t n = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.count_size); ++j)
        n += tree.count(node, j).count;
    return n;
}

// By node, the inverse of its weight: |T_n| + 1 [Ristin2014 Eq. 7], one, or the quality
// Q(n) = H(S_n) - sum over its leaves of |S_l| / |S_n| H(S_l) [GuoReport Sec. 2.2], of the samples
// that the tree counts.
std::vector<double> divisors(const Tree& tree, const std::vector<Visited>& order,
                             NodeWeights weights, const EntropyTable& n_log_n) {
    std::vector<double> divisor(tree.node_limit(), 1.0);
    std::vector<std::int64_t> below(tree.node_limit());
    for (std::size_t i = order.size(); weights != NodeWeights::kUniform && i-- > 0;) {
        const auto at = static_cast<std::size_t>(order[i].node);
        const Node& node = tree.node(order[i].node);
        const auto left = static_cast<std::size_t>(node.left);
        if (weights == NodeWeights::kSize) {
            below[at] = 1 + (node.is_leaf() ? 0 : below[left] + below[left + 1]);
            divisor[at] = static_cast<double>(below[at] + 1);
        } else if (node.is_leaf()) {
            below[at] = n_times_entropy(tree, node, n_log_n);
        } else {
            below[at] = below[left] + below[left + 1];
            const std::int64_t gained = n_times_entropy(tree, node, n_log_n) - below[at];
            divisor[at] = static_cast<double>(gained) /
                          (EntropyTable::kOne * static_cast<double>(n_samples(tree, node)));
        }
    }
    return divisor;
}

}  // namespace

std::vector<std::uint8_t> choose_nodes(const Tree& tree, double share, NodeWeights weights,
                                       std::uint64_t key, const EntropyTable& n_log_n) {
    std::vector<std::uint8_t> chosen(tree.node_limit(), 0);
    if (share <= 0) return chosen;
    const std::vector<Visited> order = in_order(tree, key);
    const std::vector<double> divisor = divisors(tree, order, weights, n_log_n);
    // Weighted sampling without replacement: the nodes with the lowest -ln(u) / w, u uniform
    // (Efraimidis and Spirakis 2006).
    struct Drawn {
        double rank;
        std::int32_t node;
    };
    std::vector<Drawn> drawn;
    std::size_t n_splitting = 0;
    for (const Visited& at : order) {
        if (tree.is_leaf(at.node)) continue;
        ++n_splitting;
        const double by = divisor[static_cast<std::size_t>(at.node)];
        if (!(by > 0)) continue;
        const double u = Stream(derive(at.key, kChoice)).uniform();
        drawn.push_back(Drawn{-std::log(1.0 - u) * by, at.node});
    }
    const auto wanted =
        static_cast<std::size_t>(std::floor(share * static_cast<double>(n_splitting) + 0.5));
    const auto lower = [](const Drawn& a, const Drawn& b) { return a.rank < b.rank; };
    if (wanted < drawn.size()) {
        std::stable_sort(drawn.begin(), drawn.end(), lower);
        drawn.resize(wanted);
    }
    for (const Drawn& node : drawn) chosen[static_cast<std::size_t>(node.node)] = 1;
    return chosen;
}

}  // namespace evergrow
