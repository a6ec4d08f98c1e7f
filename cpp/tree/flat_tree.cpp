#include "tree/flat_tree.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "score/information_gain.hpp"

namespace evergrow {
namespace {

std::int32_t number(std::size_t n) { return static_cast<std::int32_t>(n); }

void require(bool condition, const char* problem) {
    if (!condition) throw std::invalid_argument(std::string("damaged tree: ") + problem);
}

bool within(std::int64_t begin, std::int64_t size, std::size_t limit) {
    return begin >= 0 && size >= 0 && begin + size <= static_cast<std::int64_t>(limit);
}

void check_nodes(const FlatTree& flat, SplitKind kind) {
    const std::size_t n = flat.left.size();
    require(n > 0, "it has no root");
    for (const auto* v : {&flat.centroid_begin, &flat.centroid_size, &flat.count_begin,
                          &flat.count_size, &flat.row_begin, &flat.row_size})
        require(v->size() == n, "its node arrays differ in length");
    // Every node but the root must be the child of exactly one earlier node, so there are no
    // cycles.
    std::vector<bool> has_parent(n, false);
    for (std::size_t i = 0; i < n; ++i) {
        if (!flat.rows.empty())
            require(within(flat.row_begin[i], flat.row_size[i], flat.rows.size()),
                    "the rows of a node are out of range");
        if (flat.left[i] == kLeaf) {
            require(flat.count_size[i] > 0 &&
                        within(flat.count_begin[i], flat.count_size[i], flat.count.size()),
                    "the class counts of a leaf are out of range");
            continue;
        }
        require(flat.left[i] > static_cast<std::int64_t>(i) && within(flat.left[i], 2, n),
                "a child link is out of range");
        const auto child = static_cast<std::size_t>(flat.left[i]);
        require(!has_parent[child] && !has_parent[child + 1], "a node has two parents");
        has_parent[child] = has_parent[child + 1] = true;
        const std::int32_t k = flat.centroid_size[i];
        require((kind == SplitKind::kNcm ? k >= 2 && k <= 65535 : k == 1) &&
                    within(flat.centroid_begin[i], k, flat.centroid_class.size()),
                "the centroids of a node are out of range");
    }
    for (std::size_t i = 1; i < n; ++i) require(has_parent[i], "a node is unreachable");
}

struct TreeLimits {
    std::size_t width, n_features, n_classes, n_samples;
};

void check_values(const FlatTree& flat, SplitKind kind, const TreeLimits& limits) {
    const std::size_t n_centroids = flat.centroid_class.size();
    require(flat.centroid_source.size() == n_centroids && flat.half_norm.size() == n_centroids &&
                flat.side.size() == n_centroids && flat.exponent.size() == n_centroids,
            "its centroid arrays differ in length");
    require(flat.count_class.size() == flat.count.size(), "its count arrays differ in length");
    const std::size_t slot_bytes = VectorCodec(flat.format, limits.width).slot_bytes();
    require(limits.width > 0 && flat.vectors.size() % slot_bytes == 0,
            "the last mean is incomplete");
    const std::size_t n_slots = flat.vectors.size() / slot_bytes;
    for (std::size_t j = 0; j < n_centroids; ++j) {
        const auto source = CentroidSource::from_code(flat.centroid_source[j]);
        if (kind != SplitKind::kAxis)
            require(within(source.index(), 1, source.is_row() ? limits.n_samples : n_slots),
                    "the source of a centroid is out of range");
        if (kind != SplitKind::kLinear)
            require(within(flat.centroid_class[j], 1,
                           kind == SplitKind::kNcm ? limits.n_classes : limits.n_features),
                    "the class or feature of a centroid is out of range");
        require(flat.side[j] <= 1, "the side of a centroid is not 0 or 1");
        require(VectorCodec::is_exponent(flat.exponent[j]), "an exponent is out of range");
        require(std::isfinite(flat.half_norm[j]), "the offset of a centroid is not finite");
    }
    std::int64_t total = 0;
    for (std::size_t j = 0; j < flat.count.size(); ++j) {
        total += flat.count[j];
        require(flat.count[j] > 0 && total <= static_cast<std::int64_t>(EntropyTable::kMaxSamples),
                "a class count is out of range");
        require(within(flat.count_class[j], 1, limits.n_classes),
                "the class of a count is out of range");
    }
    for (const std::int32_t row : flat.rows)
        require(within(row, 1, limits.n_samples), "a training row is out of range");
}

// The counts of a splitting node are the sums of its children's. Each is set once, because an edit
// would leave dead entries and packed() would copy the tree once more.
void add_up_counts(Tree& tree) {
    std::vector<ClassCount> sum;
    for (auto i = number(tree.node_limit()); i-- > 0;) {
        const Node node = tree.node(i);
        if (node.is_leaf()) continue;
        sum.clear();
        const Node &left = tree.node(node.left), &right = tree.node(node.left + 1);
        const auto n_left = static_cast<std::size_t>(left.count_size);
        const auto n_right = static_cast<std::size_t>(right.count_size);
        for (std::size_t a = 0, b = 0; a < n_left || b < n_right;) {
            const bool from_left =
                b == n_right ||
                (a < n_left && tree.count(left, a).class_id <= tree.count(right, b).class_id);
            ClassCount next = from_left ? tree.count(left, a++) : tree.count(right, b++);
            if (from_left && b < n_right && tree.count(right, b).class_id == next.class_id)
                next.count += tree.count(right, b++).count;
            sum.push_back(next);
        }
        tree.set_counts(i, sum.data(), sum.size());
    }
}

// The rows of a leaf must be sorted by class, at most as many of each class as it counts.
void check_rows(const Tree& tree, std::int32_t leaf, const Samples& samples) {
    const Node& node = tree.node(leaf);
    std::int32_t class_id = -1, n_held = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.row_size); ++j) {
        const std::int32_t next = samples.class_of(tree.row(node, j));
        require(next >= class_id, "the rows of a leaf are not sorted by class");
        n_held = next == class_id ? n_held + 1 : 1;
        class_id = next;
        require(n_held <= tree.count_of(node, class_id), "a leaf holds more rows than it counts");
    }
}

// The class counts of a leaf must be sorted by class.
void append_leaf(const FlatTree& flat, std::size_t from, std::int32_t to, Tree& tree) {
    std::vector<ClassCount> counts;
    const auto begin = static_cast<std::size_t>(flat.count_begin[from]);
    for (std::size_t j = begin; j < begin + static_cast<std::size_t>(flat.count_size[from]); ++j) {
        require(j == begin || flat.count_class[j - 1] < flat.count_class[j],
                "the class counts of a leaf are not sorted by class");
        counts.push_back(ClassCount{flat.count_class[j], flat.count[j]});
    }
    tree.set_counts(to, counts.data(), counts.size());
    if (!flat.rows.empty())
        tree.set_rows(to, flat.rows.data() + flat.row_begin[from],
                      static_cast<std::size_t>(flat.row_size[from]));
}

void read_split(const FlatTree& flat, std::size_t from, Split& split) {
    split.centroids.clear();
    const auto begin = static_cast<std::size_t>(flat.centroid_begin[from]);
    const std::size_t end = begin + static_cast<std::size_t>(flat.centroid_size[from]);
    for (std::size_t j = begin; j < end; ++j)
        split.centroids.push_back(Centroid{flat.centroid_class[j],
                                           flat.centroid_source[j],
                                           flat.half_norm[j],
                                           flat.side[j],
                                           flat.exponent[j],
                                           {}});
}

void flatten_leaf(const Tree& tree, const Node& node, std::size_t i, FlatTree& flat) {
    flat.count_begin[i] = number(flat.count.size());
    flat.count_size[i] = node.count_size;
    for (std::size_t j = 0; j < as_index(node.count_size); ++j) {
        flat.count_class.push_back(tree.count(node, j).class_id);
        flat.count.push_back(tree.count(node, j).count);
    }
    flat.row_begin[i] = number(flat.rows.size());
    flat.row_size[i] = node.row_size;
    for (std::size_t j = 0; j < as_index(node.row_size); ++j)
        flat.rows.push_back(tree.row(node, j));
}

void flatten_split(const Tree& tree, const Node& node, std::size_t i, FlatTree& flat) {
    flat.centroid_begin[i] = number(flat.centroid_class.size());
    flat.centroid_size[i] = node.centroid_size;
    for (std::size_t j = 0; j < as_index(node.centroid_size); ++j) {
        const Centroid& centroid = tree.centroid(node, j);
        flat.centroid_class.push_back(centroid.class_id);
        flat.centroid_source.push_back(centroid.source);
        flat.half_norm.push_back(centroid.offset);
        flat.side.push_back(centroid.side);
        flat.exponent.push_back(centroid.exponent);
    }
}

}  // namespace

FlatTree flatten(const Tree& tree) {
    const Tree source = tree.dead_share() > 0.0 ? tree.packed() : tree;
    FlatTree flat;
    const std::size_t n = source.node_limit();
    for (auto* v : {&flat.left, &flat.centroid_begin, &flat.centroid_size, &flat.count_begin,
                    &flat.count_size, &flat.row_begin, &flat.row_size})
        v->assign(n, 0);
    std::vector<std::int32_t> pending{kRoot};
    while (!pending.empty()) {
        const std::size_t i = as_index(pending.back());
        const Node& node = source.node(pending.back());
        pending.pop_back();
        flat.left[i] = node.left;
        if (node.is_leaf()) {
            flatten_leaf(source, node, i, flat);
            continue;
        }
        flatten_split(source, node, i, flat);
        pending.push_back(node.left + 1);
        pending.push_back(node.left);
    }
    // Children come after their parent, so this order handles children first.
    for (std::size_t i = n; i-- > 0;) {
        if (flat.left[i] == kLeaf) continue;
        const std::size_t child = as_index(flat.left[i]);
        flat.row_begin[i] = flat.row_begin[child];
        flat.row_size[i] = flat.row_size[child] + flat.row_size[child + 1];
    }
    const std::size_t slot_bytes = source.codec().slot_bytes();
    flat.format = source.codec().format();
    flat.vectors.resize(source.n_vectors() * slot_bytes);
    for (std::size_t slot = 0; slot < source.n_vectors(); ++slot)
        std::copy_n(source.vector(number(slot)), slot_bytes,
                    flat.vectors.data() + slot * slot_bytes);
    return flat;
}

Tree unflatten(const FlatTree& flat, SplitKind kind, std::size_t n_classes,
               const Samples& samples) {
    const TreeLimits limits{samples.width(), samples.n_features(), n_classes, samples.size()};
    check_nodes(flat, kind);
    check_values(flat, kind, limits);
    const VectorCodec codec(flat.format, limits.width);
    Tree tree(kind, codec);
    tree.reset();
    for (std::size_t at = 0; at < flat.vectors.size(); at += codec.slot_bytes())
        tree.add_vector(flat.vectors.data() + at);
    struct Move {
        std::int32_t from, to;
    };
    std::vector<Move> pending{{kRoot, kRoot}};
    Split split;
    while (!pending.empty()) {
        const Move move = pending.back();
        pending.pop_back();
        const auto from = static_cast<std::size_t>(move.from);
        if (flat.left[from] == kLeaf) {
            append_leaf(flat, from, move.to, tree);
            check_rows(tree, move.to, samples);
            continue;
        }
        read_split(flat, from, split);
        const std::int32_t child = tree.split(move.to, split);
        pending.push_back({flat.left[from] + 1, child + 1});
        pending.push_back({flat.left[from], child});
    }
    add_up_counts(tree);
    return tree.packed();
}

}  // namespace evergrow
