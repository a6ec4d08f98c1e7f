// Class means of the samples at a node [Ristin2014 Eq. 5], in the precision in which they are
// stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "propose/known_means.hpp"
#include "samples/row_reader.hpp"
#include "tree/tree.hpp"

namespace evergrow {

class ClassMeans {
  public:
    explicit ClassMeans(const Samples& rows)
        : rows_(rows), reader_(rows), partial_sum_(rows.width()), sum_(rows.width()) {}

    // The centroid of the rows. For a single row and its copies it is a reference, where rows can
    // be referenced; any other mean is rounded into `slot`. `mean` receives the rounded mean in
    // single precision.
    Centroid centroid(std::int32_t class_id, const std::int32_t* rows, std::size_t n,
                      const VectorCodec& codec, float* mean, std::uint8_t* slot);
    // A centroid that the tree has already, on no side; `mean` receives its mean.
    static Centroid known(const Tree& tree, const KnownMean& known, float* mean);

  private:
    void average(const std::int32_t* rows, std::size_t n, float* mean);

    const Samples& rows_;
    RowReader reader_;
    AlignedVector<float> partial_sum_;
    std::vector<double> sum_;
};

// |c|^2 / 2
float half_norm(const float* vector, std::size_t width);

}  // namespace evergrow
