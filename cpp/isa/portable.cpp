// Every processor: GCC's and Clang's vector types where they exist (they become SSE2, NEON, ...),
// plain arrays elsewhere.
#include "../half.hpp"
#include "isa.hpp"
#include "kernel.hpp"

namespace evergrow {
namespace {

#if defined(__GNUC__)
typedef float Four __attribute__((vector_size(16)));
#else
struct Four {
    float lane[4];
    float& operator[](std::size_t i) { return lane[i]; }
    float operator[](std::size_t i) const { return lane[i]; }
    friend Four operator*(const Four& a, const Four& b) {
        return {{a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}};
    }
    friend Four operator+(const Four& a, const Four& b) {
        return {{a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}};
    }
};
#endif

struct Portable {
    using Register = Four;
    static constexpr std::size_t kWidth = 4;
    static constexpr std::size_t kColumns = 2;  // 4 rows x 2 centroids fit 16 registers

    static Register zero() { return Register{}; }
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
    static Register add(const Register& a, const Register& b) { return a + b; }
    static Register multiply_add(const Register& a, const Register& b, const Register& c) {
        return a * b + c;
    }
    static void prefetch(const float* p) {
#if defined(__GNUC__)
        __builtin_prefetch(p);
#else
        (void)p;
#endif
    }
    template <int C>
    static void sum_each(const Register* sums, float* out) {
        for (int c = 0; c < C; ++c)
            out[c] = (sums[c][0] + sums[c][2]) + (sums[c][1] + sums[c][3]);
    }
};

}  // namespace

const Kernels kPortableKernels = make_kernels<Portable>("portable");

}  // namespace evergrow
