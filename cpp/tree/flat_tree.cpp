#include "tree/flat_tree.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tree/flat_tree_check.hpp"

namespace evergrow {
namespace {

std::int32_t number(std::size_t n) { return static_cast<std::int32_t>(n); }

// Makes a tree from arrays that were checked. Nodes are numbered in the order in which they are
// visited, as in a grown tree.
class TreeAssembly {
  public:
    TreeAssembly(const FlatTreeView& flat, const VectorCodec& codec)
        : flat_(flat), arrays_(codec.slot_bytes()) {
        arrays_.vectors.assign(flat.vectors.data(), flat.vectors.size() / codec.slot_bytes());
        nodes_ = arrays_.nodes.assign(nullptr, flat.left.size());
        centroids_ = arrays_.centroids.assign(nullptr, flat.centroid_class.size());
        rows_ = arrays_.rows.assign(nullptr, flat.rows.size());
        std::fill_n(nodes_, flat.left.size(), Node{});
    }

    TreeArrays assemble() {
        struct Move {
            std::int32_t from, to;
        };
        std::vector<Move> pending{{kRoot, kRoot}};
        std::int32_t n_nodes = 1;
        while (!pending.empty()) {
            const Move move = pending.back();
            pending.pop_back();
            const std::size_t from = as_index(move.from);
            Node& node = nodes_[move.to];
            if (flat_.left[from] == kLeaf) {
                add_leaf(from, node);
                continue;
            }
            add_split(from, node);
            node.left = n_nodes;
            n_nodes += 2;
            nodes_[node.left].parent = nodes_[node.left + 1].parent = move.to;
            pending.push_back({flat_.left[from] + 1, node.left + 1});
            pending.push_back({flat_.left[from], node.left});
        }
        add_up_counts();
        arrays_.counts.assign(counts_.data(), counts_.size());
        return std::move(arrays_);
    }

  private:
    void add_leaf(std::size_t from, Node& node) {
        node.count_begin = number(counts_.size());
        node.count_size = flat_.count_size[from];
        const std::size_t begin = as_index(flat_.count_begin[from]);
        for (std::size_t j = begin; j < begin + as_index(node.count_size); ++j)
            counts_.push_back(ClassCount{flat_.count_class[j], flat_.count[j]});
        if (flat_.rows.empty()) return;
        node.row_begin = number(n_rows_);
        node.row_size = flat_.row_size[from];
        std::copy_n(flat_.rows.data() + flat_.row_begin[from], node.row_size, rows_ + n_rows_);
        n_rows_ += as_index(node.row_size);
    }

    void add_split(std::size_t from, Node& node) {
        node.centroid_begin = number(n_centroids_);
        node.centroid_size = flat_.centroid_size[from];
        const std::size_t begin = as_index(flat_.centroid_begin[from]);
        for (std::size_t j = begin; j < begin + as_index(node.centroid_size); ++j)
            centroids_[n_centroids_++] =
                Centroid{flat_.centroid_class[j], flat_.centroid_source[j], flat_.half_norm[j],
                         flat_.side[j],           flat_.exponent[j],        {}};
    }

    // The counts of a splitting node are the sums of its children's, which come after it.
    void add_up_counts() {
        for (std::size_t i = flat_.left.size(); i-- > 0;) {
            Node& node = nodes_[i];
            if (node.is_leaf()) continue;
            const Node &left = nodes_[node.left], &right = nodes_[node.left + 1];
            const std::size_t first = counts_.size();
            const auto n_most = as_index(left.count_size) + as_index(right.count_size);
            counts_.resize(first + n_most);
            ClassCount* sum = counts_.data() + first;
            const ClassCount* a = counts_.data() + left.count_begin;
            const ClassCount* b = counts_.data() + right.count_begin;
            const ClassCount *a_end = a + left.count_size, *b_end = b + right.count_size;
            while (a < a_end && b < b_end) {
                if (a->class_id == b->class_id) {
                    *sum++ = ClassCount{a->class_id, a->count + b->count};
                    ++a, ++b;
                } else {
                    *sum++ = a->class_id < b->class_id ? *a++ : *b++;
                }
            }
            sum = std::copy(a, a_end, sum);
            sum = std::copy(b, b_end, sum);
            const auto end = static_cast<std::size_t>(sum - counts_.data());
            counts_.resize(end);
            node.count_begin = number(first);
            node.count_size = number(end - first);
        }
    }

    const FlatTreeView& flat_;
    TreeArrays arrays_;
    Node* nodes_;
    Centroid* centroids_;
    std::int32_t* rows_;
    std::vector<ClassCount> counts_;
    std::size_t n_centroids_ = 0, n_rows_ = 0;
};

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

// Arrays that grow as they are filled would take up to twice their size.
void reserve_entries(const Tree& tree, FlatTree& flat) {
    std::size_t n_centroids = 0, n_counts = 0, n_rows = 0;
    for (std::size_t i = 0; i < tree.node_limit(); ++i) {
        const Node& node = tree.node(number(i));
        n_centroids += as_index(node.centroid_size);
        if (node.is_leaf()) n_counts += as_index(node.count_size);
        n_rows += as_index(node.row_size);
    }
    for (auto* v : {&flat.centroid_class, &flat.centroid_source}) v->reserve(n_centroids);
    flat.half_norm.reserve(n_centroids);
    flat.side.reserve(n_centroids);
    flat.exponent.reserve(n_centroids);
    for (auto* v : {&flat.count_class, &flat.count}) v->reserve(n_counts);
    flat.rows.reserve(n_rows);
}

}  // namespace

FlatTree flatten(const Tree& tree, bool keep_numbers) {
    const Tree source = !keep_numbers && tree.dead_share() > 0.0 ? tree.packed() : tree;
    FlatTree flat;
    const std::size_t n = source.node_limit();
    for (auto* v : {&flat.left, &flat.centroid_begin, &flat.centroid_size, &flat.count_begin,
                    &flat.count_size, &flat.row_begin, &flat.row_size})
        v->assign(n, 0);
    reserve_entries(source, flat);
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

Tree unflatten(const FlatTreeView& flat, SplitKind kind, std::size_t n_classes,
               const Samples& samples) {
    check_flat_tree(flat, kind, n_classes, samples);
    const VectorCodec codec(flat.format, samples.width());
    return Tree(kind, codec, TreeAssembly(flat, codec).assemble());
}

}  // namespace evergrow
