#include "linear_svm.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace evergrow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void LinearSvm::set_rows(const std::int32_t* rows, std::size_t n) {
    rows_.resize(n);
    squared_norms_.resize(n);
    if (samples_.precision() == Precision::kFloat16) space_.resize(n * width_);
    for (std::size_t i = 0; i < n; ++i) {
        rows_[i] = samples_.read(rows[i], space_.data() + i * width_);
        squared_norms_[i] =
            1.0 + static_cast<double>(kernels().dot_full(rows_[i], rows_[i], width_));
    }
}

void LinearSvm::train(const std::vector<std::int8_t>& labels, Stream stream, const StopFlag& stop) {
    alpha_.assign(rows_.size(), 0.0);
    weights_.assign(width_, 0.0F);
    bias_ = 0;
    order_.resize(rows_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    n_active_ = order_.size();
    const Extent unknown{-kInfinity, kInfinity};
    Extent before = unknown;
    for (std::size_t i = 0; i < kMaxSweeps; ++i) {
        shuffle(stream);
        Extent seen{kInfinity, -kInfinity};
        if (!sweep(labels, before, seen, stop)) return;
        if (seen.high - seen.low <= kTolerance) {
            if (n_active_ == order_.size()) return;
            // Those left aside may have come into play again.
            n_active_ = order_.size();
            before = unknown;
        } else {
            before.high = seen.high > 0 ? seen.high : kInfinity;
            before.low = seen.low < 0 ? seen.low : -kInfinity;
        }
    }
}

void LinearSvm::shuffle(Stream& stream) {
    for (std::size_t i = 0; i < n_active_; ++i)
        std::swap(order_[i], order_[i + stream.below(static_cast<std::uint32_t>(n_active_ - i))]);
}

// False if stopped.
bool LinearSvm::sweep(const std::vector<std::int8_t>& labels, const Extent& before, Extent& seen,
                      const StopFlag& stop) {
    for (std::size_t s = 0; s < n_active_ && !stop;) {
        const std::size_t i = order_[s];
        const double label = labels[i];
        const double score =
            static_cast<double>(kernels().dot_full(rows_[i], weights_.data(), width_) + bias_);
        ++n_products_;
        const double gradient = label * score - 1.0;
        // A sample at a bound whose gradient pushes outwards harder than any violation of the
        // sweep before will most likely stay there.
        const bool at_zero = alpha_[i] == 0.0, at_upper = alpha_[i] == upper_;
        if ((at_zero && gradient > before.high) || (at_upper && gradient < before.low)) {
            std::swap(order_[s], order_[--n_active_]);
            continue;
        }
        const bool outwards = (at_zero && gradient > 0) || (at_upper && gradient < 0);
        const double projected = outwards ? 0.0 : gradient;
        seen.low = std::min(seen.low, projected);
        seen.high = std::max(seen.high, projected);
        if (projected != 0.0) step(i, label, gradient);
        ++s;
    }
    return !stop;
}

void LinearSvm::step(std::size_t i, double label, double gradient) {
    const double old = alpha_[i];
    alpha_[i] = std::min(std::max(old - gradient / squared_norms_[i], 0.0), upper_);
    const auto change = static_cast<float>((alpha_[i] - old) * label);
    kernels().add_multiple(rows_[i], change, width_, weights_.data());
    bias_ += change;
}

}  // namespace evergrow
