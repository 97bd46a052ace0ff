//! Keys that have no effect because of other tables of the scenario.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{ConfigError, Ecn, Span, Unused};
use ackclock_edge::REGULATORS;
use ackclock_link::queue::Codepoints;
use ackclock_tcp::config::Switch;

use crate::{FlowGroup, Tables};

/// Keys that select the regulators of a scenario.
const REGULATORS_OF: [&str; 2] = ["edge.regulator", "edge.up_regulator"];

/// Keys of the queues of an edge.
const QUEUES_OF: [&str; 2] = ["queue", "up_queue"];

impl Tables {
    /// Keys that have a value and no effect on simulated packets.
    pub(crate) fn unused_in_simulation(&self) -> Vec<Unused> {
        let reason = "has no effect on simulated senders, which know `mtu`: leave the key out, or use it with `ackclock link`";
        let blackhole = Unused::new("edge.mtu_blackhole", &[], reason);
        self.edge.mtu_blackhole.then_some(blackhole).into_iter().collect()
    }

    /// Keys that describe hosts, traffic, a network or real packets correctly, and that nothing in the simulated scenario
    /// reacts to.
    ///
    /// # Errors
    /// Same errors as [`check`](Self::check).
    pub(crate) fn unnoticed(&self) -> Result<Vec<Unused>, ConfigError> {
        let reason = "has no effect in a simulation, where every handshake is seen; `ackclock link` and `ackclock box` \
                      use it";
        let scale = |table| Unused::new(&format!("{table}.assumed_scale"), &[], reason);
        let mut unnoticed: Vec<_> = REGULATORS_OF.into_iter().map(scale).collect();
        unnoticed.extend(self.unnoticed_marks()?);
        for (index, flow) in self.flow.iter().enumerate() {
            let path = format!("flow.{index}");
            unnoticed.extend(self.unnoticed_of(flow, &path).map_err(|error| error.under(&path))?);
        }
        Ok(unnoticed)
    }

    /// Keys of the flow at `path` that nothing reacts to.
    fn unnoticed_of(&self, flow: &FlowGroup, path: &str) -> Result<Vec<Unused>, ConfigError> {
        let own = |key: &str| format!("{path}.{key}");
        let mut unnoticed = Vec::new();
        if flow.stagger != Span::ZERO && flow.count == 1 {
            let reason = "has no effect on a single flow: increase `count`, or delay the flow with `start`";
            unnoticed.push(Unused::new(&own("stagger"), &[&own("count")], reason));
        }
        if flow.is_media()? {
            return Ok(unnoticed);
        }
        if !flow.headers.are_clear() && !self.edge.reads_headers()? {
            let reason = "has no effect, since no regulator reads headers";
            unnoticed.push(Unused::new(&own("headers"), &REGULATORS_OF, reason));
        }
        let near = self.relay.as_ref().map_or_else(|| flow.sender(), |relay| relay.row(flow))?;
        if flow.dsack == Switch::On && ![flow.sender()?, near].iter().any(|sender| sender.uses_sack()) {
            let reason =
                "has no effect with a sender without SACK: use one with SACK, such as `sack` or `cubic`";
            unnoticed.push(Unused::new(&own("dsack"), &[&own("sender"), "relay"], reason));
        }
        let has_nacks = !flow.towards.is_mobile() && self.edge.regulates_uploads();
        if flow.sender()?.config().nacks == Switch::On && !has_nacks {
            let reason =
                "has no effect except on uploads with edge.regulator = { kind = \"snoop\", nacks = true }";
            let needs = [&own("towards"), REGULATORS_OF[0]];
            unnoticed.push(Unused::new(&own("sender.nacks"), &needs, reason));
        }
        Ok(unnoticed)
    }

    /// Keys of queues and regulators that act only on packets with ECN codepoints that no sender uses.
    fn unnoticed_marks(&self) -> Result<Vec<Unused>, ConfigError> {
        let radio = if self.edge.behind.is_some() { "edge.behind" } else { "edge" };
        let queues = self.edge.radio().queues().map_err(|error| error.under(radio))?;
        let regulators = [Some(&self.edge.regulator), self.edge.up_regulator.as_ref()];
        let mut unused = Vec::new();
        for (side, towards) in [Towards::Mobile, Towards::Server].into_iter().enumerate() {
            let packets = self.codepoints(towards)?;
            let keys = queues[side].unused(packets).into_iter();
            unused.extend(keys.map(|key| key.under(&format!("{radio}.{}", QUEUES_OF[side]))));
            let Some(table) = regulators[side].filter(|_| !packets.ect) else { continue };
            let path = REGULATORS_OF[side];
            if table.config(&REGULATORS).map_err(|error| error.under(path))?.marks_only() {
                let reason = "only marks packets here, and no sender has ecn = \"on\": it has no effect";
                unused.push(Unused::new(path, &[], reason));
            }
        }
        let senders = (0..self.flow.len()).map(|index| format!("flow.{index}.sender"));
        let needs: Vec<_> = senders.chain(["relay".to_owned()]).collect();
        unused.iter_mut().for_each(|key| key.needs.extend_from_slice(&needs));
        Ok(unused)
    }

    /// ECN codepoints that the edge may see in data of one direction.
    fn codepoints(&self, towards: Towards) -> Result<Codepoints, ConfigError> {
        let mut packets = Codepoints { ect: false, l4s: false };
        for flow in self.flow.iter().filter(|flow| flow.towards == towards) {
            if flow.is_media()? {
                continue;
            }
            let relay = self.relay.as_ref().filter(|_| towards.is_mobile());
            let sender = relay.map_or_else(|| flow.sender(), |relay| relay.row(flow))?;
            let mode = sender.config().ecn.unwrap_or_default();
            packets.ect |= mode.is_on();
            let control = match relay {
                Some(relay) if relay.listens()? => relay.fallback()?,
                _ => Arc::clone(sender),
            };
            packets.l4s |= mode.counts_marks() && control.codepoint() == Ecn::Ect1;
        }
        Ok(packets)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, ScenarioError};

    /// Reads a scenario as a simulation does.
    fn simulated(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
        let sets: Vec<_> = sets.iter().map(ToString::to_string).collect();
        let scenario = Scenario::load("x.toml", text, &sets)?;
        scenario.check_simulated().map(|()| scenario)
    }

    /// The error of a simulation, or the remarks on it; empty if there is none.
    fn said(text: &str, sets: &[&str]) -> String {
        let remarks = simulated(text, sets).and_then(|scenario| scenario.said_of_unnoticed());
        remarks.map_or_else(|error| error.to_string(), |remarks| remarks.join("\n"))
    }

    /// Checks that `text` is refused or remarked on with a message that starts with `start`, but not with any of the
    /// overrides `mended`.
    fn is_told(text: &str, start: &str, mended: &[&[&str]]) {
        assert!(said(text, &[]).starts_with(start), "{text}: {}", said(text, &[]));
        for sets in mended {
            assert_eq!(said(text, sets), "", "{text}: {sets:?}");
        }
    }

    /// Like [`is_told`], and checks that the scenario runs.
    fn is_remarked(text: &str, start: &str, mended: &[&[&str]]) {
        is_told(text, start, mended);
        assert!(simulated(text, &[]).is_ok(), "{text}");
    }

    /// Like [`is_told`], and checks that the scenario does not run.
    fn is_refused(text: &str, start: &str, mended: &[&[&str]]) {
        is_told(text, start, mended);
        assert!(simulated(text, &[]).is_err(), "{text}");
    }

    #[test]
    fn a_stagger_needs_a_second_flow() {
        let start = "x.toml:2: flow.0.stagger: `1s` has no effect on a single flow";
        is_remarked("[[flow]]\nstagger = \"1s\"\n", start, &[&["flow.0.count=2"], &["flow.count=2"]]);
        let two = "[[flow]]\n[[flow]]\ncount = 2\n";
        assert_eq!(said(two, &["flow.stagger=1s"]), "");
        assert!(
            said(two, &["flow.0.stagger=1s"]).starts_with("--set flow.0.stagger=1s: flow.0.stagger: `1s`")
        );
    }

    #[test]
    fn headers_are_encrypted_only_where_a_regulator_would_read_them() {
        let text = "[edge]\nregulator = \"none\"\n[[flow]]\nheaders = \"encrypted\"\n";
        let start = "x.toml:4: flow.0.headers: `encrypted` has no effect, since no regulator reads headers";
        is_remarked(text, start, &[&["edge.regulator=wrd"], &["edge.regulator=none"]]);
        is_remarked(
            &text.replace("\"none\"", "{ kind = \"wait-marker\", not_ect = \"drop\" }"),
            start,
            &[&["edge.regulator=ack-filter"]],
        );
    }

    #[test]
    fn sent_packets_count_only_on_links_that_keep_them() {
        let text = "[edge]\nregulator = { kind = \"ack-rate-control\", counts = \"unacknowledged\" }\n";
        let start = "x.toml:2: edge.regulator.counts: `unacknowledged` has no effect on a link that keeps no sent packets";
        is_refused(text, start, &[&["edge.down=umts-rlc"], &["edge.bearer=radio-access"]]);
        assert!(simulated(text, &["edge.down.rate=1Mbit/s"]).is_err());
        let presets = format!("{text}[sweep]\npreset = [\"hsdpa\", \"lte\"]\n");
        let points = simulated(&presets, &[]).and_then(|scenario| scenario.points());
        assert_eq!(points.map(|points| points.len()).map_err(|error| error.to_string()), Ok(2));
        let cell = |harq: &str| format!("{text}[edge.down]\nkind = \"cell\"\n{harq}");
        assert!(simulated(&cell(""), &[]).is_err());
        assert!(simulated(&cell("harq = {}"), &[]).is_ok());
    }

    #[test]
    fn a_window_scale_is_assumed_only_for_real_packets() {
        for regulator in ["wrs", "wrd", "wrb", "forecast"] {
            let text = format!("[edge]\nregulator = {{ kind = \"{regulator}\", assumed_scale = 7 }}\n");
            let start = "x.toml:2: edge.regulator.assumed_scale: `7` has no effect in a simulation";
            is_remarked(&text, start, &[&["edge.regulator=none"]]);
        }
    }

    #[test]
    fn duplicates_are_reported_only_to_a_sender_with_sack() {
        let text = "[[flow]]\ndsack = \"on\"\n";
        let start = "x.toml:2: flow.0.dsack: `on` has no effect with a sender without SACK";
        is_remarked(text, start, &[&["flow.sender=cubic"], &["flow.0.sender=sack"]]);
        let relayed = format!("[relay]\nsender = \"sack\"\n{text}");
        assert_eq!(said(&relayed, &[]), "");
    }

    #[test]
    fn requests_of_snoop_reach_uploads_only() {
        let text = "[edge]\nregulator = \"none\"\n[[flow]]\ntowards = \"server\"\n\
                    sender = { kind = \"cubic\", stack = \"linux\", nacks = \"on\" }\n";
        let start = "x.toml:5: flow.0.sender.nacks: `on` has no effect except on uploads";
        is_remarked(text, start, &[&["edge.regulator={ kind = \"snoop\", nacks = true }"]]);
    }

    #[test]
    fn marks_need_a_sender_that_uses_them() {
        let start = "x.toml:2: edge.queue.ecn: `true` has no effect without a sender with ecn";
        for queue in ["codel", "pie", "red"] {
            let text = format!("[edge]\nqueue = {{ kind = \"{queue}\", ecn = true }}\n");
            is_remarked(&text, start, &[&["flow.sender.ecn=on"], &["flow.sender=dctcp"]]);
        }
        let up = "[edge]\nup_queue = { kind = \"red\", ecn = true }\n[[flow]]\nsender = \"dctcp\"\n";
        is_remarked(up, "x.toml:2: edge.up_queue.ecn", &[&["flow.0.towards=server", "flow.0.sender=dctcp"]]);
        let ramp = "[edge]\nqueue = { kind = \"dualpi2\", ramp = \"1ms\" }\n[[flow]]\n\
                    sender = { kind = \"cubic\", ecn = \"on\" }\n";
        is_remarked(
            ramp,
            "x.toml:2: edge.queue.ramp: `1ms` has no effect without a sender of L4S",
            &[&["flow.0.sender=prague"]],
        );
        for sender in ["\"dctcp\"", "\"abc\"", "{ kind = \"cubic\", ecn = \"accurate\" }"] {
            let text = ramp.replace("{ kind = \"cubic\", ecn = \"on\" }", sender);
            is_remarked(&text, "x.toml:2: edge.queue.ramp", &[&["flow.0.sender=prague"]]);
        }
        let steered = "[relay]\nsteering = \"rnf\"\nfallback = \"prague\"\n[edge.report]\nevery = \"1s\"\n";
        let ecn = ramp.replace("\"on\"", "\"accurate\"");
        assert_eq!(said(&format!("{ecn}{steered}"), &[]), "");
        let router = "[edge]\nqueue = { kind = \"abc-router\", share = 0.9 }\n";
        is_remarked(router, "x.toml:2: edge.queue.share: `0.9` has no effect", &[&["flow.0.sender=abc"]]);
    }

    #[test]
    fn a_regulator_that_only_marks_needs_a_sender_that_uses_marks() {
        for table in ["\"wait-marker\"", "{ kind = \"forecast\", act = \"mark\" }"] {
            let text = format!("[edge]\nregulator = {table}\n");
            is_remarked(
                &text,
                "x.toml:2: edge.regulator",
                &[
                    &["flow.sender.ecn=on"],
                    &["edge.regulator={ kind = \"wait-marker\", not_ect = \"drop\" }"],
                ],
            );
        }
    }
}
