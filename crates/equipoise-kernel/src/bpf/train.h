/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Inline measurement of K and A by trains of the connection's own segments (Kodama 2009, Sec. 2.2.1), simplified to what
 * runs in the kernel. What the text leaves open is ours:
 *
 * 1. Hold: the window is kept to what is under way until a burst's room is gathered, for one round trip at most.
 * 2. Burst: a third of the train leaves at once. From its first acknowledgement to its last one the narrowest link gave
 *    one segment after the other: K. The median over eight trains counts.
 * 3. Spaced: the others leave by TCP's own pacing, at a rate somewhat above the available bandwidth known so far.
 * 4. Judge: K (growth of the delay) from the first acknowledgement to the last ones is what came in beyond K:
 *    A = R - K g. Without growth, R was below what is available, and two such trains in a row raise A.
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

/* Fewest segments of a train, and of a window that has one; most segments. Ours. */
#define LEAST_TRAIN 8
#define LEAST_TRAIN_WINDOW 11
#define MOST_TRAIN 64
/* A train is two fifths of the window, and may be three quarters while that is no more than sixteen segments. Ours. */
#define SMALL_TRAIN 16
/* Segments of a burst. Ours: longer ones are more precise on a jittery path and need more room in the queue. */
#define LEAST_BURST 4
#define MOST_BURST 12
#define FIRST_BURST 8
/* The last sixth of a train tells the growth of the delay. Ours. */
#define TAIL_PART 6
/* A burst is one where its sending took less than a sixteenth of its arriving: others slip in between for no longer. Ours. */
#define BURST_CLOSE 16
/* The delay of a train that is slower than the available bandwidth grows by less than a thirty-second. Ours. */
#define CLEAR_PART 32
/* A train that came out with less than half of its rate tells nothing. Ours. */
#define PLANNED_PART 2
/* A result so far from the others may be a step: 1/6 of K. Ours. */
#define FAR_PART 6
/* How far a train is sent above what seems available: a tenth and a quarter of K in turn. Ours. */
#define ABOVE_PART(turn) ((turn) & 1 ? 4 : 10)
/* Round trips between trains once there is a result. Ours: a hold costs, and the path may change. */
#define PAUSE_ROUND_TRIPS 4

/* The first window goes out in one: its first segments are a burst already. */
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

/* A timeout discards all that was measured (Kodama 2009, Sec. 2.2.2). */
static __always_inline void measurement_forget(struct flow *flow)
{
	train_give_up(flow);
	flow->capacity = flow->available = flow->set_aside = 0;
	flow->gaps = flow->clear = 0;
	flow->noise.any = 0;
	flow->min_round_trip_us = 0;
}

/*
 * The median of the gaps that are kept; of an even number the upper one. Branches would cost the verifier every order of
 * them, so comparisons are the sign of a difference.
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
		/* Of equal ones any. */
		median = chosen ? gap : median;
	}
	return median;
}

/* K from the burst. */
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
	/* Stays where it is in the ring when it would overflow. */
	flow->gaps = flow->gaps == 0xFFFFFFF0 ? CAPACITIES : flow->gaps + 1;
	gap = median_gap(flow);
	if (gap)
		flow->capacity = least(1024000000000ULL / gap, LARGEST_RATE);
	if (flow->available > flow->capacity)
		flow->available = flow->capacity;
}

/* A result: A, and the noise of K - A for Eq. 15. */
static __always_inline void measured(struct flow *flow, u64 available)
{
	flow->available = least(available, flow->capacity);
	noise_push(&flow->noise, flow->capacity - flow->available);
	flow->trains_judged++;
}

/* The train was slower than what is available. */
static __always_inline void judge_clear(struct flow *flow, u64 rate)
{
	flow->set_aside = 0;
	flow->clear++;
	if (!flow->available) {
		/* A bound next to nothing is no measurement: slow start goes on, and the next train is faster. */
		if (rate * 2 >= flow->capacity)
			measured(flow, rate);
	} else if (rate <= flow->available) {
		/* Says nothing new. */
		flow->clear = 0;
	} else if (flow->clear > 1) {
		measured(flow, rate);
	}
}

/* The train met a queue that grew: one far from the others waits for the next one to agree. */
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
		/* Of the two the one nearer to what was known: either may be the worse for a stall. */
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
		/* Nothing, or held up on the way out: acknowledgements or segments did not come in time. */
		if (rate * PLANNED_PART < flow->planned_rate || rate == 0)
			return;
		if (growth * CLEAR_PART < flow->tail_sent_us)
			judge_clear(flow, least(rate, flow->capacity));
		else
			judge_queued(flow, train_available(flow->capacity, flow->tail_bytes, flow->segment_bytes,
							   flow->tail_sent_us, flow->tail_acked_us));
	}
}

/* An acknowledgement that may be of the train; `round_trip` of its last segment, not above zero where there is none. */
static __always_inline void train_on_ack(struct flow *flow, const struct tcp_sock *tp, u64 now, long round_trip)
{
	u32 acked = tp->snd_una - flow->start, all = flow->end - flow->start;
	u64 sent, since_sent, since_acked;

	if (flow->train < TRAIN_BURST || flow->state != TCP_CA_Open)
		return;
	if (round_trip > 0 && before(flow->start, tp->snd_una) && acked <= all) {
		sent = now - round_trip;
		if (flow->first_bytes == 0) {
			/* Beyond the burst it did not see what waited before the train. */
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

/* Segments of a train in a window of so many. */
static __always_inline u32 train_length(u32 window)
{
	u32 small = window * 3 / 4, length = window * 2 / 5;

	small = small > SMALL_TRAIN ? SMALL_TRAIN : small;
	length = length < small ? small : length;
	return length > MOST_TRAIN ? MOST_TRAIN : length;
}

/* A new train: how long, how fast, and how much room it takes to send it. */
static __always_inline void train_plan(struct flow *flow, const struct tcp_sock *tp, u32 window)
{
	u32 total = train_length(window), burst = total / 3, need;
	u64 bytes = tp->mss_cache, round_trip = (tp->srtt_us >> 3) | 1, rate, own;

	burst = burst < LEAST_BURST ? LEAST_BURST : burst > MOST_BURST ? MOST_BURST : burst;
	if (!flow->capacity)
		burst = total = total > FIRST_BURST ? FIRST_BURST : total;
	/* Q10 segments/s. No slower than the connection itself, no faster than what would fill the queue. */
	own = (u64)window * 1024000000 / round_trip;
	rate = flow->available ? flow->available + flow->capacity / ABOVE_PART(flow->trains) : flow->capacity;
	rate = rate < own + own / 16 ? own + own / 16 : rate;
	rate = least(rate, flow->capacity + flow->capacity / 16);
	/* The burst takes no time, the others take the more: the train as a whole has the rate. */
	flow->spacing_bytes_per_s = (rate * bytes >> 10) * (total - burst) / (total ? total : 1);
	/* While the spaced part is sent, acknowledgements give room at the connection's own rate. */
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

/* Moves the train on, given the connection's window in segments. */
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
	/* Everything came back and the train is not even sent: there was nothing to send. */
	if (flow->train >= TRAIN_BURST && tp->snd_una == tp->snd_nxt && before(flow->start, tp->snd_una))
		train_give_up(flow);
}

/* How much may be under way just now. */
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
