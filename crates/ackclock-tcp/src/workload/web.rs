//! # Web pages
//!
//! ## Source
//! CR04 Table I describes the web workload. Times between pages (mean 15 s), numbers of objects on a page (mean 5), and
//! times between objects (mean 10 ms) are exponential. Sizes of objects follow a bounded Pareto distribution (mean 12,
//! shape 1.2, maximum 200 packets of 1 KB).
//!
//! ## What it does
//! A browser requests pages, and shortly one after another the objects of each page. Each object or each page has its
//! own connection, as `connection_per` selects. The first page starts after one inter-page time, which prevents
//! synchronisation of many browsers. Numbers of objects are rounded up, and sizes given in packets are rounded up to
//! whole packets. The means of CR04 are before rounding (after rounding: 5.52 objects of 12.49 packets).
//!
//! All random values of a page come from a separate stream in a fixed order. The network's effect on one page therefore
//! does not change another page.
//!
//! ## Differences from the source
//! - CR04 does not say whether objects share a connection, nor how the time between pages is measured. The defaults are
//!   one connection per object, and times from start to start; options select the alternatives.
//! - Requests take no time: without a handshake the server starts to send at the instant of the request.
//!
//! ## Validation
//! Unit tests compare mean and distribution of random values with theory. `tests/transfers.rs` of `ackclock-scenario`
//! checks hand-computed latencies on an idle link.

use ackclock_core::{Config, ConfigError, Law, Size, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BoundedPareto, Client, Course, Place, Request, Since, Then, Workload, check_time, size_in_bytes,
};

/// Web pages of several objects, requested by a browser.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Time between pages: a distribution.
    pub page_time: Law<Span>,
    /// Whether `page_time` counts from the start or from the end of a page.
    pub page_time_from: Since,
    /// Mean number of objects per page: exponential, rounded up.
    pub objects: f64,
    /// Time between the requests for two objects of a page: a distribution.
    pub object_time: Law<Span>,
    /// Mean size of an object, in full packets of payload or in bytes: bounded Pareto, rounded up to whole packets or
    /// bytes.
    pub object_size: Size,
    /// Shape of the size distribution; a smaller shape gives a heavier tail.
    pub shape: f64,
    /// Largest size of an object, in the same unit as `object_size`.
    pub max_size: Size,
    /// Whether each object or each page has its own connection.
    pub connection_per: Per,
}

/// Scope of a connection: one object or one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// One connection for each object.
    #[default]
    Object,
    /// One connection for each page. The objects of the page follow one another on the connection.
    Page,
}

impl Default for Web {
    fn default() -> Self {
        let exponential = |law: &str| law.parse().expect("the laws below are written as laws are");
        Self {
            page_time: exponential("e(15s)"),
            page_time_from: Since::Start,
            objects: 5.0,
            object_time: exponential("e(10ms)"),
            object_size: Size::Packets(12),
            shape: 1.2,
            max_size: Size::Packets(200),
            connection_per: Per::Object,
        }
    }
}

/// Largest accepted mean number of objects per page. A larger mean number of objects is assumed to be a mistake.
const MOST_OBJECTS: f64 = 1e6;

impl Config for Web {
    fn check(&self) -> Result<(), ConfigError> {
        check_time("page_time", &self.page_time)?;
        if !(self.objects > 0.0 && self.objects <= MOST_OBJECTS) {
            return Err(ConfigError::new("objects", format!("{} is not between 0 and 1e6", self.objects)));
        }
        if !(self.shape > 0.0 && self.shape.is_finite()) {
            return Err(ConfigError::new("shape", format!("{} is not above 0", self.shape)));
        }
        let (mean, max) = (self.object_size, self.max_size);
        match (mean, max) {
            (Size::Packets(1..), Size::Packets(_)) | (Size::Bytes(1..), Size::Bytes(_)) => {}
            (Size::Packets(1..) | Size::Bytes(1..), _) => {
                let message = format!("{max} is not in the same unit as `object_size`, {mean}");
                return Err(ConfigError::new("max_size", message));
            }
            _ => {
                let message =
                    format!("{mean} is not the size of an object; it is written like \"12p\" or \"12kB\"");
                return Err(ConfigError::new("object_size", message));
            }
        }
        if size_in_bytes(mean, 1) > size_in_bytes(max, 1) {
            return Err(ConfigError::new("max_size", format!("{max} is below the mean, {mean}")));
        }
        Ok(())
    }
}

impl Web {
    /// Distribution of object sizes, in packets or bytes as configured.
    fn sizes(&self) -> BoundedPareto {
        // The check of the options accepts only packets and bytes.
        let number = |size| size_in_bytes(size, 1).unwrap_or(1) as f64;
        BoundedPareto::by_mean(number(self.object_size), self.shape, number(self.max_size))
    }
}

impl Workload for Web {
    fn course(&self, place: &Place) -> Course {
        let mut browser = Browser {
            sizes: self.sizes(),
            unit: if let Size::Packets(_) = self.object_size { place.payload.into() } else { 1 },
            config: self.clone(),
            streams: place.streams.clone(),
            pages: 0,
            coming: None,
            open: Vec::new(),
            connections: 0,
            due: Time::NEVER,
        };
        browser.expect_page(place.start);
        Course::Client(Box::new(browser))
    }
}

/// Client that requests the pages of [`Web`].
struct Browser {
    config: Web,
    sizes: BoundedPareto,
    /// Number of bytes per unit of object size.
    unit: u64,
    streams: Streams,
    /// Number of pages whose start time is known.
    pages: u64,
    /// Start time of the next page, and its random stream.
    coming: Option<(Time, Stream)>,
    /// Pages that are not finished. A page is finished when all objects are requested and, if the next page waits for
    /// the end, completely received.
    open: Vec<Page>,
    /// Number of connections opened so far.
    connections: u64,
    due: Time,
}

/// A web page that is not finished.
struct Page {
    stream: Stream,
    /// Number of the first connection of the page.
    first: u64,
    objects: u64,
    asked: u64,
    answered: u64,
    /// Time at which the next object is requested.
    next: Time,
}

impl Client for Browser {
    fn due(&self) -> Time {
        self.due
    }

    fn request(&mut self) -> Request {
        let page =
            self.open.iter().position(|page| page.next == self.due).unwrap_or_else(|| self.begin_page());
        let Web { connection_per, object_time, page_time_from, .. } = &self.config;
        let page = &mut self.open[page];
        let units = libm::ceil(self.sizes.draw(&mut page.stream)) as u64;
        let connection = page.first + if *connection_per == Per::Object { page.asked } else { 0 };
        page.asked += 1;
        let is_last = page.asked == page.objects;
        let more = !is_last && *connection_per == Per::Page;
        page.next = if is_last { Time::NEVER } else { page.next + object_time.draw(&mut page.stream) };
        if *page_time_from == Since::Start {
            self.open.retain(|page| page.asked < page.objects);
        }
        self.note_due();
        Request { connection, bytes: units * self.unit, then: if more { Then::More } else { Then::Close } }
    }

    fn on_answered(&mut self, now: Time, connection: u64) {
        if self.config.page_time_from == Since::Start {
            return;
        }
        // Only one page is open at a time, because the next page waits for the end of the open page.
        let Some(page) = self.open.iter_mut().find(|page| connection >= page.first) else { return };
        page.answered += 1;
        if page.answered == page.objects {
            self.open.clear();
            self.expect_page(now);
        }
    }
}

impl Browser {
    /// Schedules the next page, one inter-page time after `since`.
    fn expect_page(&mut self, since: Time) {
        let mut stream = self.streams.stream(&format!("page {}", self.pages));
        self.pages += 1;
        self.coming = Some((since + self.config.page_time.draw(&mut stream), stream));
        self.note_due();
    }

    /// Opens the page that is due, and returns the index of the page.
    fn begin_page(&mut self) -> usize {
        let (start, mut stream) =
            self.coming.take().expect("a request is due, so a page that is open or coming is");
        let objects = objects(self.config.objects, &mut stream);
        let first = self.connections;
        self.connections += if self.config.connection_per == Per::Object { objects } else { 1 };
        self.open.push(Page { stream, first, objects, asked: 0, answered: 0, next: start });
        if self.config.page_time_from == Since::Start {
            self.expect_page(start);
        }
        self.open.len() - 1
    }

    fn note_due(&mut self) {
        let coming = self.coming.as_ref().map_or(Time::NEVER, |(time, _)| *time);
        self.due = self.open.iter().map(|page| page.next).fold(coming, Time::min);
    }
}

/// Draws an exponential number, rounded up to at least one.
fn objects(mean: f64, stream: &mut Stream) -> u64 {
    libm::ceil(-mean * libm::log(stream.unit())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn browser(web: &Web, seed: u64) -> Box<dyn Client> {
        let place = Place { streams: Streams::new(seed, 0), start: Time::ZERO, payload: 1000 };
        match web.course(&place) {
            Course::Client(client) => client,
            _ => unreachable!("a client was asked for"),
        }
    }

    /// Requests of many pages, with the times of the requests.
    fn requests(web: &Web, seed: u64, count: usize) -> Vec<(Time, Request)> {
        let mut browser = browser(web, seed);
        (0..count).map(|_| (browser.due(), browser.request())).collect()
    }

    #[test]
    fn numbers_of_objects_have_the_mean_of_theory() {
        let mut stream = Streams::new(1, 0).stream("objects");
        let n = 100_000;
        let mean = (0..n).map(|_| objects(5.0, &mut stream)).sum::<u64>() as f64 / f64::from(n);
        // An exponential number rounded up is geometric with 1 - p = exp(-1/5). The mean is 1/(1 - exp(-0.2)) = 5.517
        // and the deviation exp(-0.1)/(1 - exp(-0.2)) = 4.99; five standard errors are 5 x 4.99/sqrt(1e5) = 0.079.
        assert!((mean - 5.517).abs() < 0.079, "{mean}");
    }

    #[test]
    fn sizes_and_times_have_the_means_of_theory() {
        let n = 100_000;
        let requests = requests(&Web::default(), 3, n);
        let mean = requests.iter().map(|(_, request)| request.bytes).sum::<u64>() as f64 / n as f64 / 1000.0;
        // The mean of the rounded sizes is the sum over j of P(X > j) = 12.49; the deviation is 18.
        assert!((mean - 12.49).abs() < 5.0 * 18.0 / libm::sqrt(n as f64), "{mean}");
        let small = requests.iter().filter(|(_, request)| request.bytes <= 15_000).count() as f64 / n as f64;
        assert!((small - 0.827).abs() < 5.0 * libm::sqrt(0.827 * 0.173 / n as f64), "{small}");
        // A page every 15 s has 5.517 objects, so n requests take n/5.517 x 15 s. For n/5.517 = 18 126 pages, the times
        // have a relative deviation of 1/sqrt(18126) = 0.74 % and the numbers of objects one of 0.67 %: 1 % together.
        let expected = n as f64 / 5.517 * 15.0;
        let time = requests[n - 1].0.as_secs_f64();
        assert!((time / expected - 1.0).abs() < 0.05, "{time} against {expected}");
    }

    #[test]
    fn each_object_has_a_connection_of_its_own_unless_pages_have() {
        let each = requests(&Web::default(), 1, 50);
        assert!(each.iter().zip(0..).all(|((_, request), number)| request.connection == number));
        assert!(each.iter().all(|(_, request)| request.then == Then::Close));
        let shared = requests(&Web { connection_per: Per::Page, ..Web::default() }, 1, 50);
        // The pages and objects are equal to those of separate connections. Each page has one connection, which ends
        // with the page's last object.
        assert!(each.iter().zip(&shared).all(|(a, b)| (a.0, a.1.bytes) == (b.0, b.1.bytes)));
        assert!(shared.windows(2).all(|two| {
            let ends = two[0].1.then == Then::Close;
            two[1].1.connection == two[0].1.connection + u64::from(ends)
        }));
    }

    #[test]
    fn from_the_end_a_page_waits_for_the_last_object_of_the_one_before() {
        let web = Web { page_time_from: Since::End, ..Web::default() };
        let mut browser = browser(&web, 1);
        let mut asked = Vec::new();
        while browser.due() != Time::NEVER {
            asked.push(browser.request().connection);
        }
        let end = Time::ZERO + Span::from_secs(1000);
        for &connection in asked.iter().rev() {
            assert_eq!(browser.due(), Time::NEVER);
            browser.on_answered(end, connection);
        }
        assert!(browser.due() > end && browser.due() < end + Span::from_secs(600));
        // The objects are equal to those without a shared connection.
        let free = requests(&Web::default(), 1, asked.len() + 1);
        let page_ends = free[asked.len()].0.since(free[asked.len() - 1].0) > Span::from_millis(500);
        assert!(page_ends, "{free:?}");
    }

    #[test]
    fn impossible_tables_are_refused_with_what_is_allowed() {
        let error = |table| super::super::WORKLOADS.resolve(&table).unwrap_err().to_string();
        assert!(error(json!({"kind": "web", "objects": 0.0})).starts_with("objects: 0 is not between"));
        assert!(error(json!({"kind": "web", "page_time": "0s"})).starts_with("page_time: the mean of 0"));
        assert!(
            error(json!({"kind": "web", "max_size": "200kB"}))
                .contains("is not in the same unit as `object_size`, 12p")
        );
        assert!(error(json!({"kind": "web", "max_size": "10p"})).starts_with("max_size: 10p is below"));
        assert!(error(json!({"kind": "web", "object_size": "1s"})).starts_with("object_size: 1s is not"));
        assert!(error(json!({"kind": "web", "shape": -1.0})).starts_with("shape: -1 is not above"));
        assert!(error(json!({"kind": "ftp", "size": "0B"})).starts_with("size: 0B is not the size"));
    }
}
