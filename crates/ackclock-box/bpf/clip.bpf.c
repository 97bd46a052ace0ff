/* The clip: lowers the window of ACKs that pass an interface towards the radio, in the kernel. No packet leaves it.
 *
 * `clip_data` sees the packets of servers, `clip_acks` those of mobiles. On the mobile side of the radio, data comes in
 * and ACKs go out; on the network side, ACKs come in. User space writes an allowance for each subscriber; an ACK then
 * advertises at most "base + allowance", never less than what was advertised before. The law of the window is that of
 * `src/law.rs`, field for field.
 *
 * Only UAPI headers: no BTF of the running kernel is needed.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define INLINE static inline __attribute__((always_inline))

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*map_update)(void *map, const void *key, const void *value, __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*map_delete)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static __u64 (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*load_from_ip)(const void *skb, __u32 at, void *to, __u32 bytes, __u32 from) = (void *)BPF_FUNC_skb_load_bytes_relative;
static long (*load)(const void *skb, __u32 at, void *to, __u32 bytes) = (void *)BPF_FUNC_skb_load_bytes;
static long (*store)(void *skb, __u32 at, const void *from, __u32 bytes, __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*replace_checksum)(void *skb, __u32 at, __u64 from, __u64 to, __u64 flags) = (void *)BPF_FUNC_l4_csum_replace;
static void *(*ring_reserve)(void *ring, __u64 bytes, __u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*ring_submit)(void *record, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define net16(x) __builtin_bswap16(x)
#define net32(x) __builtin_bswap32(x)
#else
#define net16(x) (x)
#define net32(x) (x)
#endif

/* ---- What user space shares (src/maps.rs) ---- */

struct knobs {
	__u64 stale_ns;         /* an allowance older than this is not used */
	__u32 act;              /* 0: measure, write nothing */
	__u32 header;           /* bytes of the link header before the IP header */
	__u32 bypass;           /* not 0: write nothing, whatever `act` says */
	__u32 unused;
};

struct allowance {
	__u64 at_ns;            /* when it was written */
	__u32 bytes;
	__u32 base;             /* 0: the ACK (WRS), 1: the end of the data that arrived (WRD), 2: the ACK and what SACK reports */
	__u32 least;            /* smallest window, bytes */
	__u32 act;              /* 0: write nothing for this subscriber */
};

struct counts {
	__u64 in_bytes, out_bytes;          /* all that passes */
	__u64 in_regulated_bytes;           /* payload of flows whose windows can be clipped */
	__u64 in_flow_bytes;                /* of their packets with data */
	__u64 in_tcp_bytes;                 /* of all TCP packets */
	__u64 in_quic_bytes, in_udp_bytes, in_esp_bytes;
	__u64 acks, clipped, lower;         /* lower: the law's window is below the receiver's, written or not */
	__u64 stale, unknown, refused, lost_records, opened;
	__u64 in_packets, out_packets;      /* as they pass here: a device may join several into one */
	__u64 in_segments, out_segments;    /* as they are on the wire */
	__u64 protected;                    /* ACKs whose options forbid a change */
	__u64 in_payload_bytes, out_payload_bytes;  /* of all TCP packets */
};

/* Prefix of the addresses of one subscriber; IPv4 addresses as ::ffff:0:0/96. User space adds subscribers, not packets. */
struct subscriber { __u32 address[4]; };

/* All that passed to one subscriber. */
struct totals { __u64 in_bytes, in_flow_bytes; };

/* Key of a longest-prefix match. */
struct prefix { __u32 bits; __u32 address[4]; };

struct tuple { __u32 mobile[4], server[4]; __u16 mobile_port, server_port; };

struct flow {
	__u64 passed;                       /* payload bytes that arrived for the first time */
	__u64 data_told_ns, ack_told_ns;    /* last records */
	__u64 data_ns, ack_ns;              /* last packets with data, and last ACKs */
	__u32 number;
	__u32 arrived, told, acked, written_ack;
	__u32 segment;                      /* largest payload of a packet on the wire */
	__u32 reach;                        /* furthest right edge that the server knows, also of the SYN */
	__u32 elsewhere;                    /* end of the last data outside the window */
	__u32 repeated;                     /* packets with data that passed before */
	__u16 written, offered;
	__u8 scale, flags;
	__u8 bits;                          /* length of the subscriber's prefix */
	__u8 unused[5];
};
#define TOLD 1
#define ACKED 2
#define ELSEWHERE 4
#define DOUBTED 8                           /* a SYN passed: the numbers to come may be of another connection */
#define OWED 16                             /* data was told, and not that all of it is acknowledged */

/* A SYN is known by the number that its SYN-ACK has to acknowledge. */
struct half_open { struct tuple tuple; __u32 ack; };
struct opening { __u64 at_ns; __u16 window; __u8 scale, has_scale, bits, untouchable, unused[2]; };

/* Cumulative: a lost record loses nothing but its instant. */
struct record {
	__u64 at_ns;
	__u64 passed;
	__u64 others;                       /* bytes to the subscriber outside of connections; 0 in a record of an ACK */
	__u64 previous_ns;                  /* the packet before, of this connection and kind; 0: none */
	__u32 kind;                         /* 0: data, 1: an ACK, 2: a connection */
	__u32 flow;
	__u32 arrived;
	__u32 told;                         /* right edge; of a connection: the window of its SYN, bytes */
	__u32 acked;
	__u32 segment;
	__u32 value, echo;                  /* timestamps of TCP; of a connection: its round trip, microseconds, and 0 */
	__u32 stamped;
	__u32 repeated;                     /* packets with data that passed before */
	__u32 told_before;                  /* of an ACK: the right edge before it */
	__u32 unused;
	struct subscriber subscriber;
};
#define DATA 0
#define ACK_TOLD 1
#define OPENED 2
#define RECORD_EVERY_NS 1000000

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct knobs); } knobs SEC(".maps");
/* Addresses of subscribers, and the length of the prefix that tells one subscriber from another. */
struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 1024); __type(key, struct prefix); __type(value, __u32); __uint(map_flags, BPF_F_NO_PREALLOC); } prefixes SEC(".maps");
/* Only user space adds and removes subscribers: those of whom a connection had data, and those with much other traffic. */
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096); __type(key, struct subscriber); __type(value, struct allowance); } allowances SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096); __type(key, struct subscriber); __type(value, struct totals); } totals SEC(".maps");
/* Bytes to subscribers that are not added. A scan only evicts other entries of this map. */
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 2048); __type(key, struct subscriber); __type(value, __u64); } unlisted SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct counts); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u32); } numbers SEC(".maps");
/* Connections of which the SYN passed, those of which both SYNs did, and those that had data: a scan fills the first two and evicts
 * nothing that is regulated. */
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 16384); __type(key, struct half_open); __type(value, struct opening); } opening SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 8192); __type(key, struct tuple); __type(value, struct flow); } opened SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 16384); __type(key, struct tuple); __type(value, struct flow); } flows SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 20); } records SEC(".maps");

/* ---- Packets ---- */

struct tcp { __u16 from, to; __u32 seq, ack; __u8 offset, flags; __u16 window, checksum, urgent; };
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

struct packet { struct tuple tuple; struct tcp tcp; __u32 at, payload; __u8 protocol, version; };
#define TCP 6
#define UDP 17
#define ESP 50

/* Reads an unfragmented TCP packet, 0 if it is none; of what is none its protocol and the place of its header, if it has one. */
INLINE int parse(struct __sk_buff *skb, int from_mobile, struct packet *packet, __u32 header)
{
	__u32 total, length;
	__builtin_memset(packet, 0, sizeof *packet);
	if (skb->protocol == net16(0x0800)) {
		__u8 ip[20];
		if (load_from_ip(skb, 0, ip, sizeof ip, BPF_HDR_START_NET))
			return 0;
		if (ip[0] >> 4 != 4)
			return 0;
		__builtin_memcpy(from_mobile ? packet->tuple.mobile : packet->tuple.server, ip + 12, 4);
		__builtin_memcpy(from_mobile ? packet->tuple.server : packet->tuple.mobile, ip + 16, 4);
		packet->version = 4;
		if ((ip[6] & 0x3f) || ip[7])
			return 0;
		packet->protocol = ip[9];
		length = (ip[0] & 15) * 4;
		total = ip[2] << 8 | ip[3];
		if (length < 20)
			return 0;
	} else if (skb->protocol == net16(0x86dd)) {
		__u8 ip[40];
		if (load_from_ip(skb, 0, ip, sizeof ip, BPF_HDR_START_NET))
			return 0;
		if (ip[0] >> 4 != 6)
			return 0;
		packet->version = 6;
		packet->protocol = ip[6];
		length = 40;
		total = ip[4] << 8 | ip[5];
		if (total)
			total += 40;
		__builtin_memcpy(from_mobile ? packet->tuple.mobile : packet->tuple.server, ip + 8, 16);
		__builtin_memcpy(from_mobile ? packet->tuple.server : packet->tuple.mobile, ip + 24, 16);
	} else {
		return 0;
	}
	packet->at = length;
	if (packet->protocol != TCP)
		return 0;
	/* What a device joined beyond 64 KiB has 0 for its length. */
	if (!total)
		total = skb->len - header;
	if (load_from_ip(skb, length, &packet->tcp, sizeof packet->tcp, BPF_HDR_START_NET))
		return 0;
	packet->tuple.mobile_port = from_mobile ? packet->tcp.from : packet->tcp.to;
	packet->tuple.server_port = from_mobile ? packet->tcp.to : packet->tcp.from;
	__u32 headers = length + (packet->tcp.offset >> 4) * 4;
	if (headers < length + 20 || total < headers)
		return 0;
	packet->payload = total - headers;
	return 1;
}

struct options { __u32 value, echo; __u8 scale, has_scale, is_stamped; };

/* Whether an option forbids a change of the header: the table PROTECTING_OPTIONS of ackclock-core, with the reasons. Two of
 * them say nothing yet on a SYN without ACK, which only offers them. */
INLINE int is_protecting(__u8 kind, int is_offer)
{
	return kind == 15 || kind == 19 || kind == 29 || (!is_offer && (kind == 14 || kind == 30));
}

/* Reads the options of a packet. Returns 0 where they forbid a change of the header or cannot be read to their end. */
INLINE int read_options(struct __sk_buff *skb, struct packet *packet, int is_offer, struct options *options)
{
	__u32 at = packet->at + 20, end = packet->at + (packet->tcp.offset >> 4) * 4;
	for (int number = 0; number < 20; number++) {
		__u8 option[3] = {};
		if (at >= end)
			return 1;
		if (load_from_ip(skb, at, option, 1, BPF_HDR_START_NET))
			return 0;
		if (option[0] == 0)
			return 1;
		if (option[0] == 1) {
			at++;
			continue;
		}
		if (load_from_ip(skb, at, option, 2, BPF_HDR_START_NET) || option[1] < 2)
			return 0;
		if (option[0] == 3) {
			if (load_from_ip(skb, at, option, 3, BPF_HDR_START_NET))
				return 0;
			options->has_scale = 1;
			options->scale = option[2] > 14 ? 14 : option[2];
		}
		if (is_protecting(option[0], is_offer))
			return 0;
		at += option[1];
	}
	return at >= end;
}

/* Whether an ACK may be changed. Most ACKs have no option, or padding and timestamps alone. */
INLINE int is_changeable(struct __sk_buff *skb, struct packet *packet)
{
	struct options options = {};
	__u32 first = 0, words = packet->tcp.offset >> 4;
	if (words == 5)
		return 1;
	if (words == 8 && !load_from_ip(skb, packet->at + 20, &first, sizeof first, BPF_HDR_START_NET) &&
	    first == net32(0x0101080a))
		return 1;
	return read_options(skb, packet, 0, &options);
}

/* Timestamps where they stand first, as all usual systems put them. */
INLINE void stamps(struct __sk_buff *skb, struct packet *packet, struct options *options)
{
	__u8 option[12];
	if (packet->tcp.offset >> 4 < 8 || load_from_ip(skb, packet->at + 20, option, sizeof option, BPF_HDR_START_NET))
		return;
	if (option[0] != 1 || option[1] != 1 || option[2] != 8 || option[3] != 10)
		return;
	options->value = (__u32)option[4] << 24 | option[5] << 16 | option[6] << 8 | option[7];
	options->echo = (__u32)option[8] << 24 | option[9] << 16 | option[10] << 8 | option[11];
	options->is_stamped = 1;
}

/* Number of packets on the wire of which this one consists. */
INLINE __u32 segments_of(struct __sk_buff *skb)
{
	return skb->gso_segs > 1 ? skb->gso_segs : 1;
}

INLINE int after(__u32 one, __u32 other)
{
	return (__s32)(one - other) > 0;
}

INLINE __u32 since(__u32 one, __u32 earlier)
{
	return (__s32)(one - earlier) < 0 ? 0 : one - earlier;
}

/* Bytes beyond an ACK that its SACK blocks report. */
INLINE __u32 sacked(struct __sk_buff *skb, struct packet *packet, __u32 ack)
{
	__u32 at = packet->at + 20, end = packet->at + (packet->tcp.offset >> 4) * 4, bytes = 0;
	for (int number = 0; number < 10; number++) {
		__u8 option[2] = {};
		if (at + 10 > end || load_from_ip(skb, at, option, 1, BPF_HDR_START_NET) || !option[0])
			return 0;
		if (option[0] == 1) {
			at++;
			continue;
		}
		if (load_from_ip(skb, at, option, 2, BPF_HDR_START_NET) || option[1] < 2)
			return 0;
		if (option[0] != 5) {
			at += option[1];
			continue;
		}
		for (__u32 block = 0; block < 4; block++) {
			__u32 edges[2] = {}, place = 2 + 8 * block;
			if (place + 8 > option[1] || at + place + 8 > end)
				break;
			if (load_from_ip(skb, at + place, edges, sizeof edges, BPF_HDR_START_NET))
				break;
			__u32 left = net32(edges[0]);
			bytes += since(net32(edges[1]), after(ack, left) ? ack : left);
		}
		return bytes;
	}
	return 0;
}

/* Address of the mobile, of which `bits` count. */
INLINE struct subscriber subscriber_of(struct packet *packet, __u32 bits)
{
	struct subscriber of = {};
	if (packet->version == 4) {
		of.address[2] = net32(0xffff);
		of.address[3] = packet->tuple.mobile[0];
	} else {
		__builtin_memcpy(of.address, packet->tuple.mobile, sizeof of.address);
	}
	for (__u32 word = 0; word < 4; word++) {
		__u32 counted = bits > 32 * word ? bits - 32 * word : 0;
		if (!counted)
			of.address[word] = 0;
		else if (counted < 32)
			of.address[word] &= net32(~0u << (32 - counted));
	}
	return of;
}

/* Length of the prefix that names the subscriber; null where the mobile is none. */
INLINE __u32 *prefix_of(struct packet *packet)
{
	struct subscriber whole = subscriber_of(packet, 128);
	struct prefix key = { .bits = 128 };
	__builtin_memcpy(key.address, whole.address, sizeof key.address);
	return packet->version ? map_lookup(&prefixes, &key) : 0;
}

INLINE void tell(struct __sk_buff *skb, struct packet *packet, struct flow *flow, __u64 now, __u64 previous, __u32 kind, __u64 others, __u32 told_before, struct counts *counted)
{
	struct record *record = ring_reserve(&records, sizeof *record, 0);
	if (!record) {
		counted->lost_records++;
		return;
	}
	struct options options = {};
	stamps(skb, packet, &options);
	record->at_ns = now;
	record->passed = flow->passed;
	record->others = others;
	record->previous_ns = previous;
	record->kind = kind;
	record->flow = flow->number;
	record->arrived = flow->arrived;
	record->told = flow->told;
	record->acked = flow->acked;
	record->segment = flow->segment;
	record->value = options.value;
	record->echo = options.echo;
	record->stamped = options.is_stamped;
	record->repeated = flow->repeated;
	record->told_before = told_before;
	record->unused = 0;
	record->subscriber = subscriber_of(packet, flow->bits);
	ring_submit(record, BPF_RB_NO_WAKEUP);
}

INLINE struct flow *find(struct tuple *tuple)
{
	struct flow *flow = map_lookup(&flows, tuple);
	return flow ? flow : map_lookup(&opened, tuple);
}

/* Anybody can send a SYN: what is known of its ports stays in force until the other end answers it. If the answer passes
 * elsewhere, the connection's numbers are outside the window, and are not learnt with the scale of the last connection. */
INLINE void doubt(struct tuple *tuple)
{
	struct flow *flow = find(tuple);
	if (flow)
		flow->flags |= DOUBTED;
}

/* ---- From the servers ---- */

/* Bytes that no box can do anything for. */
INLINE void count_other(struct __sk_buff *skb, struct packet *packet, struct counts *counted)
{
	__u16 ports[2] = {};
	if (packet->protocol == ESP)
		counted->in_esp_bytes += skb->len;
	if (packet->protocol != UDP)
		return;
	load_from_ip(skb, packet->at, ports, sizeof ports, BPF_HDR_START_NET);
	if (ports[0] == net16(443))
		counted->in_quic_bytes += skb->len;
	else
		counted->in_udp_bytes += skb->len;
}

/* An answer to a SYN that passed begins a new connection: what was known of its ports is of another. */
INLINE void on_syn_ack(struct __sk_buff *skb, struct packet *packet, struct counts *counted)
{
	__u32 zero = 0;
	struct half_open key = { .tuple = packet->tuple, .ack = packet->tcp.ack };
	struct opening *half = map_lookup(&opening, &key);
	struct options options = {};
	if (!half)
		return;
	map_delete(&flows, &packet->tuple);
	map_delete(&opened, &packet->tuple);
	__u32 *number = map_lookup(&numbers, &zero);
	if (!number || half->untouchable || !read_options(skb, packet, 0, &options)) {
		map_delete(&opening, &key);
		return;
	}
	struct flow flow = {
		.number = __sync_fetch_and_add(number, 1),
		.arrived = net32(packet->tcp.seq) + 1,
		.acked = net32(packet->tcp.seq) + 1,
		.reach = net32(packet->tcp.seq) + 1 + half->window,
		.offered = half->window,
		.bits = half->bits,
		/* Windows are scaled only where both ends can (RFC 7323 section 2.2). */
		.scale = half->has_scale && options.has_scale ? half->scale & 15 : 0,
	};
	__u64 now = now_ns();
	struct record *record = ring_reserve(&records, sizeof *record, 0);
	if (record) {
		record->at_ns = now;
		record->passed = record->others = record->previous_ns = 0;
		record->kind = OPENED;
		record->flow = flow.number;
		record->arrived = flow.arrived;
		record->told = half->window;
		record->acked = flow.acked;
		record->segment = 0;
		record->value = (now - half->at_ns) / 1000;
		record->echo = record->stamped = record->repeated = record->told_before = record->unused = 0;
		record->subscriber = subscriber_of(packet, flow.bits);
		ring_submit(record, BPF_RB_NO_WAKEUP);
	} else {
		counted->lost_records++;
	}
	map_delete(&opening, &key);
	if (!map_update(&opened, &packet->tuple, &flow, BPF_ANY))
		counted->opened++;
}

INLINE void count_unlisted(struct __sk_buff *skb, struct subscriber *subscriber)
{
	__u64 *known = map_lookup(&unlisted, subscriber), bytes = skb->len;
	if (known)
		__sync_fetch_and_add(known, bytes);
	else
		map_update(&unlisted, subscriber, &bytes, BPF_ANY);
}

/* Counts a packet for its subscriber, if user space has added it, and returns the bytes outside of connections. The prefix
 * length is that of the connection, if it is known. */
INLINE __u64 count_for(struct __sk_buff *skb, struct packet *packet, struct flow *flow)
{
	__u32 *found = flow ? 0 : prefix_of(packet);
	if (!flow && !found)
		return 0;
	struct subscriber subscriber = subscriber_of(packet, flow ? flow->bits : *found);
	struct totals *all = map_lookup(&totals, &subscriber);
	if (!all) {
		if (!flow)
			count_unlisted(skb, &subscriber);
		return 0;
	}
	__sync_fetch_and_add(&all->in_bytes, skb->len);
	if (flow && packet->payload)
		__sync_fetch_and_add(&all->in_flow_bytes, skb->len);
	return all->in_bytes - all->in_flow_bytes;
}

SEC("classifier")
int clip_data(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct packet packet;
	struct counts *counted = map_lookup(&counts, &zero);
	struct knobs *set = map_lookup(&knobs, &zero);
	if (!counted || !set)
		return TC_ACT_UNSPEC;
	counted->in_bytes += skb->len;
	counted->in_packets++;
	counted->in_segments += segments_of(skb);
	if (!parse(skb, 0, &packet, set->header)) {
		count_other(skb, &packet, counted);
		count_for(skb, &packet, 0);
		return TC_ACT_UNSPEC;
	}
	counted->in_tcp_bytes += skb->len;
	counted->in_payload_bytes += packet.payload;
	if ((packet.tcp.flags & (SYN | ACK | RST)) == SYN)
		doubt(&packet.tuple);
	if ((packet.tcp.flags & (SYN | ACK | RST)) == (SYN | ACK)) {
		on_syn_ack(skb, &packet, counted);
		return TC_ACT_UNSPEC;
	}
	struct flow *flow = find(&packet.tuple);
	__u64 others = count_for(skb, &packet, flow);
	if (!flow || !packet.payload || (packet.tcp.flags & SYN))
		return TC_ACT_UNSPEC;
	counted->in_regulated_bytes += packet.payload;
	counted->in_flow_bytes += skb->len;
	__u32 end = net32(packet.tcp.seq) + packet.payload;
	/* Anybody can send any numbers. Those from the ACK up to the right edge are believed (RFC 9293 section 3.10.7.4). */
	if (!after(end, flow->acked))
		return TC_ACT_UNSPEC;
	if (end - flow->acked > since(flow->reach, flow->acked)) {
		flow->elsewhere = end;
		flow->flags |= ELSEWHERE;
		return TC_ACT_UNSPEC;
	}
	__u32 segment = skb->gso_size && skb->gso_size < packet.payload ? skb->gso_size : packet.payload;
	if (segment > flow->segment)
		flow->segment = segment;
	int is_new = after(end, flow->arrived);
	if (is_new) {
		flow->passed += end - flow->arrived;
		flow->arrived = end;
	} else {
		flow->repeated++;
	}
	__u64 now = now_ns(), previous = flow->data_ns;
	flow->data_ns = now;
	if (now - flow->data_told_ns >= RECORD_EVERY_NS) {
		flow->data_told_ns = now;
		flow->flags |= OWED;
		tell(skb, &packet, flow, now, previous, DATA, others, 0, counted);
	}
	if (is_new && !map_lookup(&flows, &packet.tuple) && !map_update(&flows, &packet.tuple, flow, BPF_NOEXIST))
		map_delete(&opened, &packet.tuple);
	return TC_ACT_UNSPEC;
}

/* ---- From the mobiles ---- */

INLINE void on_syn(struct __sk_buff *skb, struct packet *packet)
{
	struct options options = {};
	__u32 *bits = prefix_of(packet);
	doubt(&packet->tuple);
	if (!bits)
		return;
	int untouchable = !read_options(skb, packet, 1, &options);
	struct opening half = {
		.at_ns = now_ns(), .window = net16(packet->tcp.window), .untouchable = untouchable,
		.scale = options.scale, .has_scale = options.has_scale, .bits = *bits,
	};
	struct half_open key = { .tuple = packet->tuple, .ack = net32(net32(packet->tcp.seq) + 1) };
	map_update(&opening, &key, &half, BPF_ANY);
	if (packet->payload) {
		/* The answer may acknowledge the data of the SYN too (RFC 7413). */
		key.ack = net32(net32(packet->tcp.seq) + 1 + packet->payload);
		map_update(&opening, &key, &half, BPF_ANY);
	}
}

/* An ACK outside the window. If the other end sent data there too, both mean it: data took another path meanwhile. */
INLINE void learn_again(struct flow *flow, __u32 ack, __u32 offered)
{
	if ((flow->flags & (ELSEWHERE | DOUBTED)) != ELSEWHERE || flow->elsewhere - ack > 0xffffu << (flow->scale & 15))
		return;
	flow->arrived = flow->elsewhere;
	flow->acked = flow->written_ack = ack;
	flow->offered = flow->written = offered;
	flow->told = flow->reach = ack + (offered << (flow->scale & 15));
	flow->flags = (flow->flags | TOLD | ACKED) & ~ELSEWHERE;
}

/* Field that an ACK gets for a window up to `target`, and whether it is below the receiver's. */
INLINE __u32 field_for(struct flow *flow, __u32 ack, __u32 offered, __u32 target, __u32 least, int duplicate, int *lower)
{
	__u32 scale = flow->scale & 15, unit = 1 << scale;
	__u32 window = since(target, ack);
	if (window < least)
		window = least;
	if (window > offered << scale)
		window = offered << scale;
	__u32 field = window >> scale, rounded = (least + unit - 1) >> scale;
	if (field < rounded)
		field = rounded;
	*lower = field < offered;
	if (duplicate && (flow->flags & TOLD) && flow->written_ack == ack)
		return flow->written < offered ? flow->written : offered;
	__u32 kept = flow->flags & TOLD ? (since(flow->told, ack) + unit - 1) >> scale : 0;
	if (field < kept)
		field = kept;
	if (field < 1)
		field = 1;
	return field < offered ? field : offered;
}

/* Writes the field where what stands there is what was read. */
INLINE int write_field(struct __sk_buff *skb, struct packet *packet, __u32 header, __u32 field)
{
	struct tcp back;
	__u32 at = header + packet->at;
	__u16 window = net16(field);
	if (load(skb, at, &back, sizeof back) || back.from != packet->tcp.from || back.to != packet->tcp.to ||
	    back.seq != packet->tcp.seq || back.ack != packet->tcp.ack || back.window != packet->tcp.window ||
	    back.checksum != packet->tcp.checksum)
		return 0;
	if (replace_checksum(skb, at + 16, packet->tcp.window, window, 2))
		return 0;
	if (store(skb, at + 14, &window, 2, 0)) {
		replace_checksum(skb, at + 16, window, packet->tcp.window, 2);
		return 0;
	}
	return 1;
}

SEC("classifier")
int clip_acks(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct packet packet;
	struct counts *counted = map_lookup(&counts, &zero);
	struct knobs *set = map_lookup(&knobs, &zero);
	if (!counted || !set)
		return TC_ACT_UNSPEC;
	counted->out_bytes += skb->len;
	counted->out_packets++;
	counted->out_segments += segments_of(skb);
	if (!parse(skb, 1, &packet, set->header))
		return TC_ACT_UNSPEC;
	counted->out_payload_bytes += packet.payload;
	if ((packet.tcp.flags & (SYN | ACK | RST)) == SYN) {
		on_syn(skb, &packet);
		return TC_ACT_UNSPEC;
	}
	if ((packet.tcp.flags & (SYN | ACK | RST)) == (SYN | ACK))
		doubt(&packet.tuple);
	if ((packet.tcp.flags & (SYN | ACK | RST)) != ACK)
		return TC_ACT_UNSPEC;
	if (!is_changeable(skb, &packet)) {
		counted->protected++;
		return TC_ACT_UNSPEC;
	}
	struct flow *flow = find(&packet.tuple);
	if (!flow) {
		counted->unknown++;
		return TC_ACT_UNSPEC;
	}
	counted->acks++;
	__u32 ack = net32(packet.tcp.ack), offered = net16(packet.tcp.window), scale = flow->scale & 15;
	/* Within a window of the last ACK, and up to the data that passed here (RFC 5961 section 5). A FIN counts as one byte. */
	__u32 least = flow->acked - (0xffffu << scale);
	if (ack - least > flow->arrived + 1 - least) {
		counted->unknown++;
		learn_again(flow, ack, offered);
		return TC_ACT_UNSPEC;
	}
	int ahead = after(flow->arrived, ack);
	int duplicate = 0, advances = !(flow->flags & ACKED) || after(ack, flow->acked);
	if (advances) {
		flow->acked = ack;
		flow->flags |= ACKED;
	} else {
		duplicate = ack == flow->acked && offered == flow->offered && ahead && !packet.payload && !(packet.tcp.flags & FIN);
	}
	flow->offered = offered;
	/* A closed window is the receiver's own affair. */
	if (!offered)
		return TC_ACT_UNSPEC;
	struct subscriber subscriber = subscriber_of(&packet, flow->bits);
	struct allowance *allowed = map_lookup(&allowances, &subscriber);
	__u64 now = now_ns(), previous = flow->ack_ns;
	flow->ack_ns = now;
	__u32 field = offered;
	int fresh = allowed && allowed->at_ns && now - allowed->at_ns < set->stale_ns;
	if ((packet.tcp.flags & FIN) && !ahead) {
		/* So is the last ACK of a connection. */
	} else if (fresh) {
		int lower = 0;
		__u32 base = ack;
		if (allowed->base == 1)
			base = flow->arrived;
		if (allowed->base == 2)
			base = ack + sacked(skb, &packet, ack);
		__u32 target = (__s32)(base - ack) < 0 ? ack : base;
		field = field_for(flow, ack, offered, target + allowed->bytes, allowed->least, duplicate, &lower);
		counted->lower += lower;
	} else {
		counted->stale += allowed && set->act && !set->bypass;
	}
	if (!set->act || set->bypass || !allowed || !allowed->act)
		field = offered;
	if (field != offered) {
		if (write_field(skb, &packet, set->header, field)) {
			counted->clipped++;
		} else {
			counted->refused++;
			field = offered;
		}
	}
	flow->written_ack = ack;
	flow->written = field;
	__u32 edge = ack + (field << scale), told_before = flow->flags & TOLD ? flow->told : ack;
	if (!(flow->flags & TOLD) || after(edge, flow->told)) {
		flow->told = edge;
		flow->flags |= TOLD;
		if (after(edge, flow->reach))
			flow->reach = edge;
		advances = 1;
	}
	/* Nothing may follow the ACK of all data, so it is told at once, and once for each record of data. */
	int completes = ack == flow->arrived && (flow->flags & OWED);
	if (advances && (completes || now - flow->ack_told_ns >= RECORD_EVERY_NS)) {
		flow->ack_told_ns = now;
		if (ack == flow->arrived)
			flow->flags &= ~OWED;
		tell(skb, &packet, flow, now, previous, ACK_TOLD, 0, told_before, counted);
	}
	return TC_ACT_UNSPEC;
}

char terms[] SEC("license") = "GPL";
