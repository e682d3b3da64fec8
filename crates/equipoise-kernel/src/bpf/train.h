/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Inline measurement of K (capacity) and A (available bandwidth) with trains of the connection's own segments (Kodama
 * 2009, Sec. 2.2.1), simplified for the kernel. The details that the paper leaves open are our choice. A train has four
 * phases:
 *
 * 1. Hold: no new segment is sent until the window has space for a burst. This phase lasts at most one round trip.
 * 2. Burst: a third of the train is sent without pacing. The bottleneck link forwards the burst one segment after the
 *    other, so the times of the burst's first and last acknowledgements show K. The median K of eight trains is used.
 * 3. Spaced: the other segments are sent with TCP's own pacing, at a rate slightly above the present value of A.
 * 4. Evaluate: from the first acknowledgement to the acknowledgements of the last sixth of the train, the delay grows
 *    by g seconds per second. Cross traffic and the train, which has rate R, together exceed K by K g. Therefore
 *    A = R - K g. If the delay did not grow, R was below A; two results of this kind in a row raise A.
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

/* In segments: minimum length of a train, minimum window for a train, maximum length of a train. Our choice. */
#define LEAST_TRAIN 8
#define LEAST_TRAIN_WINDOW 11
#define MOST_TRAIN 64
/*
 * The length of a train is 2/5 of the window. If this is less than 16 segments, the length is 16 segments, but at most
 * 3/4 of the window. Our choice.
 */
#define SMALL_TRAIN 16
/*
 * Length of a burst, in segments. Our choice. If there is jitter, a longer burst gives a more precise result, but a
 * longer burst needs more queue space.
 */
#define LEAST_BURST 4
#define MOST_BURST 12
#define FIRST_BURST 8
/* The growth of the delay is measured on the last sixth of a train. Our choice. */
#define TAIL_PART 6
/*
 * The time from the first to the last segment of a burst must be at most 1/16 of the time from the first to the last
 * acknowledgement of the burst. Otherwise the burst does not measure the capacity, because much cross traffic can get
 * between segments that are sent slowly. Our choice.
 */
#define BURST_CLOSE 16
/*
 * A train's rate was below the available bandwidth (A) if the delay grew by less than 1/32 of the train's sending time.
 * Our choice.
 */
#define CLEAR_PART 32
/* A train that was sent at less than 1/2 of its planned rate has no result. Our choice. */
#define PLANNED_PART 2
/*
 * If a result differs from the present available bandwidth (A) by more than 1/6 of the capacity (K), the next train
 * must confirm the result. Our choice.
 */
#define FAR_PART 6
/*
 * A train is planned to be faster than the present available bandwidth (A), alternately by 1/10 and by 1/4 of the
 * capacity (K). Our choice.
 */
#define ABOVE_PART(turn) ((turn) & 1 ? 4 : 10)
/*
 * Number of round trips between a train with a result and the next train. Our choice: frequent trains reduce the
 * throughput, because before a train no new segment is sent for up to one round trip. With rare trains, a change of the
 * path is found late.
 */
#define PAUSE_ROUND_TRIPS 4

/* The first window of a connection is sent without pacing, so its first segments are used as a burst. */
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
 * Returns the median of the stored gaps, in ns. If their number is even, returns the larger of the two middle gaps.
 * Gaps are compared by the sign of their difference, because with branches the BPF verifier would have to check every
 * order of the gaps.
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
		/* Several gaps may be chosen, but they are all equal. */
		median = chosen ? gap : median;
	}
	return median;
}

/* Adds the result of the train's burst to the stored gaps, and computes the capacity K from the median of the gaps. */
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
	/* Reset the counter before it overflows. 0xFFFFFFF0 and CAPACITIES select the same element of `gaps_ns`. */
	flow->gaps = flow->gaps == 0xFFFFFFF0 ? CAPACITIES : flow->gaps + 1;
	gap = median_gap(flow);
	if (gap)
		flow->capacity = least(1024000000000ULL / gap, LARGEST_RATE);
	if (flow->available > flow->capacity)
		flow->available = flow->capacity;
}

/*
 * Accepts a new value of A, the available bandwidth. Updates the noise of Eq. 15 with the sample K - A, where K is the
 * capacity.
 */
static __always_inline void measured(struct flow *flow, u64 available)
{
	flow->available = least(available, flow->capacity);
	noise_push(&flow->noise, flow->capacity - flow->available);
	flow->trains_judged++;
}

/* Evaluates a train whose rate was below A. */
static __always_inline void judge_clear(struct flow *flow, u64 rate)
{
	flow->set_aside = 0;
	flow->clear++;
	if (!flow->available) {
		/* The first value of A is accepted only if it is at least K/2. Otherwise, slow start continues. */
		if (rate * 2 >= flow->capacity)
			measured(flow, rate);
	} else if (rate <= flow->available) {
		/* The present A is at least `rate`, so the train shows nothing new. */
		flow->clear = 0;
	} else if (flow->clear > 1) {
		measured(flow, rate);
	}
}

/* Evaluates a train during which the queue grew. If the result differs much from A, the next train must confirm it. */
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
		/*
		 * The last result and this one are both above A, or both below A (the available bandwidth). Accept the
		 * result that is closer to A, because a stall may have distorted the other result.
		 */
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
		/* Ignore a train without a rate, or a train that was too slow because acknowledgements or segments were late. */
		if (rate * PLANNED_PART < flow->planned_rate || rate == 0)
			return;
		if (growth * CLEAR_PART < flow->tail_sent_us)
			judge_clear(flow, least(rate, flow->capacity));
		else
			judge_queued(flow, train_available(flow->capacity, flow->tail_bytes, flow->segment_bytes,
							   flow->tail_sent_us, flow->tail_acked_us));
	}
}

/*
 * Processes an acknowledgement. `round_trip` is the round-trip time of the last acknowledged segment, in us; <= 0 if
 * unknown.
 */
static __always_inline void train_on_ack(struct flow *flow, const struct tcp_sock *tp, u64 now, long round_trip)
{
	u32 acked = tp->snd_una - flow->start, all = flow->end - flow->start;
	u64 sent, since_sent, since_acked;

	if (flow->train < TRAIN_BURST || flow->state != TCP_CA_Open)
		return;
	if (round_trip > 0 && before(flow->start, tp->snd_una) && acked <= all) {
		sent = now - round_trip;
		if (flow->first_bytes == 0) {
			/*
			 * The first acknowledgement of the train must be for a segment of the burst. Later segments do
			 * not show what the delay was before the train.
			 */
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

/* Returns the length of a train for a window of `window` segments, in segments. */
static __always_inline u32 train_length(u32 window)
{
	u32 small = window * 3 / 4, length = window * 2 / 5;

	small = small > SMALL_TRAIN ? SMALL_TRAIN : small;
	length = length < small ? small : length;
	return length > MOST_TRAIN ? MOST_TRAIN : length;
}

/* Plans a new train: its length, its rate, and the free space in the window that it needs. */
static __always_inline void train_plan(struct flow *flow, const struct tcp_sock *tp, u32 window)
{
	u32 total = train_length(window), burst = total / 3, need;
	u64 bytes = tp->mss_cache, round_trip = (tp->srtt_us >> 3) | 1, rate, own;

	burst = burst < LEAST_BURST ? LEAST_BURST : burst > MOST_BURST ? MOST_BURST : burst;
	if (!flow->capacity)
		burst = total = total > FIRST_BURST ? FIRST_BURST : total;
	/*
	 * Rates are in Q10 segments/s. The train's rate is above the connection's own rate (`own`), but at most 1/16 above
	 * the capacity, so that the train does not fill the queue.
	 */
	own = (u64)window * 1024000000 / round_trip;
	rate = flow->available ? flow->available + flow->capacity / ABOVE_PART(flow->trains) : flow->capacity;
	rate = rate < own + own / 16 ? own + own / 16 : rate;
	rate = least(rate, flow->capacity + flow->capacity / 16);
	/*
	 * The burst is sent without pacing. The other segments are sent more slowly than `rate`, so that the whole train
	 * has this rate.
	 */
	flow->spacing_bytes_per_s = (rate * bytes >> 10) * (total - burst) / (total ? total : 1);
	/* While the spaced segments are sent, acknowledgements free space in the window at the connection's own rate. */
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

/*
 * Starts, continues or gives up a train. `window` is the window in segments that the connection has without a train;
 * `limited` says whether the window limits the sender.
 */
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
	/* Give up if all data is acknowledged before the train is complete: the application has no more data. */
	if (flow->train >= TRAIN_BURST && tp->snd_una == tp->snd_nxt && before(flow->start, tp->snd_una))
		train_give_up(flow);
}

/* Returns the number of segments that may be in flight now. `window` is the connection's own window. */
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
