#include "propose/linear_svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace evergrow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void LinearSvm::set_rows(const std::int32_t* rows, std::size_t n) {
    n_rows_ = n;
    rows_.resize(n * width_);
    std::vector<double> sum(width_);
    for (std::size_t begin = 0; begin < n; begin += RowReader::kBlock) {
        const std::size_t size = std::min(RowReader::kBlock, n - begin);
        const float* const* block = reader_.read(rows + begin, size);
        for (std::size_t i = 0; i < size; ++i) {
            std::copy_n(block[i], width_, rows_.data() + (begin + i) * width_);
            for (std::size_t f = 0; f < width_; ++f) sum[f] += static_cast<double>(block[i][f]);
        }
    }
    centre_.resize(width_);
    for (std::size_t f = 0; f < width_; ++f)
        centre_[f] = static_cast<float>(sum[f] / static_cast<double>(n));
    scale_rows();
}

void LinearSvm::scale_rows() {
    squared_norms_.resize(n_rows_);
    double total = 0;
    for (std::size_t i = 0; i < n_rows_; ++i) {
        kernels().add_multiple(centre_.data(), -1.0F, width_, rows_.data() + i * width_);
        squared_norms_[i] = static_cast<double>(kernels().dot_full(row(i), row(i), width_));
        total += squared_norms_[i];
    }
    const double variance = total / static_cast<double>(n_rows_ * n_features_);
    spread_ = variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0F;
    const float factor = 1.0F / spread_;
    for (float& value : rows_) value *= factor;
    for (double& norm : squared_norms_) norm = 1.0 + norm / (variance > 0 ? variance : 1.0);
}

void LinearSvm::train(const std::vector<std::int8_t>& labels, Stream stream, const StopFlag& stop) {
    alpha_.assign(n_rows_, 0.0);
    weights_.assign(width_, 0.0F);
    bias_ = 0;
    order_.resize(n_rows_);
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
            // Checks the skipped samples again.
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

// Returns false if `stop` was set.
bool LinearSvm::sweep(const std::vector<std::int8_t>& labels, const Extent& before, Extent& seen,
                      const StopFlag& stop) {
    for (std::size_t s = 0; s < n_active_ && !stop;) {
        const std::size_t i = order_[s];
        const double label = labels[i];
        const double score =
            static_cast<double>(kernels().dot_full(row(i), weights_.data(), width_) + bias_);
        ++n_products_;
        const double gradient = label * score - 1.0;
        // A sample at a bound whose gradient points outwards by more than any violation of the
        // previous sweep will probably stay there, so it is skipped.
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
    kernels().add_multiple(row(i), change, width_, weights_.data());
    bias_ += change;
}

}  // namespace evergrow
