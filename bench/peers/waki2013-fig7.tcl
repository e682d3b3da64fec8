# Simulates the dumbbell network of Waki 2013, Fig. 7, in ns-2: mean and variance of session 1's one-way end-to-end
# delay.
#
#   ns waki2013-fig7.tcl RATE_MBPS SEED SECONDS
#
# Prints `ns-2,RATE,SEED,packets,mean_s,variance_s2`. Session 1 is CBR traffic of RATE_MBPS from S1 to D1, which shares
# the path with Poisson traffic of 9 Mbit/s from S2 to D2. The statistics are over all packets that session 1 sends in
# [0, SECONDS) and that arrive.

if {$argc != 3} {
    puts stderr "usage: ns waki2013-fig7.tcl RATE_MBPS SEED SECONDS"
    exit 2
}
lassign $argv rate_mbps seed seconds

set packet_bytes 1000
set background_mbps 9.0

# For speed, packets have only the headers that this simulation uses. By default, a packet has the headers of every
# protocol.
remove-all-packet-headers
add-packet-header Flags IP RTP

set ns [new Simulator]
# For speed, the scheduler uses a plain list. With few pending events, a list is faster than the default calendar queue.
$ns use-scheduler List

# Returns a random generator for a seed. Each seed has its own substream, so that the random numbers of different seeds
# are independent.
proc generator {seed} {
    set generator [new RNG]
    for {set i 0} {$i < $seed} {incr i} {
        $generator next-substream
    }
    return $generator
}

foreach name {s1 s2 e0 e1 d1 d2} {
    set $name [$ns node]
}
foreach {from to mbps delay} [list $s1 $e0 1000 1ms  $s2 $e0 1000 1ms  $e0 $e1 15 5ms  $e1 $d1 1000 1ms  $e1 $d2 1000 1ms] {
    $ns duplex-link $from $to ${mbps}Mb $delay DropTail
    $ns queue-limit $from $to 1000
    $ns queue-limit $to $from 1000
}

# Returns a UDP sender at node `from` and a sink at node `to`. In ns-2, the size of a UDP packet on every link is the
# agent's packet size; no header is added.
proc session {from to} {
    global ns packet_bytes
    set sender [new Agent/UDP]
    $sender set packetSize_ $packet_bytes
    set sink [new Agent/Null]
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    return [list $sender $sink]
}

lassign [session $s1 $d1] sender1 sink1
lassign [session $s2 $d2] sender2 sink2

set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ $packet_bytes
$cbr set rate_ ${rate_mbps}Mb
$cbr attach-agent $sender1

# The Poisson traffic has bursts of one packet that last almost no time, so that the time between packets is the
# exponentially distributed idle time.
set poisson [new Application/Traffic/Exponential]
$poisson set packetSize_ $packet_bytes
$poisson set burst_time_ 0
$poisson set rate_ 1e15
$poisson set idle_time_ [expr {8e-6 * $packet_bytes / $background_mbps}]
$poisson use-rng [generator $seed]
$poisson attach-agent $sender2

# Compiled objects measure the delay, without a trace file. An object between sender 1 and its node writes the time into
# each packet. An object between the last node and the sink adds the packet's delay to the samples.
set delay [new Samples]
set monitor [new QueueMonitor]
$monitor set-delay-samples $delay
set departure [new SnoopQueue/In]
$departure set-monitor $monitor
$departure target [$s1 entry]
$sender1 target $departure
set arrival [new SnoopQueue/Out]
$arrival set-monitor $monitor
$arrival target $sink1
[$d1 set dmux_] install [$sink1 set agent_port_] $arrival

set phase [[generator $seed] uniform 0 [expr {8e-6 * $packet_bytes / $rate_mbps}]]
$ns at 0 "$poisson start"
$ns at $phase "$cbr start"
$ns at $seconds "$cbr stop; $poisson stop"
# End 2 s after the sources have stopped. The queues are empty then, because a full queue drains in about half a second.
$ns at [expr {$seconds + 2}] {
    puts "ns-2,$rate_mbps,$seed,[$delay cnt],[$delay mean],[$delay variance]"
    exit 0
}
$ns run
