// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Variants of the running kernel's Reno and CUBIC, whose congestion window user space can set. User space stores a
 * window for a socket. The stored window is applied once, when the socket next sends while no data is in flight. A flow
 * pair uses a stored window at the beginning of a probing period (Tobe 1999, Sec. 4).
 *
 * If the kernel has reset the window after an idle time, the stored window replaces the reset window.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "Dual MIT/GPL";

/*
 * The stored window of each socket, in segments; 0 if no window is stored. User space uses the socket's file descriptor
 * as key.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} window_presets SEC(".maps");

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* These functions are missing if the kernel has no CUBIC, or has CUBIC as a module that is not loaded. */
extern void cubictcp_init(struct sock *sk) __weak __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __weak __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __weak __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __weak __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __weak __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __weak __ksym;

static __always_inline void apply(struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 *segments;

	if (event != CA_EVENT_TX_START)
		return;
	segments = bpf_sk_storage_get(&window_presets, sk, 0, 0);
	if (!segments || !*segments)
		return;
	tp->snd_cwnd = *segments < tp->snd_cwnd_clamp ? *segments : tp->snd_cwnd_clamp;
	*segments = 0;
}

SEC("struct_ops")
u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 BPF_PROG(reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(reno_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	apply(sk, event);
}

SEC("struct_ops")
void BPF_PROG(cubic_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops")
u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(cubic_set_state, struct sock *sk, u8 state)
{
	cubictcp_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
	apply(sk, event);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops reno_preset = {
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.cwnd_event = (void *)reno_cwnd_event,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "reno_preset",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic_preset = {
	.init = (void *)cubic_init,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_cong_avoid,
	.set_state = (void *)cubic_set_state,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.pkts_acked = (void *)cubic_pkts_acked,
	.cwnd_event = (void *)cubic_cwnd_event,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "cubic_preset",
};
