#include "tree/tree_delta.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace evergrow {
namespace {

// What a tree has besides its arrays, and what identifies the older tree.
struct Header {
    std::uint64_t width, comparisons_before, n_nodes_before, comparisons;
    std::uint64_t dead_nodes, dead_centroids, dead_counts, dead_rows;
    double dead_vectors;
    SplitKind kind;
    VectorFormat format;
    std::uint8_t unused[6];
};

// Sizes of one array, which starts as a copy of the older one, or empty.
struct ArrayHeader {
    std::uint64_t n_before, n_after, n_runs;
};

struct Run {
    std::uint64_t first, n;
};

void require(bool condition) {
    if (!condition) throw std::invalid_argument("the changes do not belong to this tree");
}

class Writer {
  public:
    template <class T>
    void add(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>, "values are copied as bytes");
        std::memcpy(reserve(sizeof value), &value, sizeof value);
    }
    std::uint8_t* reserve(std::size_t n_bytes) {
        bytes_.resize(bytes_.size() + n_bytes);
        return bytes_.data() + bytes_.size() - n_bytes;
    }
    std::vector<std::uint8_t> take() { return std::move(bytes_); }

  private:
    std::vector<std::uint8_t> bytes_;
};

class Reader {
  public:
    Reader(const std::uint8_t* bytes, std::size_t n_bytes) : next_(bytes), left_(n_bytes) {}

    template <class T>
    T read() {
        T value;
        std::memcpy(&value, next(sizeof value), sizeof value);
        return value;
    }
    const std::uint8_t* next(std::size_t n_bytes) {
        require(n_bytes <= left_);
        const std::uint8_t* found = next_;
        next_ += n_bytes;
        left_ -= n_bytes;
        return found;
    }
    std::size_t n_left() const { return left_; }

  private:
    const std::uint8_t* next_;
    std::size_t left_;
};

template <class T>
void write_array(const PagedArray<T>& before, const PagedArray<T>& after, Writer& writer) {
    // Arrays only grow until the tree is packed, which moves everything.
    const PagedArray<T> nothing(after.width());
    const PagedArray<T>& base = after.size() < before.size() ? nothing : before;
    std::vector<Run> runs;
    after.each_change_since(
        base, [&](std::size_t first, std::size_t n) { runs.push_back(Run{first, n}); });
    writer.add(ArrayHeader{base.size(), after.size(), runs.size()});
    const std::size_t item_bytes = after.width() * sizeof(T);
    std::vector<T> items;
    for (const Run& run : runs) {
        writer.add(run);
        items.resize(run.n * after.width());
        after.read(run.first, run.n, items.data());
        std::memcpy(writer.reserve(run.n * item_bytes), items.data(), run.n * item_bytes);
    }
}

// The array must be a copy of the older one.
template <class T>
void read_array(Reader& reader, PagedArray<T>& array) {
    const auto header = reader.read<ArrayHeader>();
    if (header.n_before == 0) array = PagedArray<T>(array.width());
    require(header.n_before == array.size() && header.n_after >= header.n_before);
    const std::size_t item_bytes = array.width() * sizeof(T);
    // Do not allocate more than the message can fill.
    require(header.n_after - header.n_before <= reader.n_left() / item_bytes);
    array.extend(header.n_after - header.n_before);
    std::uint64_t next = 0;
    for (std::uint64_t r = 0; r < header.n_runs; ++r) {
        const auto run = reader.read<Run>();
        require(run.first >= next && run.first <= header.n_after &&
                run.n <= header.n_after - run.first && run.n <= reader.n_left() / item_bytes);
        next = run.first + run.n;
        // Old items may lie on shared pages and need edit().
        require(run.first >= header.n_before || next <= header.n_before);
        for (std::uint64_t i = run.first; i < next; ++i) {
            T* item = i < header.n_before ? array.edit(i) : array.appended(i);
            std::memcpy(item, reader.next(item_bytes), item_bytes);
        }
    }
    // New items are the last run.
    require(header.n_after == header.n_before || next == header.n_after);
}

}  // namespace

std::vector<std::uint8_t> TreeDelta::since(const Tree* before, const Tree& after) {
    const Tree nothing(after.kind(), after.codec());
    const Tree& base = before == nullptr ? nothing : *before;
    Writer writer;
    writer.add(Header{after.width(),
                      base.n_comparisons,
                      base.node_limit(),
                      after.n_comparisons,
                      after.dead_nodes_,
                      after.dead_centroids_,
                      after.dead_counts_,
                      after.dead_rows_,
                      after.dead_vectors_,
                      after.kind(),
                      after.codec().format(),
                      {}});
    for_each_array(base, after,
                   [&](const auto& old, const auto& now) { write_array(old, now, writer); });
    return writer.take();
}

std::shared_ptr<Tree> TreeDelta::apply(const Tree* before, const std::uint8_t* bytes,
                                       std::size_t n_bytes) {
    Reader reader(bytes, n_bytes);
    const auto header = reader.read<Header>();
    require(header.width > 0 && header.kind <= SplitKind::kAxis &&
            header.format <= VectorFormat::kBytes);
    const VectorCodec codec(header.format, header.width);
    auto tree = before == nullptr ? std::make_shared<Tree>(header.kind, codec)
                                  : std::make_shared<Tree>(*before);
    require(tree->kind() == header.kind && tree->width() == header.width &&
            tree->codec().format() == header.format &&
            tree->n_comparisons == header.comparisons_before &&
            tree->node_limit() == header.n_nodes_before);
    for_each_array(*tree, *tree, [&](auto& array, auto&) { read_array(reader, array); });
    require(reader.n_left() == 0);
    tree->n_comparisons = header.comparisons;
    tree->dead_nodes_ = header.dead_nodes;
    tree->dead_centroids_ = header.dead_centroids;
    tree->dead_counts_ = header.dead_counts;
    tree->dead_rows_ = header.dead_rows;
    tree->dead_vectors_ = header.dead_vectors;
    return tree;
}

std::vector<std::vector<std::uint8_t>> deltas_since(const Forest* before, const Forest& after) {
    if (before != nullptr && before->trees.size() != after.trees.size())
        throw std::invalid_argument("the forests differ in their number of trees");
    std::vector<std::vector<std::uint8_t>> deltas;
    for (std::size_t t = 0; t < after.trees.size(); ++t)
        deltas.push_back(TreeDelta::since(before == nullptr ? nullptr : before->trees[t].get(),
                                          *after.trees[t]));
    return deltas;
}

Forest apply_deltas(const Forest* before, const std::vector<DeltaBytes>& deltas,
                    std::shared_ptr<const Samples> samples, std::size_t n_classes) {
    if (before != nullptr && before->trees.size() != deltas.size())
        throw std::invalid_argument("there must be one entry of changes per tree");
    Forest forest{std::move(samples), {}, n_classes, nullptr};
    if (before != nullptr) forest.n_log_n = before->n_log_n;
    for (std::size_t t = 0; t < deltas.size(); ++t) {
        const Tree* old = before == nullptr ? nullptr : before->trees[t].get();
        forest.trees.push_back(TreeDelta::apply(old, deltas[t].data, deltas[t].size));
        if (forest.trees.back()->width() != forest.samples->width())
            throw std::invalid_argument("the trees and the samples differ in width");
    }
    return forest;
}

}  // namespace evergrow
