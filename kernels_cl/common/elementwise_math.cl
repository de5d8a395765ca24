// SPDX-License-Identifier: Apache-2.0
// Macros for the expressions of runtime/ops/elementwise.def. The text is both OpenCL C (pasted before every program) and
// C (runtime/ops/elementwise.c includes it): only what both know may stand here. K(v) is a constant of the type at hand.

// 1 / (1 + e^-v); for v far below zero e^-v is infinite and the result 0.
#define SIGMOID(v) (K(1.0) / (K(1.0) + exp(-(v))))

// log(1 + e^v), which neither overflows nor loses the digits of a small e^v.
#define SOFTPLUS(v) (SELECT((v) < K(0.0), K(0.0), (v)) + log1p(exp(-fabs(v))))

// mish is v tanh(log(1 + e^v)). With u = e^-|v|, which does not overflow, the tanh is the fraction MISH_TANH, and 1 - tanh^2 is MISH_SLOPE,
// without the digits that a difference from 1 loses.
#define MISH_U(v) exp(-fabs(v))
#define MISH_BELOW(v) (MISH_U(v) * (MISH_U(v) + K(2.0)) + K(2.0))
#define MISH_ABOVE(v) (K(2.0) * MISH_U(v) * (MISH_U(v) + K(1.0)) + K(1.0))
#define MISH_TANH(v)                                                                                         \
    SELECT((v) < K(0.0), MISH_U(v) * (MISH_U(v) + K(2.0)) / MISH_BELOW(v), (K(1.0) + K(2.0) * MISH_U(v)) / MISH_ABOVE(v))
#define MISH_ROOT(v) (K(2.0) * (K(1.0) + MISH_U(v)) * SELECT((v) < K(0.0), K(1.0) / MISH_BELOW(v), MISH_U(v) / MISH_ABOVE(v)))
#define MISH_SLOPE(v) (MISH_ROOT(v) * MISH_ROOT(v))

// The normal distribution: probability below v, and density at v (1/sqrt 2, 1/sqrt(2 pi)).
#define NORMAL_CDF(v) (K(0.5) * (K(1.0) + erf((v) * K(0.70710678118654752440))))
#define NORMAL_PDF(v) (K(0.39894228040143267794) * exp(K(-0.5) * (v) * (v)))

// The tanh form of gelu: Hendrycks and Gimpel 2016, arXiv:1606.08415, section 2; 2 sqrt(2/pi) and 0.044715. It is x times
// (1 + tanh(u)) / 2 = SIGMOID(2u), and 2u has the slope GELU_TANH_SLOPE.
#define GELU_TANH(v) SIGMOID(K(1.59576912160573071176) * ((v) + K(0.044715) * (v) * (v) * (v)))
#define GELU_TANH_SLOPE(v) (K(1.59576912160573071176) * (K(1.0) + K(3.0) * K(0.044715) * (v) * (v)))

// Focal loss (Lin et al. 2017, arXiv:1708.02002): cross entropy of a sigmoid, how wrong it is, 1 - p of what is right, and the weight of a
// target; `a` below 0: none. Not 0, as a power below 0 of it would be infinite.
#define FOCAL_BCE(x, t) ((K(1.0) - t) * x + SOFTPLUS(-(x)))
#define FOCAL_WRONG(x, t) (SIGMOID(x) * (K(1.0) - t) + SIGMOID(-(x)) * t + K(1e-30))
#define FOCAL_ALPHA(t, a) SELECT(a < K(0.0), K(1.0), a * t + (K(1.0) - a) * (K(1.0) - t))

// Bits of whole numbers, which the reference has as doubles.
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define BIT_AND(a, b) ((a) & (b))
#define BIT_OR(a, b) ((a) | (b))
#define BIT_XOR(a, b) ((a) ^ (b))
#else
#define FMOD(a, b) fmod(a, b)
#define BIT_AND(a, b) ((double)((int64_t)(a) & (int64_t)(b)))
#define BIT_OR(a, b) ((double)((int64_t)(a) | (int64_t)(b)))
#define BIT_XOR(a, b) ((double)((int64_t)(a) ^ (int64_t)(b)))
#endif
