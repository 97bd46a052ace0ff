# Many bulk flows in ns-2, each over a bottleneck of its own: ns many_flows.tcl FLOWS SECONDS
#
# Every chain is server --100 Mbit/s, 1 ms-- edge == 200 kbit/s down, 64 kbit/s up, 200 ms each way == mobile with a buffer of
# 10 packets beside the one in transmission. Routes are laid by hand: ns-2's own computation is cubic in the nodes.
# Prints one line of JSON.

lassign $argv flows seconds
set ns [new Simulator]
$ns rtproto Manual
foreach {variable value} {useHeaders_ false packetSize_ 1000 window_ 500} { Agent/TCP set $variable $value }

proc route {ns from to through} { $from add-route [$to id] [[$ns link $from $through] head] }

set senders {}
for {set i 0} {$i < $flows} {incr i} {
    set server [$ns node]
    set edge [$ns node]
    set mobile [$ns node]
    $ns duplex-link $server $edge 100Mb 1ms DropTail
    $ns simplex-link $edge $mobile 200kb 200ms DropTail
    $ns simplex-link $mobile $edge 64kb 200ms DropTail
    $ns queue-limit $edge $mobile 11
    foreach {from to} [list $server $edge $edge $server $mobile $edge] { $ns queue-limit $from $to 100000 }
    route $ns $server $mobile $edge
    route $ns $edge $mobile $mobile
    route $ns $mobile $server $edge
    route $ns $edge $server $server
    set sender [new Agent/TCP/Sack1]
    set receiver [new Agent/TCPSink/Sack1]
    $ns attach-agent $server $sender
    $ns attach-agent $mobile $receiver
    $ns connect $sender $receiver
    set download [new Application/FTP]
    $download attach-agent $sender
    # A millisecond apart, so that the flows do not march in step.
    $ns at [expr {0.001 * ($i % 1000)}] "$download start"
    lappend senders $sender
}
$ns at $seconds {
    set packets 0
    foreach sender $senders { incr packets [expr {[$sender set ack_] + 1}] }
    puts [format {{"packets": %d}} $packets]
    exit 0
}
$ns run
