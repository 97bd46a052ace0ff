/* The detour of a gateway: the packets of the devices behind an interface cross an emulated link in user space.
 *
 *              ingress: from_devices                     egress: to_devices
 *   devices ----------+                                +---------- routing, firewall, NAT of the machine
 *                     v                                v
 *              TUN of the devices   = ackclock =   TUN of the network
 *                     |  ingress: back_to_devices      |  ingress: back_to_network
 *   devices <---------+ (egress of the interface)      +---------> ingress of the interface
 *
 * A packet goes on where it left: routing, firewall and address translation see it once, from its own interface. A
 * packet that was on the link has the mark SEEN in tc_index, until the program at the interface has passed it.
 *
 * Only UAPI headers: no BTF of the running kernel is needed.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static long (*load_from_ip)(const void *skb, __u32 at, void *to, __u32 bytes, __u32 from) = (void *)BPF_FUNC_skb_load_bytes_relative;
static long (*store)(void *skb, __u32 at, const void *from, __u32 bytes, __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*redirect)(__u32 interface, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*redirect_to_neighbour)(__u32 interface, void *next, int bytes, __u64 flags) = (void *)BPF_FUNC_redirect_neigh;
static long (*add_header)(void *skb, __u32 bytes, __u64 flags) = (void *)BPF_FUNC_skb_change_head;
static long (*change_type)(void *skb, __u32 type) = (void *)BPF_FUNC_skb_change_type;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define net16(x) __builtin_bswap16(x)
#else
#define net16(x) (x)
#endif

/* ---- What user space sets before loading (src/gateway.rs) ---- */

volatile const __u32 interface = 0;
volatile const __u32 devices_tun = 0;
volatile const __u32 network_tun = 0;
volatile const __u32 header = 0;        /* bytes of the interface's link header: 14 (Ethernet) or 0 */

#define ICMPV6 58
#define SEEN 0xacc1
#define PACKET_HOST 0

/* Unicast IP, without the neighbour discovery and the link-local addresses by which the ends of a wire find each other. */
INLINE int crosses(struct __sk_buff *skb)
{
	if (skb->protocol == net16(ETH_P_IP)) {
		__u8 to;
		return !load_from_ip(skb, 16, &to, sizeof to, BPF_HDR_START_NET) && to < 224;
	}
	if (skb->protocol == net16(ETH_P_IPV6)) {
		__u8 ip[41];
		if (load_from_ip(skb, 0, ip, sizeof ip, BPF_HDR_START_NET))
			return 0;
		int is_local = (ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80) || (ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80);
		int is_discovery = ip[6] == ICMPV6 && ip[40] >= 133 && ip[40] <= 137;
		return ip[24] != 0xff && !is_local && !is_discovery;
	}
	return 0;
}

/* Broadcasts and multicasts stay, whatever their IP address. */
INLINE int is_to_group(struct __sk_buff *skb)
{
	__u8 first;
	return header && !load_from_ip(skb, 0, &first, sizeof first, BPF_HDR_START_MAC) && (first & 1);
}

INLINE int divert(struct __sk_buff *skb, __u32 tun)
{
	return is_to_group(skb) || !crosses(skb) ? TC_ACT_UNSPEC : redirect(tun, 0);
}

SEC("classifier") int from_devices(struct __sk_buff *skb)
{
	if (skb->tc_index != SEEN)
		return divert(skb, devices_tun);
	/* Its link header has no addresses, so the kernel took it for a packet to another host. */
	change_type(skb, PACKET_HOST);
	skb->tc_index = 0;
	return TC_ACT_UNSPEC;
}

SEC("classifier") int to_devices(struct __sk_buff *skb)
{
	if (skb->tc_index != SEEN)
		return divert(skb, network_tun);
	skb->tc_index = 0;
	return TC_ACT_UNSPEC;
}

/* A packet from the link gets a link header, and the mark. */
INLINE int is_ready(struct __sk_buff *skb)
{
	__u16 protocol = skb->protocol;
	skb->tc_index = SEEN;
	if (!header)
		return 1;
	return !add_header(skb, ETH_HLEN, 0) && !store(skb, 12, &protocol, sizeof protocol, 0);
}

SEC("classifier") int back_to_devices(struct __sk_buff *skb)
{
	if (!is_ready(skb))
		return TC_ACT_SHOT;
	return header ? redirect_to_neighbour(interface, 0, 0, 0) : redirect(interface, 0);
}

SEC("classifier") int back_to_network(struct __sk_buff *skb)
{
	return is_ready(skb) ? redirect(interface, BPF_F_INGRESS) : TC_ACT_SHOT;
}

char terms[] SEC("license") = "Dual MIT/GPL";
