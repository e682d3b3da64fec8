// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * TCP Symbiosis as a congestion control of the Linux kernel (Kodama 2009).
 *
 * The window follows Reno until K (capacity) and A (available bandwidth) are measured, and then Eq. 10. A loss halves
 * the window, and a timeout discards the measurements. The arithmetic of the control law is in fixed.h, and the
 * measurement is in train.h.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fixed.h"
#include "flow.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} symb_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct parameters);
} symb_parameters SEC(".maps");

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

/* Pacing rate without a limit, which switches pacing off. */
#define UNLIMITED (~0UL)
/* Minimum window, in segments. Our choice: a single segment would wait for the receiver's delayed acknowledgement. */
#define LEAST_WINDOW 2
/*
 * Maximum time for one step of the control law, in us. If more time has passed since the last step, the window stays as
 * it is. The value is TCP's minimum retransmission timeout (RFC 6298, Sec. 2.4).
 */
#define LONGEST_PAUSE_US 1000000
/* Minimum slow-start threshold, in segments (RFC 5681, Eq. 4). */
#define LEAST_THRESHOLD 2
/*
 * The pacing rate in tenths of window / round-trip time. In slow start the factor is 2, as in Linux's own congestion
 * controls. Otherwise it is 1.2, so that the window limits the rate, and pacing does not.
 */
#define PACE_SLOW_START 20
#define PACE_ELSE 12

static __always_inline struct tcp_sock *tcp(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&symb_flows, sk, 0, 0);
}

static __always_inline int before(u32 a, u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
}

#include "train.h"

/* Restores the connection's own window, if a train has made the kernel use a smaller window. */
static __always_inline void take_back(struct flow *flow, struct tcp_sock *tp)
{
	if (flow->lent)
		tp->snd_cwnd = flow->lent;
	flow->lent = 0;
}

SEC("struct_ops")
void BPF_PROG(symbiosis_init, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&symb_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = UNLIMITED;
	if (!flow)
		return;
	/* The state may be old, because a socket may switch to another congestion control and back. */
	__builtin_memset(flow, 0, sizeof(*flow));
	train_begin_first(flow, tcp(sk));
}

SEC("struct_ops")
u32 BPF_PROG(symbiosis_ssthresh, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	u32 threshold = tcp(sk)->packets_out / 2;

	if (flow) {
		take_back(flow, tcp(sk));
		flow->undo_window = tcp(sk)->snd_cwnd;
	}
	return threshold < LEAST_THRESHOLD ? LEAST_THRESHOLD : threshold;
}

SEC("struct_ops")
u32 BPF_PROG(symbiosis_undo_cwnd, struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	u32 window = tcp(sk)->snd_cwnd;

	if (!flow)
		return window;
	flow->undone = 1;
	return flow->undo_window > window ? flow->undo_window : window;
}

/*
 * Minimum number of segments per TSO packet. The kernel's default is 2 segments, which would make the spacing of trains
 * coarse.
 */
SEC("struct_ops")
u32 BPF_PROG(symbiosis_min_tso_segs, struct sock *sk)
{
	return 1;
}

SEC("struct_ops")
void BPF_PROG(symbiosis_set_state, struct sock *sk, u8 state)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp(sk);

	if (!flow)
		return;
	if (state == TCP_CA_Loss) {
		flow->timeouts++;
		measurement_forget(flow);
		flow->window = 0;
	}
	if (state == TCP_CA_Recovery || state == TCP_CA_CWR) {
		flow->losses += state == TCP_CA_Recovery;
		flow->retransmit_first = 1;
		flow->undone = 0;
		train_give_up(flow);
	}
	/* After recovery or CWR the window is the slow-start threshold, unless the kernel undid the reduction. */
	if ((flow->state == TCP_CA_Recovery || flow->state == TCP_CA_CWR) && state <= TCP_CA_Disorder) {
		u32 window = tp->snd_ssthresh;

		/*
		 * Without this line, the compiler merges two loads from different kinds of memory. The BPF verifier
		 * rejects this.
		 */
		barrier_var(window);
		if (flow->undone)
			window = flow->undo_window;
		tp->snd_cwnd = window < LEAST_WINDOW ? LEAST_WINDOW : window;
		if (flow->window)
			flow->window = (u64)tp->snd_cwnd << 20;
	}
	flow->last_step_us = 0;
	flow->state = state;
}

/* In recovery, one segment is sent per segment that arrived. The window is at most the slow-start threshold. */
static __always_inline void recover(struct flow *flow, struct tcp_sock *tp, u32 acked)
{
	u32 under_way = in_flight(tp), window = under_way + acked;

	if (window > tp->snd_ssthresh)
		window = tp->snd_ssthresh;
	/* Retransmit the first lost segment regardless of the data in flight (RFC 5681, Sec. 3.2). */
	if (flow->retransmit_first && window <= under_way)
		window = under_way + 1;
	flow->retransmit_first = 0;
	tp->snd_cwnd = window < LEAST_WINDOW ? LEAST_WINDOW : window;
}

/* Applies Eq. 10, 15 and 18 for the time since the last step. `limited` says whether the window limits the sender. */
static __always_inline void step(struct flow *flow, const struct parameters *set, u64 now, u64 round_trip,
				 int limited)
{
	struct path path = { flow->capacity, flow->available, flow->min_round_trip_us };
	struct law law = { noise_gamma(&flow->noise, set->gamma, set->noise_weight), set->epsilon_per_s };
	u64 elapsed = now - flow->last_step_us, next;

	flow->gamma = law.gamma;
	if (flow->last_step_us == 0 || elapsed > LONGEST_PAUSE_US) {
		flow->last_step_us = now;
		return;
	}
	if (elapsed < LEAST_STEP_US)
		return;
	flow->last_step_us = now;
	next = law_window(&law, path, flow->window, elapsed);
	if (next == 0 || (!limited && next > flow->window))
		return;
	if (limited && set->oscillation) {
		u64 sum = 0;
		int i;

		for (i = 0; i < 6; i++) {
			u32 bits = bpf_get_prandom_u32();

			sum += (bits & 0xFFFF) + (bits >> 16);
		}
		next = oscillated(next, set->oscillation, elapsed, sum);
	}
	/*
	 * A small window has no space for a train, so the available bandwidth A is not measured again. Therefore use
	 * Reno's growth if it is faster than Eq. 10, but at most up to the window to which Eq. 10 converges.
	 */
	if (limited && next > flow->window && flow->window < LEAST_TRAIN_WINDOW * WINDOW_ONE && path_checked(&path)) {
		u64 reno = flow->window + elapsed * WINDOW_ONE / (round_trip | 1);

		reno = least(reno, law_converged(&law, &path));
		next = next < reno ? reno : next;
	}
	flow->window = next < LEAST_WINDOW * WINDOW_ONE ? LEAST_WINDOW * WINDOW_ONE : next;
}

/* Returns the connection's own window, in segments, even if a train makes the kernel use a smaller window. */
static __always_inline u32 window_of(const struct flow *flow, const struct tcp_sock *tp, u32 reno)
{
	u32 window = flow->window ? flow->window >> 20 : reno;

	return window > tp->snd_cwnd_clamp ? tp->snd_cwnd_clamp : window;
}

static __always_inline void control(struct sock *sk, const struct rate_sample *rs)
{
	struct flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp(sk);
	u32 zero = 0, acked = rs->acked_sacked, window;
	struct parameters *set = bpf_map_lookup_elem(&symb_parameters, &zero);
	u64 now = tp->tcp_mstamp, round_trip = tp->srtt_us >> 3, pace;
	long sample = rs->rtt_us;

	if (!flow || !set)
		return;
	take_back(flow, tp);
	if (sample > 0 && (flow->min_round_trip_us == 0 || (u64)sample < flow->min_round_trip_us))
		flow->min_round_trip_us = sample;
	if (flow->state == TCP_CA_Recovery || flow->state == TCP_CA_CWR) {
		recover(flow, tp, acked);
		sk->sk_pacing_rate = UNLIMITED;
		return;
	}
	train_on_ack(flow, tp, now, sample);
	if (!flow->window && flow->capacity && flow->available && flow->state != TCP_CA_Loss) {
		/* K and A have been measured, so the control law replaces Reno from now on. */
		window = tp->snd_cwnd;
		flow->window = (u64)window << 20;
		if (tp->snd_ssthresh > window)
			tp->snd_ssthresh = window < LEAST_THRESHOLD ? LEAST_THRESHOLD : window;
	}
	if (flow->window) {
		step(flow, set, now, round_trip, !rs->is_app_limited);
		window = window_of(flow, tp, 0);
	} else {
		if (acked && !rs->is_app_limited) {
			if (tp->snd_cwnd < tp->snd_ssthresh)
				acked = tcp_slow_start(tp, acked);
			if (acked)
				tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
		}
		window = window_of(flow, tp, tp->snd_cwnd);
	}
	if (window < 1)
		window = 1;
	pace = round_trip ? (u64)window * tp->mss_cache * 100000 / round_trip : 0;
	pace *= !flow->window && window < tp->snd_ssthresh ? PACE_SLOW_START : PACE_ELSE;
	train_schedule(flow, tp, now, window, !rs->is_app_limited);
	tp->snd_cwnd = train_window(flow, tp, window);
	flow->lent = tp->snd_cwnd < window ? window : 0;
	sk->sk_pacing_rate = train_pace(flow, pace ? pace : UNLIMITED);
}

/* Variant for Linux 6.10 and newer, which pass four parameters. */
SEC("struct_ops")
void BPF_PROG(symbiosis_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, rs);
}

/* Variant for Linux before 6.10, which passes two parameters. */
SEC("struct_ops")
void BPF_PROG(symbiosis_control_old, struct sock *sk, const struct rate_sample *rs)
{
	control(sk, rs);
}

#define OPERATIONS(control_program)                              \
	{                                                        \
		.init = (void *)symbiosis_init,                  \
		.ssthresh = (void *)symbiosis_ssthresh,          \
		.undo_cwnd = (void *)symbiosis_undo_cwnd,        \
		.set_state = (void *)symbiosis_set_state,        \
		.min_tso_segs = (void *)symbiosis_min_tso_segs,  \
		.cong_control = (void *)control_program,         \
		.flags = TCP_CONG_NON_RESTRICTED,                \
		.name = "symbiosis",                             \
	}

SEC(".struct_ops.link")
struct tcp_congestion_ops symbiosis = OPERATIONS(symbiosis_control);

SEC(".struct_ops.link")
struct tcp_congestion_ops symbiosis_old = OPERATIONS(symbiosis_control_old);
