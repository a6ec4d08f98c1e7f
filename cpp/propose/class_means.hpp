// Class means as a node stores them: Eq. (5) of Ristin 2014, rounded before they route anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/row_view.hpp"
#include "tree/split.hpp"

namespace evergrow {

class ClassMeans {
  public:
    explicit ClassMeans(const RowView& rows)
        : rows_(rows), reader_(rows), partial_sum_(rows.width()), sum_(rows.width()) {}

    // The centroid of the rows. A single row is a reference to it where rows can be referred to;
    // any other mean is rounded into `halves`. `mean` receives it in single precision.
    Centroid centroid(std::int32_t class_id, const std::int32_t* rows, std::size_t n, float* mean,
                      std::uint16_t* halves);

  private:
    void average(const std::int32_t* rows, std::size_t n, float* mean);

    const RowView rows_;
    RowReader reader_;
    AlignedVector<float> partial_sum_;
    std::vector<double> sum_;
};

// |c|^2 / 2
float half_norm(const float* vector, std::size_t width);

}  // namespace evergrow
