// Standardised features: (x - mean) * scale in double precision, rounded once. Whitened features
// are then multiplied by a lower triangular matrix in single precision. Rows of nearly equal length
// are last multiplied by a number each. Rows are padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {

class Standardizer {
  public:
    // `whitening` has n x n numbers row by row, of which only the lower triangle is read; null for
    // features that are not whitened. With `length_features`, which has 1 for features that count
    // for the length of a row, a row of length l gets the length n^0.45 l^0.1: differences of
    // length nearly vanish, but can be computed back. Without, lengths stay.
    Standardizer(std::vector<double> mean, std::vector<double> scale, const float* whitening,
                 std::vector<std::uint8_t> length_features = {});

    std::size_t n_features() const { return mean_.size(); }

    // Writes rows of the padded width to aligned memory. T is float or double; equal numbers of
    // either type give the same row, and a row does not depend on the others. Results are clipped
    // to +-1e15, so that sums of their squares do not overflow single precision.
    template <class T>
    void apply(const T* rows, std::size_t n_rows, float* const* out) const;

  private:
    template <class T>
    void scale_row(const T* row, float* out) const;
    void whiten(float* const* rows, std::size_t n_rows) const;
    void equalise(float* row) const;
    void whiten_band(std::size_t band, float* const* rows, std::size_t n_rows,
                     float* products) const;

    std::vector<double> mean_;
    std::vector<double> scale_;
    // The triangle in bands of as many rows as a cache line has floats. All rows of a band have
    // the padded width of the last one.
    AlignedVector<float> bands_;
    std::vector<std::uint8_t> length_features_;  // by feature; empty if lengths stay
};

// Rows as samples hold them, of the padded width: float, or the bits of half precision. The rows
// are divided among threads. Output row i is at out[i], or follows row i - 1 in a matrix.
template <class T, class Stored>
void standardize_rows(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                      Stored* const* out, std::size_t n_threads);
template <class T, class Stored>
void standardize_matrix(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                        Stored* out, std::size_t n_threads);

}  // namespace evergrow
