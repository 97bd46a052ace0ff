//! Names of a box in the kernel: its programs, and its pins in the BPF file system.

/// Names of the BPF programs: the program that sees the packets from the servers, and the program that sees the packets
/// from the mobiles.
pub(crate) const PROGRAMS: [&str; 2] = ["clip_data", "clip_acks"];

/// File names of the pinned links of a box on either side.
pub(crate) const LINKS: [&str; 4] = ["data-in", "acks-out", "data-out", "acks-in"];

/// Mount point of the BPF file system.
pub(crate) const ROOT: &str = "/sys/fs/bpf";
/// Folder that contains the pins of all boxes.
pub(crate) const PINS: &str = "/sys/fs/bpf/ackclock";
/// Command that mounts the BPF file system so that only root can create entries in it.
pub(crate) const MOUNT: &str = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf";
