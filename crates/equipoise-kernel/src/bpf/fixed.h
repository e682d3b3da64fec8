/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The control law of TCP Symbiosis in integers (Kodama 2009, Eq. 10, 15, 18). A test checks that the results are
 * exactly those of the Rust module `equipoise::control::window::symbiosis::fixed`. The Rust module documents the number
 * formats, the maximum values and the differences from floating point.
 *
 * The file also compiles outside of the kernel, if `u64` and `u32` are defined. It uses no 128-bit integers and no
 * signed division, and every divisor is above zero.
 */
#ifndef EQUIPOISE_FIXED_H
#define EQUIPOISE_FIXED_H

#define WINDOW_ONE (1ULL << 20)
#define LARGEST_WINDOW (1ULL << 40)
#define LARGEST_RATE (1ULL << 35)
#define LONGEST_ROUND_TRIP_US (1ULL << 24)
#define PARAMETER_ONE (1ULL << 20)
#define LARGEST_PARAMETER (100ULL << 20)
#define LEAST_STEP_US 500

#define FIXED_ONE (1ULL << 30)
#define FIXED_LOW ((1ULL << 20) - 1)
#define FIXED_LN_2 744261118ULL
#define FIXED_LARGEST_EXPONENT (31ULL << 30)
#define FIXED_LONGEST_STEP_US 1000000ULL
#define FIXED_MEAN_SUM (6 * 0xFFFFULL)

/* Parameters of the control law, in Q20. */
struct law {
	u64 gamma;
	u64 epsilon_per_s;
};

/* K (capacity) and A (available bandwidth) in Q10 segments/s, tau (minimum round-trip time) in us. */
struct path {
	u64 capacity;
	u64 available;
	u64 min_round_trip_us;
};

/*
 * Mean and mean deviation of K - A (capacity minus available bandwidth), in Q10 segments/s. `any` is 0 before the first
 * sample.
 */
struct noise {
	u64 mean;
	u64 deviation;
	u64 any;
};

static inline __attribute__((always_inline)) u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline __attribute__((always_inline)) u64 apart(u64 a, u64 b)
{
	return a < b ? b - a : a - b;
}

/* Limits the values to their valid ranges. Returns 0 if the capacity or the round-trip time is 0, otherwise 1. */
static inline __attribute__((always_inline)) int path_checked(struct path *path)
{
	path->capacity = least(path->capacity, LARGEST_RATE);
	path->available = least(path->available, path->capacity);
	path->min_round_trip_us = least(path->min_round_trip_us, LONGEST_ROUND_TRIP_US);
	return path->capacity > 0 && path->min_round_trip_us > 0;
}

static inline __attribute__((always_inline)) u64 law_gamma(const struct law *law)
{
	return least(law->gamma, PARAMETER_ONE - 1);
}

/*
 * The window to which the law converges, in Q20 segments: tau {K - gamma (K - A)}, with the minimum round-trip time
 * tau, the capacity K and the available bandwidth A. `path` must have passed path_checked().
 */
static inline __attribute__((always_inline)) u64 law_converged(const struct law *law, const struct path *path)
{
	u64 others = (path->capacity - path->available) * path->min_round_trip_us;
	u64 gamma = law_gamma(law);
	u64 heeded = (others >> 20) * gamma + (((others & FIXED_LOW) * gamma) >> 20);
	u64 converged = (path->capacity * path->min_round_trip_us - heeded) * 16 / 15625;

	return converged < 1 ? 1 : least(converged, LARGEST_WINDOW);
}

/* Returns value * share, rounded to the nearest integer. `value` is at most 2^40; `share` is in Q30 and at most 1. */
static inline __attribute__((always_inline)) u64 scaled(u64 value, u64 share)
{
	u64 high = (value >> 20) * share, low = (value & FIXED_LOW) * share;

	return (high + (low >> 20) + (1 << 9)) >> 10;
}

/*
 * Returns value * moved / whole, rounded down; 0 if `whole` is 0. Each argument is at most 2^41, and `moved` is at most
 * `whole`.
 */
static inline __attribute__((always_inline)) u64 part(u64 value, u64 moved, u64 whole)
{
	u64 high = moved * (value >> 20);

	if (whole == 0)
		return 0;
	return ((high / whole) << 20) + (((high % whole) << 20) + moved * (value & FIXED_LOW)) / whole;
}

/* Returns exp(-x) from the series 1 - x (1 - x/2 (1 - x/3 (1 - ...))). x and the result are in Q30; x is below ln 2. */
static inline __attribute__((always_inline)) u64 decay_series(u64 x)
{
	u64 sum = FIXED_ONE;

#define FIXED_TERM(inverse) sum = FIXED_ONE - ((((x * sum) >> 30) * (inverse)) >> 30)
	FIXED_TERM(97612893ULL);
	FIXED_TERM(107374182ULL);
	FIXED_TERM(119304647ULL);
	FIXED_TERM(134217728ULL);
	FIXED_TERM(153391689ULL);
	FIXED_TERM(178956971ULL);
	FIXED_TERM(214748365ULL);
	FIXED_TERM(268435456ULL);
	FIXED_TERM(357913941ULL);
	FIXED_TERM(536870912ULL);
#undef FIXED_TERM
	return FIXED_ONE - ((x * sum) >> 30);
}

/*
 * Eq. 10: returns the window that `window` becomes after `elapsed_us`. Windows are in Q20 segments. Returns 0 if the
 * path is invalid or `window` is 0.
 */
static inline __attribute__((always_inline)) u64 law_window(const struct law *law, struct path path, u64 window,
							    u32 elapsed_us)
{
	u64 epsilon = least(law->epsilon_per_s, LARGEST_PARAMETER);
	u64 converged, growth, exponent, remains = 0, halvings = 0, moved, whole;

	if (!path_checked(&path) || window == 0)
		return 0;
	window = least(window, LARGEST_WINDOW);
	converged = law_converged(law, &path);
	growth = epsilon - ((epsilon * law_gamma(law)) >> 20) * (path.capacity - path.available) / path.capacity;
	exponent = growth * elapsed_us * 16 / 15625;
	if (exponent < FIXED_LARGEST_EXPONENT) {
		halvings = exponent / FIXED_LN_2;
		remains = decay_series(exponent % FIXED_LN_2);
	}
	moved = scaled(window, FIXED_ONE - (remains >> halvings));
	whole = (scaled(converged, remains) >> halvings) + moved;
	if (converged >= window)
		return window + part(converged - window, moved, whole);
	return window - part(window - converged, moved, whole);
}

/* Moves `value` towards `to` by 1 / 2^shift of their difference, rounded to the nearest integer. */
static inline __attribute__((always_inline)) u64 toward(u64 value, u64 to, u32 shift)
{
	u64 way = (apart(value, to) + (1ULL << (shift - 1))) >> shift;

	return to >= value ? value + way : value - way;
}

/* Eq. 15: updates the mean and the mean deviation with a sample of K - A, in Q10 segments/s. */
static inline __attribute__((always_inline)) void noise_push(struct noise *noise, u64 sample)
{
	u64 mean, deviation;

	sample = least(sample, LARGEST_RATE);
	mean = noise->any ? noise->mean : sample;
	deviation = noise->any ? noise->deviation : 0;
	noise->deviation = toward(deviation, apart(mean, sample), 2);
	noise->mean = toward(mean, sample, 3);
	noise->any = 1;
}

/* Eq. 15: returns gamma in Q20, lowered according to the mean deviation of K - A. */
static inline __attribute__((always_inline)) u64 noise_gamma(const struct noise *noise, u64 gamma, u64 weight)
{
	gamma = least(gamma, PARAMETER_ONE - 1);
	if (!noise->any || noise->mean == 0)
		return gamma;
	return gamma * noise->mean /
	       (noise->mean + ((least(weight, LARGEST_PARAMETER) * noise->deviation) >> 20));
}

/* Returns the square root of a number up to 2^40, rounded down. */
static inline __attribute__((always_inline)) u64 square_root(u64 rest)
{
	u64 root = 0, bit = 1ULL << 40, take;
	int i;

	for (i = 0; i < 21; i++) {
		/* Computes 1 or 0 without a branch, because with branches the BPF verifier would follow 2^21 paths. */
		take = 1 - ((rest - root - bit) >> 63);
		rest -= take * (root + bit);
		root = (root >> 1) + take * bit;
		bit >>= 2;
	}
	return root;
}

/*
 * Eq. 18: returns w + m w dB. Here dB is a step of a Brownian motion, not decibels. The step dB is computed from `sum`,
 * the sum of twelve random numbers of 16 bits.
 */
static inline __attribute__((always_inline)) u64 oscillated(u64 window, u64 strength, u64 elapsed_us, u64 sum)
{
	u64 deviation, share, step;

	window = least(window, LARGEST_WINDOW);
	deviation = square_root(least(elapsed_us, FIXED_LONGEST_STEP_US) << 20) * 128 / 125;
	share = (((least(strength, PARAMETER_ONE) * deviation) >> 20) * apart(sum, FIXED_MEAN_SUM)) >> 16;
	step = (window * least(share, PARAMETER_ONE / 2)) >> 20;
	return sum >= FIXED_MEAN_SUM ? least(window + step, LARGEST_WINDOW) : window - step;
}

/*
 * Returns A, the available bandwidth, from a train of segments, in Q10 segments/s. `capacity` is K, in the same unit.
 * Each acknowledgement of the last segments of the train is compared with the first acknowledgement of the train.
 * `bytes`, `sent_us` and `acked_us` are the sums of the differences in acknowledged bytes, in sending time and in time
 * of the acknowledgement. Times are in us. The model is a fluid link that is never idle and forwards at rate K. It
 * receives the train and the cross traffic, whose rate is K - A. Therefore
 * A = (segments - K (acknowledgement time - sending time)) / (sending time). A negative time difference counts as zero.
 * The result is at most K and at least K/100; it is 0 if the sums are not usable.
 */
static inline __attribute__((always_inline)) u64 train_available(u64 capacity, u64 bytes, u64 segment_bytes,
								 u64 sent_us, u64 acked_us)
{
	u64 came, queued = 0, found;

	if (segment_bytes == 0 || sent_us == 0 || bytes >= 1ULL << 32 || (sent_us | acked_us) >= 1ULL << 28)
		return 0;
	capacity = least(capacity, LARGEST_RATE);
	/* `came` is in Q10 segments, multiplied by 10^6 because times are in us. */
	came = bytes * 1024 / segment_bytes * 1000000;
	if (acked_us > sent_us)
		queued = capacity * (acked_us - sent_us);
	found = came > queued ? (came - queued) / sent_us : 0;
	found = found < capacity / 100 ? capacity / 100 : found;
	return least(found, capacity);
}

/* Returns the rate at which a train was sent, in Q10 segments/s. The arguments are those of train_available(). */
static inline __attribute__((always_inline)) u64 train_rate(u64 bytes, u64 segment_bytes, u64 sent_us)
{
	if (segment_bytes == 0 || sent_us == 0 || bytes >= 1ULL << 32)
		return 0;
	return bytes * 1024 / segment_bytes * 1000000 / sent_us;
}

#endif
