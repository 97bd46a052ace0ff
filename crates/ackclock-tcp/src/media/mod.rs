//! Real-time media over UDP: the two ends of a video call's one direction.
//!
//! The [sender](MediaSender) packetises frames at the target bitrate of its [congestion control](gcc), paces the packets,
//! and retransmits each lost packet at most once. The [receiver](MediaReceiver) shows complete frames at once, requests
//! what is missing, and reports the bitrate that the path can deliver.

mod config;
mod frames;
pub mod gcc;
mod message;
mod receiver;
mod sender;

pub use self::config::Media;
pub use self::frames::FrameStats;
pub use self::receiver::MediaReceiver;
pub use self::sender::{MediaSender, MediaStats};

#[cfg(test)]
mod tests;
