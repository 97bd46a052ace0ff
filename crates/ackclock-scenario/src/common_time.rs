//! Common time of an island's flows, from the start of the last flow to the end of the first file. Jain's fairness
//! index compares goodputs in the common time, so that a flow is not unfair because it started late or ended early.

use std::collections::BTreeMap;

use ackclock_core::Time;

/// Payload delivered so far, bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Payload of each flow that lasts for the entire run, by flow number; 0 for clients with short connections.
    pub(crate) flows: Vec<u64>,
    /// Payload of the short connections of each user.
    pub(crate) clients: BTreeMap<u32, u64>,
}

/// Rates in the common time, bit/s.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CommonRates {
    /// Goodput of each flow, by flow number.
    pub(crate) flows: Vec<f64>,
    /// Goodput of the short connections of each user.
    pub(crate) clients: BTreeMap<u32, f64>,
}

/// Payload delivered at the start and at the end of the common time.
#[derive(Default)]
pub(crate) struct CommonTime {
    start: Time,
    /// Payload at the start; `None` before the start.
    begin: Option<Delivered>,
    end: Option<(Time, Delivered)>,
    has_files: bool,
}

impl CommonTime {
    /// Creates the record of flows with these start times. `has_files` says whether any flow is a file.
    pub(crate) fn new(starts: impl Iterator<Item = Time> + Clone, has_files: bool) -> Self {
        let start = starts.clone().max().unwrap_or(Time::ZERO);
        // Before the first start nothing has been delivered.
        let begin = starts.min().is_none_or(|first| first == start).then(Delivered::default);
        Self { start, begin, end: None, has_files }
    }

    /// Whether [`finished`](Self::finished) must be called at the end of the first file.
    pub(crate) fn awaits_end(&self) -> bool {
        self.has_files && self.end.is_none()
    }

    /// Time at which [`begin`](Self::begin) must be called; [`Time::NEVER`] if no call is needed.
    pub(crate) fn due(&self) -> Time {
        if self.begin.is_none() { self.start } else { Time::NEVER }
    }

    /// Records the payload at the start of the last flow.
    pub(crate) fn begin(&mut self, delivered: Delivered) {
        self.begin = Some(delivered);
    }

    /// Records the payload at the end of the first file.
    pub(crate) fn finished(&mut self, now: Time, delivered: Delivered) {
        self.end.get_or_insert((now, delivered));
    }

    /// Rates in the common time of a run that ends at `until` with the payload `last`; `None` without a common time.
    pub(crate) fn rates(&self, until: Time, last: &Delivered) -> Option<CommonRates> {
        let (end, last) = self.end.as_ref().map_or((until, last), |(end, delivered)| (*end, delivered));
        let begin = self.begin.as_ref().filter(|_| end > self.start)?;
        let seconds = end.since(self.start).as_secs_f64();
        let rate = |last: u64, first: Option<&u64>| (last - first.unwrap_or(&0)) as f64 * 8.0 / seconds;
        Some(CommonRates {
            flows: last.flows.iter().enumerate().map(|(at, &last)| rate(last, begin.flows.get(at))).collect(),
            clients: last
                .clients
                .iter()
                .map(|(user, &last)| (*user, rate(last, begin.clients.get(user))))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Span;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn delivered(flows: &[u64], client: u64) -> Delivered {
        Delivered { flows: flows.to_vec(), clients: BTreeMap::from([(3, client)]) }
    }

    #[test]
    fn rates_are_those_from_the_last_start_to_the_first_end() {
        let mut common = CommonTime::new([at(0), at(10)].into_iter(), true);
        assert_eq!((common.due(), common.awaits_end()), (at(10), true));
        common.begin(delivered(&[5_000_000, 0], 1_000));
        common.finished(at(30), delivered(&[7_500_000, 2_500_000], 3_500));
        common.finished(at(40), delivered(&[9_000_000, 9_000_000], 9_000));
        // 2.5 MB of each flow in 20 s are 1 Mbit/s; 2500 bytes are 1 kbit/s.
        let rates = common.rates(at(60), &delivered(&[9_000_000; 2], 9_000)).unwrap();
        assert_eq!((rates.flows, rates.clients[&3]), (vec![1e6, 1e6], 1e3));
        assert_eq!((common.due(), common.awaits_end()), (Time::NEVER, false));
    }

    #[test]
    fn flows_that_start_together_and_never_end_share_the_run() {
        let common = CommonTime::new([at(20), at(20)].into_iter(), false);
        assert_eq!((common.due(), common.awaits_end()), (Time::NEVER, false));
        let rates = common.rates(at(60), &delivered(&[5_000_000, 10_000_000], 0)).unwrap();
        assert_eq!(rates.flows, [1e6, 2e6]);
    }

    #[test]
    fn a_file_that_ends_before_the_last_start_shares_no_time() {
        let mut common = CommonTime::new([at(0), at(10)].into_iter(), true);
        common.finished(at(5), delivered(&[100, 0], 0));
        common.begin(delivered(&[100, 0], 0));
        assert_eq!(common.rates(at(60), &delivered(&[100, 900], 0)), None);
        // The run ends before the last flow starts.
        assert_eq!(
            CommonTime::new([at(0), at(80)].into_iter(), false).rates(at(60), &delivered(&[], 0)),
            None
        );
    }
}
