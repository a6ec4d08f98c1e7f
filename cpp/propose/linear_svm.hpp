// A linear support vector machine with hinge loss, trained by dual coordinate descent
// [Hsieh2008 Alg. 3].
//
// Minimises |w|^2 / 2 + b^2 / 2 + C sum_i max(0, 1 - y_i (w.x_i + b)); the bias b is the weight of
// a constant feature. The x_i are centred and divided by one number, so that their mean variance is
// that of standardised features and C has the same meaning at every node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "samples/row_reader.hpp"

namespace evergrow {

class LinearSvm {
  public:
    // A sweep visits every sample once. With more sweeps forests were slower and not more accurate
    // (measured: 5, 10 and 30 sweeps on spirals, digits and image features).
    static constexpr std::size_t kMaxSweeps = 5;
    // Tolerance for violations of the optimality conditions.
    static constexpr double kTolerance = 0.1;

    LinearSvm(const Samples& rows, double regularization)
        : n_features_(rows.n_features()),
          width_(rows.width()),
          upper_(regularization),
          reader_(rows) {}

    // Sets the samples of the next trainings.
    void set_rows(const std::int32_t* rows, std::size_t n);
    // Labels are -1 and 1, one per row; the stream determines the order of visits. Incomplete if
    // `stop` is set meanwhile.
    void train(const std::vector<std::int8_t>& labels, Stream stream, const StopFlag& stop);

    // The plane is weights . (x - centre) + bias = 0, with the bias in the units of x.
    const float* weights() const { return weights_.data(); }
    const float* centre() const { return centre_.data(); }
    float bias() const { return bias_ * spread_; }
    // Dot products computed so far.
    std::uint64_t n_products() const { return n_products_; }

  private:
    // The range of projected gradients in a sweep; its length is the violation.
    struct Extent {
        double low, high;
    };

    bool sweep(const std::vector<std::int8_t>& labels, const Extent& before, Extent& seen,
               const StopFlag& stop);
    const float* row(std::size_t i) const { return rows_.data() + i * width_; }
    void scale_rows();
    void shuffle(Stream& stream);
    void step(std::size_t i, double label, double gradient);

    const std::size_t n_features_;
    const std::size_t width_;
    const double upper_;  // C
    RowReader reader_;
    std::size_t n_rows_ = 0;
    AlignedVector<float> rows_;  // centred and scaled
    AlignedVector<float> centre_;
    float spread_ = 1;
    std::vector<double> squared_norms_;  // of the rows with the constant feature
    std::vector<double> alpha_;
    std::vector<std::uint32_t> order_;
    std::size_t n_active_ = 0;  // of order_; the others are at a bound and skipped
    AlignedVector<float> weights_;
    float bias_ = 0;
    std::uint64_t n_products_ = 0;
};

}  // namespace evergrow
