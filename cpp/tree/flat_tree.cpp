#include "tree/flat_tree.hpp"

#include "tree/flat_tree_check.hpp"

namespace evergrow {
namespace {

std::int32_t number(std::size_t n) { return static_cast<std::int32_t>(n); }

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

void append_leaf(const FlatTree& flat, std::size_t from, std::int32_t to, Tree& tree) {
    std::vector<ClassCount> counts;
    const auto begin = static_cast<std::size_t>(flat.count_begin[from]);
    for (std::size_t j = begin; j < begin + static_cast<std::size_t>(flat.count_size[from]); ++j)
        counts.push_back(ClassCount{flat.count_class[j], flat.count[j]});
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

FlatTree flatten(const Tree& tree, bool keep_numbers) {
    const Tree source = !keep_numbers && tree.dead_share() > 0.0 ? tree.packed() : tree;
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
    check_flat_tree(flat, kind, n_classes, samples);
    const VectorCodec codec(flat.format, samples.width());
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
