#include "least_squares/cholesky.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "arrays/aligned.hpp"

namespace evergrow {
namespace {

// Vectors, with vectors of zeros added to a number that kernels accept; these change nothing.
class Vectors {
  public:
    Vectors(std::size_t count, std::size_t width)
        : count_(count <= 1 ? 1 : (count <= 2 ? 2 : (count <= 4 ? 4 : kFactorVectors))),
          data_(count_ * width, 0.0) {
        for (std::size_t v = 0; v < count_; ++v) pointers_[v] = data_.data() + v * width;
    }

    std::size_t count() const { return count_; }
    double* const* pointers() { return pointers_.data(); }
    const double* const* readable() const { return pointers_.data(); }
    double* operator[](std::size_t v) { return pointers_[v]; }

  private:
    std::size_t count_;
    AlignedVector<double> data_;
    std::array<double*, kFactorVectors> pointers_{};
};

// One update of one factor, four rows of the factor at a time.
class FactorUpdate {
  public:
    FactorUpdate(const Kernels& kernels, double* factor, std::size_t n_features,
                 const FactorRows& rows)
        : loops_(kernels.factor),
          factor_(factor),
          n_(n_features),
          vectors_(rows.count, n_features + kFactorVectors),
          solved_(n_features * kFactorVectors, 0.0) {
        signs_.fill(1.0);
        for (std::size_t v = 0; v < rows.count; ++v) {
            std::copy_n(rows.values + v * n_, n_, vectors_[v]);
            // Rotations turn this identity matrix next to the rows into R_new^-T times the rows.
            vectors_[v][n_ + v] = 1.0;
            signs_[v] = rows.signs[v];
        }
    }

    bool run() {
        for (std::size_t first = 0; first < n_; first += kFactorRows)
            if (!rotate_block(first, std::min(kFactorRows, n_ - first))) return false;
        return true;
    }

    // R_new^-1 (R_new^-T x) by back substitution.
    void solve(std::size_t n_rows, double* gains) {
        Vectors solution(n_rows, n_);
        const std::size_t m = solution.count();
        const std::size_t n_blocks = (n_ + kFactorRows - 1) / kFactorRows;
        for (std::size_t b = n_blocks; b-- > 0;) {
            const std::size_t first = b * kFactorRows, size = std::min(kFactorRows, n_ - first);
            double products[kFactorRows * kFactorVectors];
            const auto rows = block_rows(first, size);
            loops_.multiply_rows(rows.data(), solution.readable(), m, first + size, n_, products);
            for (std::size_t r = size; r-- > 0;) {
                const double* row = factor_ + (first + r) * n_;
                for (std::size_t v = 0; v < n_rows; ++v) {
                    double value =
                        signs_[v] * solved_[(first + r) * kFactorVectors + v] - products[r * m + v];
                    for (std::size_t i = first + r + 1; i < first + size; ++i)
                        value -= row[i] * solution[v][i];
                    solution[v][first + r] = value / row[first + r];
                }
            }
        }
        for (std::size_t v = 0; v < n_rows; ++v) std::copy_n(solution[v], n_, gains + v * n_);
    }

  private:
    // Always four pointers: the last row is repeated if there are fewer, and its results ignored.
    std::array<double*, kFactorRows> block_rows(std::size_t first, std::size_t size) const {
        std::array<double*, kFactorRows> rows;
        for (std::size_t r = 0; r < kFactorRows; ++r)
            rows[r] = factor_ + (first + std::min(r, size - 1)) * n_;
        return rows;
    }

    bool rotate_block(std::size_t first, std::size_t size) {
        const std::size_t m = vectors_.count(), end = first + size;
        std::array<Rotation, kFactorRows * kFactorVectors> rotations;
        for (std::size_t r = 0; r < size; ++r) {
            const std::size_t j = first + r;
            double* row = factor_ + j * n_;
            for (std::size_t v = 0; v < m; ++v) {
                double* x = vectors_[v];
                const double pivot = row[j];
                const double square = pivot * pivot + signs_[v] * x[j] * x[j];
                // NaN also fails this test.
                if (!(square > 0)) return false;
                const double root = std::sqrt(square), slope = x[j] / pivot;
                const Rotation rotation{pivot / root, signs_[v] * slope * pivot / root,
                                        root / pivot, -slope};
                rotations[r * m + v] = rotation;
                row[j] = root;
                x[j] = 0;
                for (std::size_t i = j + 1; i < end; ++i) {
                    row[i] = rotation.row_by_row * row[i] + rotation.row_by_vector * x[i];
                    x[i] = rotation.vector_by_vector * x[i] + rotation.vector_by_row * row[i];
                }
                rotate_solution(j, x, rotation);
            }
        }
        // A last block of fewer than four rows has no columns after it.
        if (end < n_)
            loops_.rotate_rows(block_rows(first, size).data(), vectors_.pointers(), m,
                               rotations.data(), end, n_);
        return true;
    }

    // The same rotation for the columns next to the factor.
    void rotate_solution(std::size_t j, double* x, const Rotation& rotation) {
        double* solved = solved_.data() + j * kFactorVectors;
        for (std::size_t i = 0; i < kFactorVectors; ++i) {
            solved[i] = rotation.row_by_row * solved[i] + rotation.row_by_vector * x[n_ + i];
            x[n_ + i] = rotation.vector_by_vector * x[n_ + i] + rotation.vector_by_row * solved[i];
        }
    }

    const FactorKernels& loops_;
    double* factor_;
    std::size_t n_;
    Vectors vectors_;
    std::array<double, kFactorVectors> signs_;
    AlignedVector<double> solved_;
};

}  // namespace

bool update_factor(const Kernels& kernels, double* factor, std::size_t n_features,
                   const FactorRows& rows, double* gains) {
    FactorUpdate update(kernels, factor, n_features, rows);
    if (!update.run()) return false;
    if (gains != nullptr) update.solve(rows.count, gains);
    return true;
}

void update_weights(const Kernels& kernels, const double* weights, std::size_t n_classes,
                    std::size_t n_features, const WeightRows& rows, double* result,
                    double* errors) {
    const std::size_t n_rows = rows.examples.count;
    Vectors examples(n_rows, n_features), gains(n_rows, n_features);
    const std::size_t m = examples.count();
    for (std::size_t v = 0; v < n_rows; ++v) {
        std::copy_n(rows.examples.values + v * n_features, n_features, examples[v]);
        std::copy_n(rows.gains + v * n_features, n_features, gains[v]);
    }
    // Adds the gains to the weights of a class, given the products of weights and examples.
    const auto add_gains = [&](std::size_t t, const double* products) {
        std::array<double, kFactorVectors> differences{};
        for (std::size_t v = 0; v < n_rows; ++v) {
            const bool own = static_cast<std::size_t>(rows.codes[v]) == t;
            const double target = own ? rows.targets[v] : 0.0;
            differences[v] = rows.examples.signs[v] * (target - products[v]);
        }
        std::copy_n(differences.data(), n_rows, errors + t * n_rows);
        kernels.factor.add_vectors(weights + t * n_features, gains.readable(), differences.data(),
                                   m, n_features, result + t * n_features);
    };
    // Four classes at a time, so that the examples are read from the cache once for all of them.
    std::size_t first = 0;
    for (; first + kFactorRows <= n_classes; first += kFactorRows) {
        std::array<const double*, kFactorRows> block;
        std::array<double, kFactorRows * kFactorVectors> products;
        for (std::size_t r = 0; r < kFactorRows; ++r) block[r] = weights + (first + r) * n_features;
        kernels.factor.multiply_rows(block.data(), examples.readable(), m, 0, n_features,
                                     products.data());
        for (std::size_t r = 0; r < kFactorRows; ++r) add_gains(first + r, products.data() + r * m);
    }
    for (std::size_t t = first; t < n_classes; ++t) {
        std::array<double, kFactorVectors> products;
        kernels.factor.multiply_row(weights + t * n_features, examples.readable(), m, n_features,
                                    products.data());
        add_gains(t, products.data());
    }
}

}  // namespace evergrow
