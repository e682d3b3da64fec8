# Simulates bulk TCP flows over a dumbbell network in ns-2: goodput, losses, timeouts, retransmissions and mean queue.
#
#   ns tcp.tcl VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS DELAYED_ACKS
#
# VARIANT is `newreno` or `sack`. RTT_MS is the round-trip propagation time. QUEUE_PACKETS is the number of packets that
# can wait while one packet is sent. DELAYED_ACKS is `on` or `off`. Prints one row, whose columns are described in
# `README.md`.

if {$argc != 8} {
    puts stderr "usage: ns tcp.tcl VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS DELAYED_ACKS"
    exit 2
}
lassign $argv variant rate_mbps rtt_ms queue_packets flows seed seconds delayed_acks

set segment_bytes 1460
# Length of queues without a limit, and maximum window. It is far above every window in the test settings, and is also
# the initial ssthresh in ns-2.
set unlimited_packets 1000000
# Rate and delay of the access links, on both sides of the bottleneck.
set access_mbps 1000
set access_ms 1.0
# Start of the second measurement (the columns `steady_...`), in s.
set warm_up_s 10.0
# Flow i (counted from 0) begins at a random time between i * start_step_s and (i + 1) * start_step_s. In s.
set start_step_s 0.1

# For speed, packets have only the headers that this simulation uses.
remove-all-packet-headers
add-packet-header Flags IP TCP

set ns [new Simulator]

switch $variant {
    newreno { set sender_class Agent/TCP/Newreno; set sink_class Agent/TCPSink }
    sack { set sender_class Agent/TCP/Sack1; set sink_class Agent/TCPSink/Sack1 }
    default { puts stderr "VARIANT is `$variant`; it has to be newreno or sack"; exit 2 }
}
switch $delayed_acks {
    on { append sink_class /DelAck }
    off {}
    default { puts stderr "DELAYED_ACKS is `$delayed_acks`; it has to be on or off"; exit 2 }
}
set bottleneck_ms [expr {$rtt_ms / 2.0 - 2 * $access_ms}]
if {$bottleneck_ms < 0} {
    puts stderr "RTT_MS is `$rtt_ms`; it has to be at least [expr {4 * $access_ms}]"
    exit 2
}

# Sets the length of a drop-tail queue, so that `packets` packets can wait while one packet is sent. In ns-2, a queue
# with limit n can contain n - 1 packets.
proc room {from to packets} {
    global ns
    $ns queue-limit $from $to [expr {$packets + 1}]
}

proc join {from to mbps ms} {
    global ns unlimited_packets
    $ns duplex-link $from $to ${mbps}Mb ${ms}ms DropTail
    room $from $to $unlimited_packets
    room $to $from $unlimited_packets
}

set e0 [$ns node]
set e1 [$ns node]
join $e0 $e1 $rate_mbps $bottleneck_ms
room $e0 $e1 $queue_packets
set monitor [$ns monitor-queue $e0 $e1 ""]
set waiting [$monitor get-pkts-integrator]

set rng [new RNG]
for {set i 0} {$i < $seed} {incr i} {
    $rng next-substream
}

set senders {}
for {set i 0} {$i < $flows} {incr i} {
    set from [$ns node]
    set to [$ns node]
    join $from $e0 $access_mbps $access_ms
    join $e1 $to $access_mbps $access_ms

    # ns-2 adds the headers to packetSize_: 40 bytes, `tcpip_base_hdr_size_`.
    set sender [new $sender_class]
    $sender set packetSize_ $segment_bytes
    $sender set window_ $unlimited_packets
    # Initial window of 10 segments (RFC 6928).
    $sender set windowInit_ 10
    # Timeouts follow RFC 6298: the first timeout is 1 s, no timeout is shorter than 1 s, and the clock has a resolution
    # of 1 ms.
    $sender set rtxcur_init_ 1.0
    $sender set minrto_ 1.0
    $sender set tcpTick_ 0.001
    set sink [new $sink_class]
    if {$delayed_acks eq "on"} {
        $sink set interval_ 200ms
    }
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $sender
    $ns at [expr {($i + [$rng uniform 0 1]) * $start_step_s}] "$ftp start"
    lappend senders $sender
}

# Returns the list of all current counters: arrivals, drops, sum of the packets' waiting times in s, timeouts, fast
# retransmits, retransmitted segments, and a list with the acknowledged segments of each flow.
proc counters {} {
    global ns monitor waiting senders
    # Update the integral of the queue length to the present time. ns-2 updates it only if the queue changes.
    $waiting newpoint [$ns now] [$waiting set lasty_]
    set timeouts 0
    set cuts 0
    set retransmitted 0
    set acknowledged {}
    foreach sender $senders {
        incr timeouts [$sender set nrexmit_]
        incr cuts [$sender set ncwndcuts_]
        incr retransmitted [$sender set nrexmitpack_]
        # Segment 0 is the SYN, so the number of the last acknowledged segment is the number of data segments.
        set last [$sender set ack_]
        lappend acknowledged [expr {$last > 0 ? $last : 0}]
    }
    # Without ECN, a window is reduced only at a timeout or a fast retransmit, so that cuts - timeouts are the fast
    # retransmits.
    return [list [$monitor set parrivals_] [$monitor set pdrops_] [$waiting set sum_] \
        $timeouts [expr {$cuts - $timeouts}] $retransmitted $acknowledged]
}

# Returns the columns that are measured between two times, from the counters at these times.
proc columns {before after span_s} {
    global segment_bytes
    lassign $before arrived0 dropped0 waiting0 timeouts0 fast0 again0 acknowledged0
    lassign $after arrived1 dropped1 waiting1 timeouts1 fast1 again1 acknowledged1
    set sum 0.0
    set squares 0.0
    foreach segments0 $acknowledged0 segments1 $acknowledged1 {
        set mbps [expr {8e-6 * $segment_bytes * ($segments1 - $segments0) / $span_s}]
        set sum [expr {$sum + $mbps}]
        set squares [expr {$squares + $mbps * $mbps}]
    }
    set arrived [expr {$arrived1 - $arrived0}]
    set loss [expr {$arrived > 0 ? double($dropped1 - $dropped0) / $arrived : 0.0}]
    set jain [expr {$squares > 0 ? $sum * $sum / ([llength $acknowledged0] * $squares) : 0.0}]
    return [format "%.6f,%.6e,%d,%d,%d,%.4f,%.6f" $sum $loss [expr {$timeouts1 - $timeouts0}] \
        [expr {$fast1 - $fast0}] [expr {$again1 - $again0}] [expr {($waiting1 - $waiting0) / $span_s}] $jain]
}

set zero {}
foreach sender $senders {
    lappend zero 0
}
$ns at $warm_up_s {set warm [counters]}
$ns at $seconds {
    set end [counters]
    puts "ns-2,$variant,$rate_mbps,$rtt_ms,$queue_packets,$flows,$seed,$seconds,[columns [list 0 0 0.0 0 0 0 $zero] $end \
        $seconds],$delayed_acks,[columns $warm $end [expr {$seconds - $warm_up_s}]]"
    exit 0
}
$ns run
