/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The congestion control's state for each socket, and its parameters, in the layout that the Rust code reads. */
#ifndef EQUIPOISE_FLOW_H
#define EQUIPOISE_FLOW_H

/* Number of packet trains whose gaps (`gaps_ns`) are stored. The capacity K is computed from the median of the gaps. */
#define CAPACITIES 8

/* Parameters of the congestion control, in Q20. */
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
	/* gamma in Q20, lowered according to the noise of the measurements. */
	u64 gamma;
	struct noise noise;
	u64 last_step_us;
	u64 min_round_trip_us;

	/* Number of trains from which a new value of A was accepted, and number of all trains. */
	u32 trains_judged;
	u32 trains;
	u32 losses;
	u32 timeouts;

	/*
	 * The kernel's congestion state (TCP_CA_...), and the window before its last reduction, in case the kernel undoes the
	 * reduction.
	 */
	u32 state;
	u32 undo_window;
	u32 undone;
	u32 retransmit_first;

	/* The present train. `train` is its state (TRAIN_...); `start` to `hold_until` are sequence numbers. */
	u32 train;
	u32 segment_bytes;
	u32 start;
	u32 burst_end;
	u32 end;
	u32 hold_until;
	u32 need;
	/* The connection's own window, in segments, while a train makes the kernel use a smaller window; otherwise 0. */
	u32 lent;
	u64 spacing_bytes_per_s;
	/* The rate at which the whole train should be sent, in Q10 segments/s. */
	u64 planned_rate;
	u64 not_before_us;
	/* The first acknowledgement of the train. */
	u64 first_sent_us;
	u64 first_acked_us;
	u32 first_bytes;
	/* Values at the last acknowledgement of the burst minus those at the first acknowledgement of the train. */
	u32 burst_bytes;
	u64 burst_sent_us;
	u64 burst_acked_us;
	/*
	 * Sums over the last acknowledgements of the train: acknowledged bytes, sending times and acknowledgement times.
	 * Each acknowledgement adds the differences between its values and those of the train's first acknowledgement.
	 */
	u64 tail_bytes;
	u64 tail_sent_us;
	u64 tail_acked_us;

	/* Time per segment at the bottleneck, as measured by each of the last trains, in ns. */
	u32 gaps_ns[CAPACITIES];
	u32 gaps;
	/* Number of consecutive trains that were slower than the available bandwidth. */
	u32 clear;
	/*
	 * A result that differs much from the present A (available bandwidth), so the next train must confirm it. The value
	 * is 0 if there is no such result.
	 */
	u64 set_aside;
};

/* The state of a socket, as reader.bpf.c writes it for user space. */
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
