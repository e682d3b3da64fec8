/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The program's state of each socket, and its parameters, in the layout that the Rust code reads. */
#ifndef EQUIPOISE_FLOW_H
#define EQUIPOISE_FLOW_H

/* Number of stored capacities: the median is over this many trains. */
#define CAPACITIES 8

/* Parameters, in Q20. */
struct parameters {
	u64 gamma;
	u64 epsilon_per_s;
	u64 noise_weight;
	u64 oscillation;
};

struct flow {
	/* The control law's window in Q20 segments; 0 while Reno controls the window. */
	u64 window;
	/* K (capacity) and A (available bandwidth) in Q10 segments/s; 0 before they are measured. */
	u64 capacity;
	u64 available;
	/* gamma in Q20, lowered by noise. */
	u64 gamma;
	struct noise noise;
	u64 last_step_us;
	u64 min_round_trip_us;

	/* Number of trains with a result, and of all trains. */
	u32 trains_judged;
	u32 trains;
	u32 losses;
	u32 timeouts;

	/* The kernel's congestion state, and the window when the kernel undid a reduction. */
	u32 state;
	u32 undo_window;
	u32 undone;
	u32 retransmit_first;

	/* The train in flight. */
	u32 train;
	u32 segment_bytes;
	u32 start;
	u32 burst_end;
	u32 end;
	u32 hold_until;
	u32 need;
	/* The connection's own window while the train uses a smaller window; otherwise 0. */
	u32 lent;
	u64 spacing_bytes_per_s;
	/* The planned rate of the whole train, in Q10 segments/s. */
	u64 planned_rate;
	u64 not_before_us;
	/* The train's first acknowledgement. */
	u64 first_sent_us;
	u64 first_acked_us;
	u32 first_bytes;
	/* The last acknowledgement of its burst, relative to the first one. */
	u32 burst_bytes;
	u64 burst_sent_us;
	u64 burst_acked_us;
	/* Sums over its last acknowledgements, relative to the first one. */
	u64 tail_bytes;
	u64 tail_sent_us;
	u64 tail_acked_us;

	/* Time per segment of the last trains, in ns. */
	u32 gaps_ns[CAPACITIES];
	u32 gaps;
	/* Consecutive trains that were slower than the available bandwidth. */
	u32 clear;
	/* A result that differs much from the others, until the next result confirms it; otherwise 0. */
	u64 set_aside;
};

/* A socket, for the reader. */
struct report {
	u16 family;
	u16 port;
	u16 peer_port;
	u16 segment_bytes;
	u8 address[16];
	u8 peer_address[16];
	u32 cwnd;
	u32 ssthresh;
	u32 smoothed_round_trip_us;
	u32 unused;
	struct flow flow;
};

#endif
