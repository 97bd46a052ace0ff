/* C interface of ackclock's regulators, for hosts that own the queue of a radio.
 *
 * The host parses TCP/IP headers into `ackclock_segment` and keeps the packets. The library never sees packet bytes.
 * After every call, the host drains `ackclock_poll_output` and executes the actions:
 *
 *   TO_SENDER          Send the segment to the TCP sender. If `window`, `acknowledgement` or `flags` differ from the
 *                      packet's, write them into its header and update the checksum. A segment with
 *                      `packet == ACKCLOCK_MADE` was generated: the host writes a new packet of the same connection.
 *   TO_RECEIVER_*      Queue a kept copy or a generated segment, then call `ackclock_on_queued` or `ackclock_on_dropped`
 *                      before the next `ackclock_poll_output`. A kept copy remains kept.
 *   DISCARD            Drop a held segment.
 *   RELEASE            Free the kept copy of the segment.
 *
 * Order of calls:
 *   data from the network   on_data; queue the segment unless the verdict is DROP; then on_queued or on_dropped
 *   end of a transmission   start the next transmission; then on_departed, and on_idle if the queue is empty
 *   ACK or SYN from mobile  on_ack; the library returns the segment by poll_output, at once or later
 *   end of a connection     close_flow, when the last FIN is acknowledged or an RST passes; the host passes an RST itself
 *   deadline                on_timeout, when the time of poll_timeout is reached
 *
 * Times are nanoseconds since any fixed instant, and never decrease. Set `size` of each struct to its sizeof before the
 * call: it identifies the version. Functions return a negative ACKCLOCK_E_* if they refuse a call; a refused call
 * changes no flow. A regulator may be used by one thread at a time.
 */
#ifndef ACKCLOCK_H
#define ACKCLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACKCLOCK_VERSION 1

/* Refusals. `ackclock_error_text` explains them. */
#define ACKCLOCK_E_POINTER (-1)      /* a pointer is null or misaligned */
#define ACKCLOCK_E_SIZE (-2)         /* `size` is not the size of the struct in this version */
#define ACKCLOCK_E_VALUE (-3)        /* a value is outside its range */
#define ACKCLOCK_E_UNKNOWN_FLOW (-4) /* the flow is not open */
#define ACKCLOCK_E_FLOW_OPEN (-5)    /* the flow is already open */
#define ACKCLOCK_E_TIME (-6)         /* the time is before an earlier call's, or 2^63 ns or more */
#define ACKCLOCK_E_FAILED (-7)       /* the library has failed; the regulator can only be freed */

/* Verdicts of `ackclock_on_data`. */
#define ACKCLOCK_FORWARD 0      /* queue the segment */
#define ACKCLOCK_FORWARD_KEEP 1 /* queue the segment and keep a copy until RELEASE, or call `ackclock_on_copy_refused` */
#define ACKCLOCK_DROP 2         /* drop the segment */
#define ACKCLOCK_MARK_CE 3      /* mark the segment with congestion experienced (RFC 3168) and queue it */

/* Actions of `ackclock_poll_output`. */
#define ACKCLOCK_TO_SENDER 1
#define ACKCLOCK_TO_RECEIVER_BACK 2  /* behind all segments */
#define ACKCLOCK_TO_RECEIVER_FRONT 3 /* before all segments of its flow, or of its queue */
#define ACKCLOCK_DISCARD 4
#define ACKCLOCK_RELEASE 5

/* Causes of `ackclock_on_dropped`. */
#define ACKCLOCK_CAUSE_FULL 0   /* the buffer was full */
#define ACKCLOCK_CAUSE_POLICY 1 /* active queue management */
#define ACKCLOCK_CAUSE_MEDIUM 2 /* the radio lost the segment */
#define ACKCLOCK_CAUSE_OUTAGE 3 /* the radio was silent for too long */
#define ACKCLOCK_CAUSE_HANDOVER 4 /* a hand-over did not forward the packet */
#define ACKCLOCK_CAUSE_AGED 5     /* the segment was queued for longer than the age limit of the queue */

/* Units of `ackclock_view.capacity`. */
#define ACKCLOCK_UNLIMITED 0
#define ACKCLOCK_PACKETS 1 /* at most ACKCLOCK_MOST_PACKETS */
#define ACKCLOCK_BYTES 2   /* at most ACKCLOCK_MOST_BYTES */

#define ACKCLOCK_NO_SCALE 255
#define ACKCLOCK_MADE UINT64_C(0xffffffff)
#define ACKCLOCK_MOST_PACKETS (UINT64_C(1) << 28)
#define ACKCLOCK_MOST_BYTES (UINT64_C(1) << 48)

typedef struct ackclock_regulator ackclock_regulator;

/* Packets, and bytes with IP headers, in a part of the queue. */
typedef struct ackclock_load {
    uint64_t packets; /* at most ACKCLOCK_MOST_PACKETS */
    uint64_t bytes;   /* at most ACKCLOCK_MOST_BYTES */
} ackclock_load;

/* State of the queue that serves a flow, at the instant of the call. */
typedef struct ackclock_view {
    uint32_t size;
    uint32_t capacity_unit;
    uint64_t capacity;
    uint64_t rate;                /* bit/s; 0 while the radio is silent */
    ackclock_load waiting;        /* transmission not started */
    ackclock_load in_transmission;
    ackclock_load unacknowledged; /* transmitted, not yet acknowledged by the receiver of the radio; only with ARQ */
    ackclock_load occupied;       /* what counts against `capacity` */
} ackclock_view;

/* Header fields of a TCP segment. */
typedef struct ackclock_segment {
    uint32_t size;
    uint32_t flow;            /* the host's number of the connection, equal in both directions */
    uint64_t packet;          /* the host's handle of the packet; its lower 32 bits must not be all ones */
    uint32_t sequence;
    uint32_t acknowledgement;
    uint32_t timestamp_value; /* TSval */
    uint32_t timestamp_echo;  /* TSecr */
    uint16_t payload;         /* bytes */
    uint16_t header;          /* bytes of the IP and TCP headers with options */
    uint16_t window;          /* the field of the header, unscaled */
    uint16_t mss;             /* SYN only; 0 without the option */
    uint8_t flags;            /* control bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128 */
    uint8_t ecn;              /* codepoint of the IP header; plus 4 if the control bit AE (RFC 9768) is set */
    uint8_t window_scale;     /* shift from the SYN of the segment's sender, at most 14; or ACKCLOCK_NO_SCALE */
    uint8_t has_timestamps;   /* 0 or 1 */
    uint8_t sack_permitted;   /* SYN only; 0 or 1 */
    uint8_t sack_blocks;      /* at most 3; 0 on a SYN */
    uint8_t reserved[2];      /* 0 */
    uint32_t sack[3][2];      /* left and right edges, most recent block first */
} ackclock_segment;

typedef struct ackclock_output {
    uint32_t size;
    uint32_t action;
    ackclock_segment segment;
} ackclock_output;

/* Version of the library's interface. Compare it with ACKCLOCK_VERSION. */
uint32_t ackclock_version(void);

/* Message for a negative return value. */
const char *ackclock_error_text(int32_t code);

/* Returns 1 if the options of a TCP segment (`size` bytes behind the first 20 of its header) forbid changes of its header,
 * as of TCP-MD5, TCP-AO and Multipath TCP; 0 otherwise. `flags` as in `ackclock_segment`. Pass such a segment unchanged,
 * without a call about it; if it is a SYN or a SYN-ACK, do so with every segment of its connection. */
int32_t ackclock_is_protected(const uint8_t *options, size_t size, uint8_t flags);

/* Creates regulators from a table as in a scenario file: TOML such as `kind = "wrs"`, or a JSON object. Returns NULL and
 * writes a message into `error` (may be NULL) if the table is wrong. */
ackclock_regulator *ackclock_regulator_new(const char *table, char *error, size_t error_size);

/* Frees the regulators and all their flows. Close flows first to get back what they hold. */
void ackclock_regulator_free(ackclock_regulator *regulator);

/* Opens a flow before its first segment. `user` selects the regulator if the flows of a user share one. */
int32_t ackclock_open_flow(ackclock_regulator *regulator, uint32_t flow, uint32_t user);

/* Closes a flow. All that it holds or keeps follows by `ackclock_poll_output`. */
int32_t ackclock_close_flow(ackclock_regulator *regulator, uint64_t now, uint32_t flow);

/* Returns the verdict about a data segment, before it enters the queue. */
int32_t ackclock_on_data(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, const ackclock_view *view);

/* Reports that the host has no room for the copy that ACKCLOCK_FORWARD_KEEP requested. */
int32_t ackclock_on_copy_refused(ackclock_regulator *regulator, const ackclock_segment *segment);

/* Reports that a segment has entered the queue. */
int32_t ackclock_on_queued(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, const ackclock_view *view);

/* Reports that the queue refused a segment, or that it was dropped later. `why` is an ACKCLOCK_CAUSE_*. */
int32_t ackclock_on_dropped(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, uint32_t why, const ackclock_view *view);

/* Reports that the last byte of a segment has left the queue. The view already shows the next transmission. */
int32_t ackclock_on_departed(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, const ackclock_view *view);

/* Reports that a segment no longer counts against the buffer; only for queues that keep segments until the receiver of
 * the radio acknowledges them. */
int32_t ackclock_on_freed(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, const ackclock_view *view);

/* Reports that the queue of a flow is empty and nothing is in transmission. */
int32_t ackclock_on_idle(ackclock_regulator *regulator, uint64_t now, uint32_t flow, const ackclock_view *view);

/* Hands a TCP segment with ACK or SYN from the mobile to the regulator. */
int32_t ackclock_on_ack(ackclock_regulator *regulator, uint64_t now, const ackclock_segment *segment, const ackclock_view *view);

/* Handles the timeout of the regulator that serves `flow`. Early calls change nothing. */
int32_t ackclock_on_timeout(ackclock_regulator *regulator, uint64_t now, uint32_t flow, const ackclock_view *view);

/* Writes the next action and returns 1; returns 0 if there is none. */
int32_t ackclock_poll_output(ackclock_regulator *regulator, uint64_t now, ackclock_output *output);

/* Writes the next deadline and the flow to name in `ackclock_on_timeout`, and returns 1; returns 0 without a deadline. */
int32_t ackclock_poll_timeout(ackclock_regulator *regulator, uint64_t *deadline, uint32_t *flow);

#ifdef __cplusplus
}
#endif

#endif
