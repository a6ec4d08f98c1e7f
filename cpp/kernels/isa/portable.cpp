// For every processor: the vector types of GCC and Clang, which become SSE2, NEON and so on, or
// plain arrays with other compilers.
#include <cmath>
#include <cstring>

#include "kernels/half_float.hpp"
#include "kernels/isa/distance_loops.hpp"
#include "kernels/isa/factor_loops.hpp"
#include "kernels/isa/gain_loops.hpp"
#include "kernels/isa/instruction_sets.hpp"

namespace evergrow {
namespace {

#if defined(__GNUC__)
typedef float FourFloats __attribute__((vector_size(16)));
typedef double TwoDoubles __attribute__((vector_size(16)));
typedef std::uint8_t SixteenBytes __attribute__((vector_size(16)));
#else
struct FourFloats {
    float lane[4];
    float& operator[](std::size_t i) { return lane[i]; }
    float operator[](std::size_t i) const { return lane[i]; }
    friend FourFloats operator*(const FourFloats& a, const FourFloats& b) {
        return {{a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}};
    }
    friend FourFloats operator+(const FourFloats& a, const FourFloats& b) {
        return {{a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}};
    }
};
struct TwoDoubles {
    double lane[2];
    double& operator[](std::size_t i) { return lane[i]; }
    double operator[](std::size_t i) const { return lane[i]; }
    friend TwoDoubles operator*(const TwoDoubles& a, const TwoDoubles& b) {
        return {{a[0] * b[0], a[1] * b[1]}};
    }
    friend TwoDoubles operator+(const TwoDoubles& a, const TwoDoubles& b) {
        return {{a[0] + b[0], a[1] + b[1]}};
    }
};
struct SixteenBytes {
    std::uint8_t lane[16];
    std::uint8_t& operator[](std::size_t i) { return lane[i]; }
    std::uint8_t operator[](std::size_t i) const { return lane[i]; }
    friend SixteenBytes operator+(SixteenBytes a, const SixteenBytes& b) {
        for (std::size_t i = 0; i < 16; ++i) a[i] = static_cast<std::uint8_t>(a[i] + b[i]);
        return a;
    }
    friend SixteenBytes operator-(SixteenBytes a, const SixteenBytes& b) {
        for (std::size_t i = 0; i < 16; ++i) a[i] = static_cast<std::uint8_t>(a[i] - b[i]);
        return a;
    }
};
#endif

// The lowest scores of four rows and the centroids they belong to.
struct PortableBest {
    float score[kRows];
    std::int32_t index[kRows];

    static PortableBest none() {
        return {{kWorstScore, kWorstScore, kWorstScore, kWorstScore}, {0, 0, 0, 0}};
    }
    void keep(float half_norm, const FourFloats& dots, std::int32_t centroid) {
        for (std::size_t r = 0; r < kRows; ++r) {
            const float candidate = half_norm - dots[r];
            const bool better = candidate < score[r];
            score[r] = better ? candidate : score[r];
            index[r] = better ? centroid : index[r];
        }
    }
    void store(std::int32_t* nearest, float* scores) const {
        for (std::size_t r = 0; r < kRows; ++r) {
            nearest[r] = index[r];
            scores[r] = score[r];
        }
    }
};

struct Portable {
    using Register = FourFloats;
    using Four = FourFloats;
    using Best = PortableBest;
    static constexpr std::size_t kWidth = 4;
    // The lowest scores of four rows and the columns they belong to.
    struct Lowest {
        float score[kRows];
        std::int32_t index[kRows];

        static Lowest none() {
            return {{kWorstScore, kWorstScore, kWorstScore, kWorstScore}, {0, 0, 0, 0}};
        }
        void keep(const float* column, std::int32_t place) {
            for (std::size_t r = 0; r < kRows; ++r) {
                const bool lower = column[r] < score[r];
                score[r] = lower ? column[r] : score[r];
                index[r] = lower ? place : index[r];
            }
        }
        void store_index(std::uint16_t* p) const {
            for (std::size_t r = 0; r < kRows; ++r) p[r] = static_cast<std::uint16_t>(index[r]);
        }
        void store_score(float* p) const {
            for (std::size_t r = 0; r < kRows; ++r) p[r] = score[r];
        }
    };
    static constexpr std::size_t kColumns = 2;  // 4 rows x 2 centroids fit 16 registers

    static Register zero() { return Register{}; }
    static Register repeat(float value) { return Register{value, value, value, value}; }
    static Register load(const float* p) { return Register{p[0], p[1], p[2], p[3]}; }
    static Register load_half(const std::uint16_t* p) {
        return Register{half_to_float(p[0]), half_to_float(p[1]), half_to_float(p[2]),
                        half_to_float(p[3])};
    }
    static void store(float* p, const Register& v) {
        for (std::size_t i = 0; i < kWidth; ++i) p[i] = v[i];
    }
    static void store_half(std::uint16_t* p, const Register& v) {
        for (std::size_t i = 0; i < kWidth; ++i) p[i] = float_to_half(v[i]);
    }
    static Register load_signed(const std::int8_t* p) {
        return Register{static_cast<float>(p[0]), static_cast<float>(p[1]),
                        static_cast<float>(p[2]), static_cast<float>(p[3])};
    }
    // Rounds to nearest, ties to even; saturates.
    static void store_signed(std::int8_t* p, const Register& v) {
        for (std::size_t i = 0; i < kWidth; ++i)
            p[i] = static_cast<std::int8_t>(
                std::nearbyint(v[i] < -128.0F ? -128.0F : (v[i] > 127.0F ? 127.0F : v[i])));
    }
    static void store_four(float* p, const Four& v) { store(p, v); }
    static Register add(const Register& a, const Register& b) { return a + b; }
    static Register multiply(const Register& a, const Register& b) { return a * b; }
    static Register multiply_add(const Register& a, const Register& b, const Register& c) {
        return a * b + c;
    }
    static void prefetch(const float* p) {
#if defined(__GNUC__)
        __builtin_prefetch(p, 0, 2);
#else
        (void)p;
#endif
    }
    static float sum_lanes(const Register& sum) { return (sum[0] + sum[2]) + (sum[1] + sum[3]); }
    static Four sum_lanes(const Register (&sums)[kRows]) {
        return Four{sum_lanes(sums[0]), sum_lanes(sums[1]), sum_lanes(sums[2]), sum_lanes(sums[3])};
    }

    using Double = TwoDoubles;
    static constexpr std::size_t kDoubles = 2;
    static Double zero_double() { return Double{}; }
    static Double repeat_double(double value) { return Double{value, value}; }
    static Double load_double(const double* p) { return Double{p[0], p[1]}; }
    static void store_double(double* p, const Double& v) {
        p[0] = v[0];
        p[1] = v[1];
    }
    static Double multiply_double(const Double& a, const Double& b) { return a * b; }
    static Double multiply_add_double(const Double& a, const Double& b, const Double& c) {
        return a * b + c;
    }
    static double sum_double(const Double& sum) { return sum[0] + sum[1]; }

    using Bytes = SixteenBytes;
    static constexpr std::size_t kBytes = 16;
    static Bytes zero_bytes() { return Bytes{}; }
    static Bytes load_bytes(const std::int8_t* p) {
        Bytes v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static void store_bytes(std::uint8_t* p, const Bytes& v) { std::memcpy(p, &v, sizeof v); }
    static Bytes add_bytes(const Bytes& a, const Bytes& b) { return a + b; }
    static Bytes subtract_bytes(const Bytes& a, const Bytes& b) { return a - b; }
    static constexpr std::size_t kMaxSplitTerms = 0;  // registers hold too few entries
    static void add_split_terms(const std::int64_t*, std::size_t, const std::uint8_t*, std::size_t,
                                std::int64_t*) {}
};

}  // namespace

const Kernels kPortableKernels = make_kernels<Portable>("portable", make_factor_kernels<Portable>(),
                                                        make_gain_kernels<Portable>());

}  // namespace evergrow
