/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the program keeps of each socket, and what is set: as the loader in Rust reads and writes them. */
#ifndef EQUIPOISE_FLOW_H
#define EQUIPOISE_FLOW_H

/* Capacities that are kept: the median of so many trains. */
#define CAPACITIES 8

/* Parameters, in Q20. */
struct parameters {
	u64 gamma;
	u64 epsilon_per_s;
	u64 noise_weight;
	u64 oscillation;
};

struct flow {
	/* The law's window in Q20 segments; 0 while Reno has it. */
	u64 window;
	/* K and A in Q10 segments/s; 0 before they are measured. */
	u64 capacity;
	u64 available;
	/* gamma in Q20, as noise leaves it. */
	u64 gamma;
	struct noise noise;
	u64 last_step_us;
	u64 min_round_trip_us;

	/* Trains that told something, and all. */
	u32 trains_judged;
	u32 trains;
	u32 losses;
	u32 timeouts;

	/* The kernel's state of congestion, and what it was when it undid a reduction. */
	u32 state;
	u32 undo_window;
	u32 undone;
	u32 retransmit_first;

	/* The train under way. */
	u32 train;
	u32 segment_bytes;
	u32 start;
	u32 burst_end;
	u32 end;
	u32 hold_until;
	u32 need;
	/* The connection's window while the train has a smaller one; 0 for none. */
	u32 lent;
	u64 spacing_bytes_per_s;
	/* Of the whole train, in Q10 segments/s. */
	u64 planned_rate;
	u64 not_before_us;
	/* Its first acknowledgement. */
	u64 first_sent_us;
	u64 first_acked_us;
	u32 first_bytes;
	/* The last one of its burst, counted from the first. */
	u32 burst_bytes;
	u64 burst_sent_us;
	u64 burst_acked_us;
	/* Sums over its last ones, counted from the first. */
	u64 tail_bytes;
	u64 tail_sent_us;
	u64 tail_acked_us;

	/* Times for a segment, in ns, of the last trains. */
	u32 gaps_ns[CAPACITIES];
	u32 gaps;
	/* Trains in a row that were slower than what is available. */
	u32 clear;
	/* A result far from the others that the next may confirm; 0 for none. */
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
