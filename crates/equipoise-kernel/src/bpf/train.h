/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Inline measurement of K (capacity) and A (available bandwidth) with trains of the connection's own segments (Kodama
 * 2009, Sec. 2.2.1), simplified for the kernel. The paper leaves details open, which are our choice:
 *
 * 1. Hold: the window is limited to the data in flight until there is room for a burst, for one round trip at most.
 * 2. Burst: a third of the train is sent at once. The narrowest link forwards it one segment after the other, so the
 *    times of its first and last acknowledgements show K. The median over eight trains is used.
 * 3. Spaced: the other segments are sent by TCP's own pacing, at a rate slightly above the A known so far.
 * 4. Evaluate: from the first to the last acknowledgements, the delay grows by g per second. Cross traffic and train
 *    together exceed K by K g, so A = R - K g. Without growth, the train's rate R was below A; two such results in a
 *    row raise A.
 */
#ifndef EQUIPOISE_TRAIN_H
#define EQUIPOISE_TRAIN_H

enum {
	TRAIN_REST,
	TRAIN_HOLD,
	TRAIN_BURST,
	TRAIN_SPACED,
	TRAIN_AWAITED,
};

/* Minimum segments of a train, minimum window for a train, maximum segments of a train. Our choice. */
#define LEAST_TRAIN 8
#define LEAST_TRAIN_WINDOW 11
#define MOST_TRAIN 64
/* A train has 2/5 of the window's segments, but up to 3/4 of them if this is at most 16 segments. Our choice. */
#define SMALL_TRAIN 16
/* Segments of a burst. Our choice: longer bursts are more precise with jitter, but need more room in the queue. */
#define LEAST_BURST 4
#define MOST_BURST 12
#define FIRST_BURST 8
/* The growth of the delay is taken from the last sixth of a train. Our choice. */
#define TAIL_PART 6
/* A burst counts if sending took less than 1/16 of the arrival time; then it has little cross traffic. Our choice. */
#define BURST_CLOSE 16
/* A train is below A if its delay grows by less than 1/32 of its sending time. Our choice. */
#define CLEAR_PART 32
/* A train that was sent at less than 1/2 of its planned rate has no result. Our choice. */
#define PLANNED_PART 2
/* A result that differs from the known A by more than 1/6 of K may be a step. Our choice. */
#define FAR_PART 6
/* Excess of a train's rate over the A known so far: alternately 1/10 and 1/4 of K. Our choice. */
#define ABOVE_PART(turn) ((turn) & 1 ? 4 : 10)
/* Round trips between trains after a result. Our choice: holding costs throughput, but the path may change. */
#define PAUSE_ROUND_TRIPS 4

/* The first window is sent at once, so its first segments are a burst. */
static __always_inline void train_begin_first(struct flow *flow, const struct tcp_sock *tp)
{
	flow->segment_bytes = tp->mss_cache;
	flow->start = tp->snd_nxt;
	flow->end = flow->burst_end = flow->start + FIRST_BURST * flow->segment_bytes;
	flow->train = TRAIN_AWAITED;
}

static __always_inline void train_give_up(struct flow *flow)
{
	flow->train = TRAIN_REST;
	flow->first_bytes = 0;
}

/* A timeout discards all measurements (Kodama 2009, Sec. 2.2.2). */
static __always_inline void measurement_forget(struct flow *flow)
{
	train_give_up(flow);
	flow->capacity = flow->available = flow->set_aside = 0;
	flow->gaps = flow->clear = 0;
	flow->noise.any = 0;
	flow->min_round_trip_us = 0;
}

/*
 * The median of the stored gaps; the upper of the two middle gaps if their number is even. Comparisons use the sign
 * of a difference, because with branches the verifier would have to check every order of the gaps.
 */
static __always_inline u64 median_gap(const struct flow *flow)
{
	u64 count = flow->gaps < CAPACITIES ? flow->gaps : CAPACITIES, median = 0;
	u32 i, j;

	for (i = 0; i < CAPACITIES; i++) {
		u64 gap = flow->gaps_ns[i], smaller = 0, no_larger = 0, chosen;

		for (j = 0; j < CAPACITIES; j++) {
			u64 there = (j - count) >> 63, other = flow->gaps_ns[j];

			smaller += there & ((other - gap) >> 63);
			no_larger += there & ((other - gap - 1) >> 63);
		}
		chosen = ((i - count) >> 63) & ((smaller - count / 2 - 1) >> 63) & ((count / 2 - no_larger) >> 63);
		/* Of equal gaps, any one may be chosen. */
		median = chosen ? gap : median;
	}
	return median;
}

/* Computes K from the burst. */
static __always_inline void judge_burst(struct flow *flow)
{
	u64 gap;

	if (flow->burst_bytes < 2 * flow->segment_bytes || flow->burst_acked_us == 0 ||
	    flow->burst_sent_us * BURST_CLOSE > flow->burst_acked_us || flow->burst_acked_us > LONGEST_PAUSE_US)
		return;
	gap = flow->burst_acked_us * 1000 * flow->segment_bytes / flow->burst_bytes;
	if (gap == 0 || gap > 0xFFFFFFFF)
		return;
	flow->gaps_ns[flow->gaps & (CAPACITIES - 1)] = gap;
	/* Before the counter would overflow, reset it to a value with the same ring position. */
	flow->gaps = flow->gaps == 0xFFFFFFF0 ? CAPACITIES : flow->gaps + 1;
	gap = median_gap(flow);
	if (gap)
		flow->capacity = least(1024000000000ULL / gap, LARGEST_RATE);
	if (flow->available > flow->capacity)
		flow->available = flow->capacity;
}

/* Stores a result for A, and adds K - A to the noise for Eq. 15. */
static __always_inline void measured(struct flow *flow, u64 available)
{
	flow->available = least(available, flow->capacity);
	noise_push(&flow->noise, flow->capacity - flow->available);
	flow->trains_judged++;
}

/* Evaluates a train that was slower than A. */
static __always_inline void judge_clear(struct flow *flow, u64 rate)
{
	flow->set_aside = 0;
	flow->clear++;
	if (!flow->available) {
		/* Below K/2, the rate is no measurement of A: slow start continues, and the next train is faster. */
		if (rate * 2 >= flow->capacity)
			measured(flow, rate);
	} else if (rate <= flow->available) {
		/* This is no new result: A is already known to be higher. */
		flow->clear = 0;
	} else if (flow->clear > 1) {
		measured(flow, rate);
	}
}

/* Evaluates a train that met a growing queue. A result that differs much from A needs confirmation by the next one. */
static __always_inline void judge_queued(struct flow *flow, u64 found)
{
	u64 known = flow->available, aside = flow->set_aside;
	u64 far = flow->capacity / FAR_PART;

	flow->clear = 0;
	flow->set_aside = 0;
	if (!known)
		measured(flow, found);
	else if (apart(found, known) <= far)
		measured(flow, toward(known, found, 2));
	else if (aside && (aside > known) == (found > known))
		/* Of the two results, take the nearer one to the known A: a stall may have distorted either result. */
		measured(flow, apart(aside, known) < apart(found, known) ? aside : found);
	else
		flow->set_aside = found;
}

static __always_inline void train_judge(struct flow *flow)
{
	u64 rate, growth = 0;

	if (flow->capacity && flow->end != flow->burst_end && flow->tail_bytes) {
		rate = train_rate(flow->tail_bytes, flow->segment_bytes, flow->tail_sent_us);
		if (flow->tail_acked_us > flow->tail_sent_us)
			growth = flow->tail_acked_us - flow->tail_sent_us;
		/* There is no result, or the train was slower than planned because acknowledgements or segments came late. */
		if (rate * PLANNED_PART < flow->planned_rate || rate == 0)
			return;
		if (growth * CLEAR_PART < flow->tail_sent_us)
			judge_clear(flow, least(rate, flow->capacity));
		else
			judge_queued(flow, train_available(flow->capacity, flow->tail_bytes, flow->segment_bytes,
							   flow->tail_sent_us, flow->tail_acked_us));
	}
}

/* Handles an acknowledgement, possibly of the train; `round_trip` is of its last segment, and <= 0 if unknown. */
static __always_inline void train_on_ack(struct flow *flow, const struct tcp_sock *tp, u64 now, long round_trip)
{
	u32 acked = tp->snd_una - flow->start, all = flow->end - flow->start;
	u64 sent, since_sent, since_acked;

	if (flow->train < TRAIN_BURST || flow->state != TCP_CA_Open)
		return;
	if (round_trip > 0 && before(flow->start, tp->snd_una) && acked <= all) {
		sent = now - round_trip;
		if (flow->first_bytes == 0) {
			/* The first acknowledgement must cover a segment of the burst; later ones do not show the delay before the train. */
			if (before(flow->burst_end, tp->snd_una)) {
				train_give_up(flow);
				return;
			}
			flow->first_sent_us = sent;
			flow->first_acked_us = now;
			flow->first_bytes = acked;
		} else {
			since_sent = sent > flow->first_sent_us ? sent - flow->first_sent_us : 0;
			since_acked = now - flow->first_acked_us;
			if (!before(flow->burst_end, tp->snd_una)) {
				flow->burst_bytes = acked - flow->first_bytes;
				flow->burst_sent_us = since_sent;
				flow->burst_acked_us = since_acked;
			} else if (acked > all - all / TAIL_PART) {
				flow->tail_bytes += acked - flow->first_bytes;
				flow->tail_sent_us += since_sent;
				flow->tail_acked_us += since_acked;
			}
		}
	}
	if (flow->train == TRAIN_AWAITED && !before(tp->snd_una, flow->end)) {
		flow->trains++;
		judge_burst(flow);
		train_judge(flow);
		train_give_up(flow);
		flow->hold_until = tp->snd_nxt;
		flow->not_before_us = now;
		if (flow->trains_judged && !flow->set_aside)
			flow->not_before_us += PAUSE_ROUND_TRIPS * (tp->srtt_us >> 3);
	}
}

/* Number of segments of a train for a window of `window` segments. */
static __always_inline u32 train_length(u32 window)
{
	u32 small = window * 3 / 4, length = window * 2 / 5;

	small = small > SMALL_TRAIN ? SMALL_TRAIN : small;
	length = length < small ? small : length;
	return length > MOST_TRAIN ? MOST_TRAIN : length;
}

/* Plans a new train: its length, its rate, and the room in the window that it needs. */
static __always_inline void train_plan(struct flow *flow, const struct tcp_sock *tp, u32 window)
{
	u32 total = train_length(window), burst = total / 3, need;
	u64 bytes = tp->mss_cache, round_trip = (tp->srtt_us >> 3) | 1, rate, own;

	burst = burst < LEAST_BURST ? LEAST_BURST : burst > MOST_BURST ? MOST_BURST : burst;
	if (!flow->capacity)
		burst = total = total > FIRST_BURST ? FIRST_BURST : total;
	/* In Q10 segments/s. The rate is above the connection's own, and not so high that it fills the queue. */
	own = (u64)window * 1024000000 / round_trip;
	rate = flow->available ? flow->available + flow->capacity / ABOVE_PART(flow->trains) : flow->capacity;
	rate = rate < own + own / 16 ? own + own / 16 : rate;
	rate = least(rate, flow->capacity + flow->capacity / 16);
	/* The burst is sent at once, so the other segments are sent more slowly: the whole train then has this rate. */
	flow->spacing_bytes_per_s = (rate * bytes >> 10) * (total - burst) / (total ? total : 1);
	/* While the spaced segments are sent, acknowledgements free the window at the connection's own rate. */
	need = burst;
	if (rate > own && rate)
		need += (total - burst) * (rate - own) / rate;
	flow->need = need > window * 3 / 4 ? window * 3 / 4 : need;
	flow->planned_rate = rate;
	flow->segment_bytes = bytes;
	flow->burst_end = burst;
	flow->end = total;
}

static __always_inline void train_start(struct flow *flow, const struct tcp_sock *tp)
{
	flow->start = tp->snd_nxt;
	flow->burst_end = flow->start + flow->burst_end * flow->segment_bytes;
	flow->end = flow->start + flow->end * flow->segment_bytes;
	flow->first_bytes = flow->burst_bytes = 0;
	flow->burst_sent_us = flow->burst_acked_us = 0;
	flow->tail_bytes = flow->tail_sent_us = flow->tail_acked_us = 0;
	flow->train = TRAIN_BURST;
}

/* Advances the train, given the connection's window in segments. */
static __always_inline void train_schedule(struct flow *flow, const struct tcp_sock *tp, u64 now, u32 window, int limited)
{
	u32 under_way = in_flight(tp);

	if (flow->state != TCP_CA_Open || (!limited && flow->train != TRAIN_AWAITED)) {
		train_give_up(flow);
		return;
	}
	if (flow->train == TRAIN_REST && window >= LEAST_TRAIN_WINDOW && now >= flow->not_before_us &&
	    !before(tp->snd_una, flow->hold_until)) {
		train_plan(flow, tp, window);
		flow->hold_until = tp->snd_nxt;
		flow->train = TRAIN_HOLD;
	}
	if (flow->train == TRAIN_HOLD) {
		if (under_way + flow->need <= window)
			train_start(flow, tp);
		else if (!before(tp->snd_una, flow->hold_until))
			train_give_up(flow);
	} else if (flow->train == TRAIN_BURST && !before(tp->snd_nxt, flow->burst_end)) {
		flow->train = flow->end == flow->burst_end ? TRAIN_AWAITED : TRAIN_SPACED;
	}
	if (flow->train == TRAIN_SPACED && !before(tp->snd_nxt, flow->end))
		flow->train = TRAIN_AWAITED;
	/* All data is acknowledged, but the train is not complete, because the application had no more data. */
	if (flow->train >= TRAIN_BURST && tp->snd_una == tp->snd_nxt && before(flow->start, tp->snd_una))
		train_give_up(flow);
}

/* The number of segments that may be in flight now. */
static __always_inline u32 train_window(const struct flow *flow, const struct tcp_sock *tp, u32 window)
{
	u32 under_way = in_flight(tp), most = window;

	if (flow->train == TRAIN_HOLD)
		most = under_way;
	else if (flow->train == TRAIN_BURST && before(tp->snd_nxt, flow->burst_end))
		most = under_way + (flow->burst_end - tp->snd_nxt) / (flow->segment_bytes | 1) + 1;
	most = most > window ? window : most;
	return most < LEAST_WINDOW ? LEAST_WINDOW : most;
}

static __always_inline unsigned long train_pace(const struct flow *flow, unsigned long pace)
{
	if (flow->train == TRAIN_BURST)
		return UNLIMITED;
	if (flow->train == TRAIN_SPACED && flow->spacing_bytes_per_s)
		return flow->spacing_bytes_per_s;
	return pace;
}

#endif
