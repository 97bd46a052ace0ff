//! `ackclock box`: runs a regulator on a network interface of this machine, before a radio link outside our control.

mod check;
mod file;
mod notify;
mod page;

pub(super) use file::check_table;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ackclock_box::clip::{ClipError, Pins};
use ackclock_box::config::Policy;
use ackclock_box::daemon::{BoxError, Daemon, Options, Report, STALE, Said, Settings};
use ackclock_box::files::Files;
use ackclock_box::maps::Counts;
use ackclock_box::observers::MOST_FLOWS;
use ackclock_box::shares::Shares;
use ackclock_box::subscribers::{MOST_CONNECTIONS, SubscriberReport};
