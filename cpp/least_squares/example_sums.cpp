#include "least_squares/example_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {
namespace {

// Bytes of features in a block.
constexpr std::size_t kBlockBytes = std::size_t{128} << 20;
// Rows whose features one task computes.
constexpr std::size_t kTaskRows = 128;
// Widths of tiles. There are enough of them for many threads unless there are few features.
constexpr std::size_t kNarrowestTile = 32, kWidestTile = 256, kTilesPerSide = 8;

std::size_t tile_width(std::size_t n_features) {
    const std::size_t wanted = (n_features / kTilesPerSide + 15) / 16 * 16;
    return std::clamp(wanted, kNarrowestTile, kWidestTile);
}

// The features of a block of rows, times the roots of their weights. Columns lie in panels as wide
// as a tile, so that the matrix product of two panels reads memory in order.
class Block {
  public:
    Block(std::size_t n_features, std::size_t max_rows)
        : n_features_(n_features),
          width_(tile_width(n_features)),
          max_rows_(max_rows),
          values_(n_panels() * width_ * max_rows) {}

    std::size_t width() const { return width_; }
    std::size_t n_panels() const { return (n_features_ + width_ - 1) / width_; }
    std::size_t first(std::size_t panel) const { return panel * width_; }
    std::size_t size(std::size_t panel) const {
        return std::min(width_, n_features_ - panel * width_);
    }
    double* panel(std::size_t p) { return values_.data() + p * width_ * max_rows_; }
    const double* panel(std::size_t p) const { return values_.data() + p * width_ * max_rows_; }
    double* at(std::size_t panel_index, std::size_t row) {
        return panel(panel_index) + row * width_;
    }

  private:
    std::size_t n_features_, width_, max_rows_;
    AlignedVector<double> values_;
};

// Computes features of a few rows; one per thread.
class FeatureMaker {
  public:
    FeatureMaker(const Blas& blas, const FeatureRule& rule)
        : blas_(blas),
          rule_(rule),
          inputs_(kTaskRows * rule.n_inputs),
          phases_(rule.nonlinearity == Nonlinearity::kFourier ? kTaskRows * rule.n_directions : 0) {
    }

    // Fills the rows [first, last) of the block from rows of the examples that begin at `origin`,
    // and the squared lengths of the weighted rows. False if a number is too large.
    bool fill(const Examples& examples, std::size_t origin, std::size_t first, std::size_t last,
              double largest, Block& block, double* squares) {
        const std::size_t n = last - first;
        if (!convert(examples, origin + first, n, largest)) return false;
        if (rule_.nonlinearity == Nonlinearity::kFourier)
            project(n, 0, rule_.n_directions, phases_.data(), rule_.n_directions);
        for (std::size_t p = 0; p < block.n_panels(); ++p) {
            fill_panel(block, p, first, n);
            for (std::size_t i = 0; i < n; ++i) {
                double* row = block.at(p, first + i);
                if (rule_.shift != nullptr)
                    for (std::size_t c = 0; c < block.size(p); ++c)
                        row[c] -= rule_.shift[block.first(p) + c];
                if (examples.weights != nullptr) {
                    const double root = std::sqrt(examples.weights[origin + first + i]);
                    for (std::size_t c = 0; c < block.size(p); ++c) row[c] *= root;
                }
                double sum = 0.0;
                for (std::size_t c = 0; c < block.size(p); ++c) sum += row[c] * row[c];
                squares[first + i] += sum;
            }
        }
        return true;
    }

  private:
    bool convert(const Examples& examples, std::size_t row, std::size_t n, double largest) {
        const std::size_t begin = row * rule_.n_inputs, count = n * rule_.n_inputs;
        if (!examples.is_double) {
            const float* from = static_cast<const float*>(examples.rows) + begin;
            std::copy(from, from + count, inputs_.data());
            return true;
        }
        const double* from = static_cast<const double*>(examples.rows) + begin;
        bool fits = true;
        for (std::size_t i = 0; i < count; ++i) {
            fits &= std::abs(from[i]) <= largest;
            inputs_[i] = from[i];
        }
        return fits;
    }

    // Projections on the directions from `first_direction` on, `n_columns` of them, as rows of
    // `out` with the given stride.
    void project(std::size_t n, std::size_t first_direction, std::size_t n_columns, double* out,
                 std::size_t stride) {
        const int m = static_cast<int>(n_columns), rows = static_cast<int>(n);
        const int k = static_cast<int>(rule_.n_inputs), ldc = static_cast<int>(stride);
        const double one = 1.0, zero = 0.0;
        blas_.gemm("T", "N", &m, &rows, &k, &one,
                   rule_.directions + first_direction * rule_.n_inputs, &k, inputs_.data(), &k,
                   &zero, out, &ldc);
    }

    // The part [from, to) of a panel that lies in a range of features, relative to that range.
    struct Part {
        std::size_t column;  // in the panel
        std::size_t first;   // in the range
        std::size_t count;
    };
    static Part overlap(const Block& block, std::size_t p, std::size_t begin, std::size_t end) {
        const std::size_t low = std::max(block.first(p), begin);
        const std::size_t high = std::min(block.first(p) + block.size(p), end);
        if (low >= high) return {0, 0, 0};
        return {low - block.first(p), low - begin, high - low};
    }

    void fill_panel(Block& block, std::size_t p, std::size_t first, std::size_t n) {
        const std::size_t random_end = rule_.n_copied + rule_.n_random;
        const Part copied = overlap(block, p, 0, rule_.n_copied);
        for (std::size_t i = 0; i < n && copied.count; ++i) {
            const double* from = inputs_.data() + i * rule_.n_inputs + copied.first;
            std::copy(from, from + copied.count, block.at(p, first + i) + copied.column);
        }
        const Part random = overlap(block, p, rule_.n_copied, random_end);
        if (random.count && rule_.nonlinearity == Nonlinearity::kReLU) {
            project(n, random.first, random.count, block.at(p, first) + random.column,
                    block.width());
            for (std::size_t i = 0; i < n; ++i) {
                double* row = block.at(p, first + i) + random.column;
                for (std::size_t c = 0; c < random.count; ++c) row[c] = std::max(row[c], 0.0);
            }
        } else if (random.count) {
            fill_waves(block, p, first, n, random);
        }
        if (!rule_.constant || block.first(p) + block.size(p) <= random_end) return;
        for (std::size_t i = 0; i < n; ++i)
            block.at(p, first + i)[random_end - block.first(p)] = 1.0;
    }

    // Random Fourier features: all cosines, then all sines.
    void fill_waves(Block& block, std::size_t p, std::size_t first, std::size_t n,
                    const Part& random) {
        const double scale = std::sqrt(2.0 / static_cast<double>(rule_.n_random));
        for (std::size_t i = 0; i < n; ++i) {
            const double* phases = phases_.data() + i * rule_.n_directions;
            double* row = block.at(p, first + i) + random.column;
            for (std::size_t c = 0; c < random.count; ++c) {
                const std::size_t f = random.first + c;
                row[c] =
                    scale * (f < rule_.n_directions ? std::cos(phases[f])
                                                    : std::sin(phases[f - rule_.n_directions]));
            }
        }
    }

    const Blas& blas_;
    const FeatureRule& rule_;
    AlignedVector<double> inputs_, phases_;
};

// Adds the products of two panels to a tile of the Gram matrix. In the column order of BLAS a panel
// is a matrix of `size` rows, and the upper triangle of the Gram matrix is its lower one.
void add_tile(const Blas& blas, const Block& block, std::size_t n_rows, std::size_t row_panel,
              std::size_t column_panel, double* gram, std::size_t n_features) {
    const int k = static_cast<int>(n_rows), ld = static_cast<int>(block.width());
    const int ldc = static_cast<int>(n_features);
    const int m = static_cast<int>(block.size(column_panel));
    const int n = static_cast<int>(block.size(row_panel));
    const double one = 1.0;
    double* tile = gram + block.first(row_panel) * n_features + block.first(column_panel);
    if (row_panel == column_panel)
        blas.syrk("L", "N", &n, &k, &one, block.panel(row_panel), &ld, &one, tile, &ldc);
    else
        blas.gemm("N", "T", &m, &n, &k, &one, block.panel(column_panel), &ld,
                  block.panel(row_panel), &ld, &one, tile, &ldc);
}

// Adds the features of one panel to the sums of the classes.
void add_class_sums(const Block& block, std::size_t p, const Examples& examples, std::size_t origin,
                    std::size_t n_rows, double* class_sums, std::size_t n_features) {
    const std::size_t size = block.size(p);
    const double* row = block.panel(p);
    for (std::size_t i = 0; i < n_rows; ++i, row += block.width()) {
        const auto code = static_cast<std::size_t>(examples.codes[origin + i]);
        double* sum = class_sums + code * n_features + block.first(p);
        // The block holds rows times the root of their weight.
        const double root =
            examples.weights == nullptr ? 1.0 : std::sqrt(examples.weights[origin + i]);
        for (std::size_t c = 0; c < size; ++c) sum[c] += root * row[c];
    }
}

}  // namespace

SumsResult add_examples(const Blas& blas, const FeatureRule& rule, const Examples& examples,
                        double largest, const ExampleSums& sums, std::size_t n_threads,
                        const Poll& poll) {
    const std::size_t d = rule.n_features();
    const std::size_t max_rows =
        std::min(std::max(kTaskRows, kBlockBytes / (8 * d) / kTaskRows * kTaskRows),
                 (examples.n_rows + kTaskRows - 1) / kTaskRows * kTaskRows);
    Block block(d, max_rows);
    std::vector<FeatureMaker> makers(n_threads, FeatureMaker(blas, rule));
    std::vector<double> squares(max_rows);
    // The most expensive tasks come first: tiles, then the sums of the classes.
    std::vector<std::pair<std::size_t, std::size_t>> tiles;
    for (std::size_t i = 0; sums.gram != nullptr && i < block.n_panels(); ++i)
        for (std::size_t j = i; j < block.n_panels(); ++j) tiles.emplace_back(i, j);
    std::atomic<bool> fits{true};
    for (std::size_t origin = 0; origin < examples.n_rows; origin += max_rows) {
        const std::size_t n = std::min(max_rows, examples.n_rows - origin);
        const auto progress = [&](std::size_t) { return poll(origin); };
        std::fill(squares.begin(), squares.end(), 0.0);
        const auto make = [&](std::size_t index, std::size_t worker, const StopFlag&) {
            const std::size_t first = index * kTaskRows, last = std::min(n, first + kTaskRows);
            if (!makers[worker].fill(examples, origin, first, last, largest, block, squares.data()))
                fits = false;
        };
        if (!run_parallel((n + kTaskRows - 1) / kTaskRows, n_threads, make, progress))
            return SumsResult::kStopped;
        if (!fits) return SumsResult::kTooLarge;
        const auto add = [&](std::size_t index, std::size_t, const StopFlag&) {
            if (index < tiles.size())
                add_tile(blas, block, n, tiles[index].first, tiles[index].second, sums.gram, d);
            else
                add_class_sums(block, index - tiles.size(), examples, origin, n, sums.class_sums,
                               d);
        };
        if (!run_parallel(tiles.size() + block.n_panels(), n_threads, add, progress))
            return SumsResult::kStopped;
        for (std::size_t i = 0; i < n; ++i)
            sums.class_squares[examples.codes[origin + i]] += squares[i];
    }
    return poll(examples.n_rows) ? SumsResult::kDone : SumsResult::kStopped;
}

}  // namespace evergrow
