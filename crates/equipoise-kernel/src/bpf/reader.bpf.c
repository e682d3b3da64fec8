// SPDX-License-Identifier: MIT OR GPL-2.0
/* Writes a `struct report` for each socket that uses the congestion control, in all network namespaces. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "fixed.h"
#include "flow.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define AF_INET 2

SEC("iter/bpf_sk_storage_map")
int symbiosis_reader(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct flow *flow = ctx->value;
	struct sock *sk = ctx->sk;
	struct report report;
	struct tcp_sock *tp;

	if (!sk || !flow)
		return 0;
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	__builtin_memset(&report, 0, sizeof(report));
	report.family = sk->__sk_common.skc_family;
	report.port = sk->__sk_common.skc_num;
	report.peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	report.segment_bytes = tp->mss_cache;
	if (report.family == AF_INET) {
		*(u32 *)report.address = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)report.peer_address = sk->__sk_common.skc_daddr;
	} else {
		bpf_probe_read_kernel(report.address, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(report.peer_address, 16, &sk->__sk_common.skc_v6_daddr);
	}
	report.cwnd = flow->lent ? flow->lent : tp->snd_cwnd;
	report.ssthresh = tp->snd_ssthresh;
	report.smoothed_round_trip_us = tp->srtt_us >> 3;
	report.flow = *flow;
	bpf_seq_write(ctx->meta->seq, &report, sizeof(report));
	return 0;
}
