// A linear support vector machine by dual coordinate descent: Hsieh, Chang, Lin, Keerthi and
// Sundararajan (ICML 2008), algorithm 3, for the hinge loss.
//
// Minimises |w|^2 / 2 + b^2 / 2 + C sum_i max(0, 1 - y_i (w.x_i + b)): the bias is the weight of a
// constant feature. The x_i are centred and divided by one number that gives them the spread of
// standardised features, so that C means the same for any samples, however close they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "samples/row_view.hpp"

namespace evergrow {

class LinearSvm {
  public:
    // A sweep visits every sample once. Forests of SVMs trained longer were slower and no more
    // accurate (measured: 5, 10 and 30 sweeps on spirals, digits and image features).
    static constexpr std::size_t kMaxSweeps = 5;
    // Largest violation of the optimality conditions that counts as none.
    static constexpr double kTolerance = 0.1;

    LinearSvm(const RowView& rows, double regularization)
        : n_features_(rows.n_features()),
          width_(rows.width()),
          upper_(regularization),
          reader_(rows) {}

    // The samples of the next trainings.
    void set_rows(const std::int32_t* rows, std::size_t n);
    // Labels are -1 and 1, one per row; the stream decides the order of visits. Unfinished when
    // `stop` was set on the way.
    void train(const std::vector<std::int8_t>& labels, Stream stream, const StopFlag& stop);

    // The plane is where weights . (x - centre) + bias is 0, the bias already in the units of x.
    const float* weights() const { return weights_.data(); }
    const float* centre() const { return centre_.data(); }
    float bias() const { return bias_ * spread_; }
    // Products of a row and the weights computed so far.
    std::uint64_t n_products() const { return n_products_; }

  private:
    // Projected gradients seen in a sweep; their distance is the violation.
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
    std::vector<double> squared_norms_;  // of the rows with their constant feature
    std::vector<double> alpha_;
    std::vector<std::uint32_t> order_;
    std::size_t n_active_ = 0;  // of order_; the others rest at a bound until the next check
    AlignedVector<float> weights_;
    float bias_ = 0;
    std::uint64_t n_products_ = 0;
};

}  // namespace evergrow
