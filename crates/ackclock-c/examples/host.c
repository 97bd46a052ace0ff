/* Reference host: a drop-tail queue before a link of constant rate, with regulators from the C interface.
 *
 *   host TABLE RATE_BPS BUFFER_PACKETS < events
 *
 * An event is a line, in order of time (nanoseconds):
 *
 *   TIME open FLOW USER
 *   TIME data FLOW SEQUENCE PAYLOAD [FLAGS]               a segment arrives from the network; FLAGS: 16, ACK
 *   TIME ack FLOW ACKNOWLEDGEMENT WINDOW LEFT RIGHT       an ACK arrives from the mobile; LEFT = RIGHT: no SACK block
 *   TIME close FLOW
 *   TIME run 0                                            runs the queue up to this time
 *
 * The host prints one line per decision: TIME WHAT FLOW SEQUENCE ACKNOWLEDGEMENT WINDOW MADE. It stops at the last event.
 */
#include "ackclock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096 /* segments in the queue */

static ackclock_regulator *regulator;
static uint64_t rate, buffer;
static ackclock_segment queue[MOST]; /* queue[0] is the next to transmit */
static uint32_t queued;
static uint64_t queued_bytes;
static ackclock_segment transmitting;
static int busy;
static uint64_t departs; /* end of the current transmission */

/* Flows that are not open are not regulated: their segments are queued and passed as if there were no regulator. */
static int32_t checked(int32_t answer) {
    if (answer < 0 && answer != ACKCLOCK_E_UNKNOWN_FLOW) {
        fprintf(stderr, "host: %s\n", ackclock_error_text(answer));
        exit(1);
    }
    return answer;
}

static uint64_t bytes_of(const ackclock_segment *segment) {
    return (uint64_t)segment->header + segment->payload;
}

static void print(uint64_t now, const char *what, const ackclock_segment *s) {
    printf("%" PRIu64 " %s %u %u %u %u %d\n", now, what, s->flow, s->sequence, s->acknowledgement, s->window,
           s->packet == ACKCLOCK_MADE);
}

/* State of the queue. The packet in transmission does not count against the buffer. */
static const ackclock_view *view(void) {
    static ackclock_view v;
    memset(&v, 0, sizeof v);
    v.size = sizeof v;
    v.capacity_unit = ACKCLOCK_PACKETS;
    v.capacity = buffer;
    v.rate = rate;
    v.waiting.packets = queued;
    v.waiting.bytes = queued_bytes;
    v.in_transmission.packets = (uint64_t)busy;
    v.in_transmission.bytes = busy ? bytes_of(&transmitting) : 0;
    v.occupied = v.waiting;
    return &v;
}

static void transmit(uint64_t now, const ackclock_segment *segment) {
    transmitting = *segment;
    busy = 1;
    departs = now + (bytes_of(segment) * UINT64_C(8000000000) + rate / 2) / rate;
}

/* Puts a segment behind or before all others of the queue. Returns whether there was room. */
static int enqueue(uint64_t now, const ackclock_segment *segment, int front) {
    uint32_t at = front ? 0 : queued;
    if (!busy) {
        transmit(now, segment);
        return 1;
    }
    if (queued >= buffer || queued >= MOST) return 0;
    memmove(&queue[at + 1], &queue[at], (queued - at) * sizeof *queue);
    queue[at] = *segment;
    queued++;
    queued_bytes += bytes_of(segment);
    return 1;
}

/* Queues a segment and reports the outcome to the regulator. */
static void send(uint64_t now, const ackclock_segment *segment, int front) {
    if (enqueue(now, segment, front)) {
        checked(ackclock_on_queued(regulator, now, segment, view()));
    } else {
        print(now, "discard", segment);
        checked(ackclock_on_dropped(regulator, now, segment, ACKCLOCK_CAUSE_FULL, view()));
    }
}

/* Executes what the regulator requests. */
static void drain(uint64_t now) {
    ackclock_output output = {.size = sizeof output};
    while (checked(ackclock_poll_output(regulator, now, &output))) {
        switch (output.action) {
        case ACKCLOCK_TO_SENDER: print(now, "sender", &output.segment); break;
        case ACKCLOCK_TO_RECEIVER_BACK: send(now, &output.segment, 0); break;
        case ACKCLOCK_TO_RECEIVER_FRONT: send(now, &output.segment, 1); break;
        case ACKCLOCK_DISCARD: print(now, "discard", &output.segment); break;
        case ACKCLOCK_RELEASE: print(now, "release", &output.segment); break;
        }
    }
}

static void on_data(uint64_t now, ackclock_segment *segment) {
    int32_t verdict = checked(ackclock_on_data(regulator, now, segment, view()));
    drain(now);
    if (verdict == ACKCLOCK_DROP) {
        print(now, "discard", segment);
        return;
    }
    if (verdict == ACKCLOCK_FORWARD_KEEP) print(now, "keep", segment);
    if (verdict == ACKCLOCK_MARK_CE) segment->ecn = 3;
    send(now, segment, 0);
    drain(now);
}

static void depart(void) {
    uint64_t now = departs;
    ackclock_segment left = transmitting;
    busy = 0;
    if (queued > 0) {
        transmit(now, &queue[0]);
        queued--;
        queued_bytes -= bytes_of(&queue[0]);
        memmove(&queue[0], &queue[1], queued * sizeof *queue);
    }
    checked(ackclock_on_departed(regulator, now, &left, view()));
    if (!busy) checked(ackclock_on_idle(regulator, now, left.flow, view()));
    drain(now);
    print(now, "mobile", &left);
}

/* Runs departures and timeouts up to `until`. A departure precedes a timeout of the same instant. */
static void run(uint64_t until) {
    for (;;) {
        uint64_t deadline = UINT64_MAX;
        uint32_t flow = 0;
        checked(ackclock_poll_timeout(regulator, &deadline, &flow));
        if (busy && departs <= deadline && departs <= until) {
            depart();
        } else if (deadline <= until) {
            checked(ackclock_on_timeout(regulator, deadline, flow, view()));
            drain(deadline);
        } else {
            return;
        }
    }
}

static ackclock_segment segment(uint32_t flow) {
    static uint32_t packets;
    ackclock_segment s = {.size = sizeof s, .flow = flow, .packet = packets++, .header = 40, .flags = 16};
    return s;
}

static void refuse(const char *line) {
    fprintf(stderr, "host: not an event: %s", line);
    exit(2);
}

static void obey(const char *line) {
    uint64_t now;
    uint32_t flow, a = 0, b = 0, left = 0, right = 0;
    char what[8];
    int fields = sscanf(line, "%" SCNu64 " %7s %u %u %u %u %u", &now, what, &flow, &a, &b, &left, &right);
    if (fields < 3) refuse(line);
    run(now);
    ackclock_segment s = segment(flow);
    if (!strcmp(what, "open")) {
        checked(ackclock_open_flow(regulator, flow, a));
    } else if (!strcmp(what, "data")) {
        s.sequence = a;
        s.payload = (uint16_t)b;
        if (fields > 5) s.flags = (uint8_t)left;
        on_data(now, &s);
    } else if (!strcmp(what, "ack")) {
        s.acknowledgement = a;
        s.window = (uint16_t)b;
        s.sack_blocks = left != right;
        s.sack[0][0] = left;
        s.sack[0][1] = right;
        if (checked(ackclock_on_ack(regulator, now, &s, view())) < 0) print(now, "sender", &s);
        drain(now);
    } else if (!strcmp(what, "close")) {
        checked(ackclock_close_flow(regulator, now, flow));
        drain(now);
    } else if (strcmp(what, "run")) {
        refuse(line);
    }
}

int main(int count, char **arguments) {
    char line[256], error[512];
    if (count != 4 || (rate = strtoull(arguments[2], NULL, 10)) == 0) {
        fprintf(stderr, "usage: host TABLE RATE_BPS BUFFER_PACKETS < events\n");
        return 2;
    }
    buffer = strtoull(arguments[3], NULL, 10);
    regulator = ackclock_regulator_new(arguments[1], error, sizeof error);
    if (!regulator) {
        fprintf(stderr, "host: %s\n", error);
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) obey(line);
    ackclock_regulator_free(regulator);
    return 0;
}
