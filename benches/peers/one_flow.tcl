# One bulk TCP flow over a hop whose rate and delay are drawn for every packet, in ns-2.
#
#   ns one_flow.tcl tcp Reno seed 1 buffer 10 seconds 3600 rate_sd 0 delay_mean 0 fixed_delay 0.2 reverse_delay 0.2 exact 0
#
# server --100 Mbit/s, 1 ms-- edge == 200 kbit/s down, 64 kbit/s up == mobile. Settings of the simulations of 2002: packets of
# 1000 bytes with their headers, a clock of 100 ms, RTO of at least 1 s, initial window 1, classic Reno without a guard
# against several reductions in a window. Until 2006 the agents halved whole segments; `exact 1` is how they do it since.
# Prints one line of JSON.

array set given {tcp Reno seed 1 buffer 10 seconds 3600 rate_sd 0 delay_mean 0 fixed_delay 0.2 reverse_delay 0.2 exact 0}
array set given $argv
set rate 200e3
set packet_bits 8000.0

ns-random $given(seed)
set ns [new Simulator]
set server [$ns node]
set edge [$ns node]
set mobile [$ns node]
$ns duplex-link $server $edge 100Mb 1ms DropTail
$ns simplex-link $edge $mobile $rate [expr {$given(fixed_delay) + $given(delay_mean)}] DropTail
$ns simplex-link $mobile $edge 64e3 $given(reverse_delay) DropTail
# ns-2 counts the packet in transmission: `buffer` packets wait beside it.
$ns queue-limit $edge $mobile [expr {$given(buffer) + 1}]
foreach {from to} [list $server $edge $edge $server $mobile $edge] { $ns queue-limit $from $to 100000 }

foreach {variable value} {
    useHeaders_ false packetSize_ 1000 window_ 500 windowInit_ 1 tcpTick_ 0.1 minrto_ 1 maxrto_ 60
    singledup_ 0 bugFix_ false timestamps_ false
} { Agent/TCP set $variable $value }
Agent/TCP set precisionReduce_ $given(exact)
set sender [new Agent/TCP/$given(tcp)]
set receiver [new Agent/TCPSink[expr {$given(tcp) eq "Sack1" ? "/Sack1" : ""}]]
$ns attach-agent $server $sender
$ns attach-agent $mobile $receiver
$ns connect $sender $receiver
set download [new Application/FTP]
$download attach-agent $sender

# A callback between the queue and the transmitter sees a packet before its rate and delay are read, and sets them.
# Packets keep their order: none arrives before the one sent earlier.
set hop [$ns link $edge $mobile]
set transmitter [$hop link]
set delays [new RandomVariable/Exponential]
$delays set avg_ $given(delay_mean)
set rates [new RandomVariable/Uniform]
set half_width [expr {$given(rate_sd) * sqrt(3.0)}]
$rates set min_ [expr {$rate - $half_width}]
$rates set max_ [expr {$rate + $half_width}]
set last_arrival 0.0
if {$given(rate_sd) > 0 || $given(delay_mean) > 0} {
    set before [new Trace/Deque]
    $before set callback_ 1
    $before set src_ [$edge id]
    $before set dst_ [$mobile id]
    $before target [[$hop queue] target]
    [$hop queue] target $before
    $before proc handle {arguments} {
        global ns transmitter given rate rates delays packet_bits last_arrival
        set now [$ns now]
        set drawn_rate [expr {$given(rate_sd) > 0 ? [$rates value] : $rate}]
        set drawn_delay [expr {$given(fixed_delay) + ($given(delay_mean) > 0 ? [$delays value] : 0)}]
        set departs [expr {$now + $packet_bits / $drawn_rate}]
        set last_arrival [expr {max($departs + $drawn_delay, $last_arrival + 1e-7)}]
        $transmitter set bandwidth_ $drawn_rate
        $transmitter set delay_ [expr {$last_arrival - $departs}]
    }
}

$ns at 0 "$download start"
$ns at $given(seconds) {
    set packets [expr {[$sender set ack_] + 1}]
    puts [format {{"wire_goodput_bps": %.1f, "packets": %d, "timeouts": %d, "window_cuts": %d, "retransmits": %d}} \
        [expr {$packets * $packet_bits / $given(seconds)}] $packets [$sender set nrexmit_] \
        [$sender set ncwndcuts_] [$sender set nrexmitpack_]]
    exit 0
}
$ns run
