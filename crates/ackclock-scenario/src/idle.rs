//! Keys without effect: a scenario that sets one is refused.
//!
//! Presets and overrides of every flow set keys of flows of all kinds, so such a value stays without effect where it has
//! none. So does a value whose effect depends on a key that an override or a sweep sets, since the other runs of a
//! comparison use it.

use ackclock_core::{Component, ConfigError, Unused, name_of};
use ackclock_tcp::{SenderRow, why_idle};
use serde_json::Value;

use crate::FlowGroup;
use crate::relay::RelayTable;
use crate::tree::{Origin, Tree};

/// Keys of TCP, which media over UDP does not have.
const OF_TCP: [&str; 8] =
    ["sender", "ack_size", "max_window", "receive_window", "initial_window", "acks", "dsack", "headers"];

/// A key that has no effect in its scenario.
pub(crate) struct Idle<'a> {
    /// Dotted path of the key.
    path: String,
    of: Of<'a>,
}

/// What a key without effect belongs to.
enum Of<'a> {
    Media,
    Sender(&'a Component<dyn SenderRow>, &'static str),
    /// Sender of a relay, the windows of which are set by another congestion control.
    Steered(&'a RelayTable),
}

impl Idle<'_> {
    /// Reason, and what has an effect. For a sender it compares all kinds, which takes longer than reading a scenario.
    fn reason(&self) -> String {
        match self.of {
            Of::Media => {
                "is of TCP; workload = \"media\" is sent over UDP, and has the sender GCC".to_owned()
            }
            Of::Sender(sender, option) => why_idle(sender, option),
            Of::Steered(relay) => format!(
                "has no effect, since steering = \"{}\" sets the congestion windows, or the fallback `{}`, and no flow is \
                 an upload",
                name_of(&relay.steering),
                relay.fallback_name()
            ),
        }
    }
}

/// Keys of the flows and of the relay that have no effect.
pub(crate) fn of<'a>(
    flows: &'a [FlowGroup],
    relay: Option<&'a RelayTable>,
) -> Result<Vec<Idle<'a>>, ConfigError> {
    let (mut media, mut idle) = (Vec::new(), Vec::new());
    for (index, flow) in flows.iter().enumerate() {
        let path = format!("flow.{index}");
        // A relay without a sender has that of the flow.
        let steered = relay.filter(|relay| relay.sender.is_none() && flow.towards.is_mobile());
        match flow.is_media()? {
            true => media.extend(OF_TCP.map(|key| of_media(&path, key))),
            false => idle.extend(of_sender(&path, &flow.sender, &**flow.sender()?, steered)?),
        }
    }
    if let Some((table, sender)) = relay.and_then(|relay| Some((relay, relay.sender.as_ref()?))) {
        let group = FlowGroup::default();
        let row = table.row(&group)?;
        idle.extend(match flows.iter().any(|flow| !flow.towards.is_mobile()) {
            true => of_sender("relay", sender, &**row, relay)?,
            false => of_steered(table, sender, &**row)?,
        });
    }
    idle.extend(media);
    Ok(idle)
}

/// Options without effect of the sender of the table `path`. A relay gives the fallback of a steered sender the options
/// of the sender.
fn of_sender<'a>(
    path: &str,
    sender: &'a Component<dyn SenderRow>,
    row: &dyn SenderRow,
    steered: Option<&RelayTable>,
) -> Result<Vec<Idle<'a>>, ConfigError> {
    let mut options = row.idle_options();
    if let Some(relay) = steered
        && relay.listens()?
    {
        let of_fallback = row.idle_with(relay.fallback()?.control_options());
        options.retain(|option| of_fallback.contains(option));
    }
    let idle = |option| Idle { path: format!("{path}.sender.{option}"), of: Of::Sender(sender, option) };
    Ok(options.into_iter().map(idle).collect())
}

/// Options without effect of a relay's sender that sends downloads only. If it is steered, its own congestion control
/// is not used.
fn of_steered<'a>(
    relay: &'a RelayTable,
    sender: &'a Component<dyn SenderRow>,
    row: &dyn SenderRow,
) -> Result<Vec<Idle<'a>>, ConfigError> {
    if !relay.listens()? {
        return of_sender("relay", sender, row, None);
    }
    let of_kind = row.idle_options();
    let idle = |option| {
        let of = if of_kind.contains(&option) { Of::Sender(sender, option) } else { Of::Steered(relay) };
        Idle { path: format!("relay.sender.{option}"), of }
    };
    Ok(row.idle_with(relay.fallback()?.control_options()).into_iter().map(idle).collect())
}

fn of_media(flow: &str, key: &str) -> Idle<'static> {
    Idle { path: format!("{flow}.{key}"), of: Of::Media }
}

/// Removes the keys without effect from a complete configuration.
pub(crate) fn remove(configuration: &mut Value, idle: &[Idle<'_>]) {
    for Idle { path, .. } in idle {
        let Some((table, key)) = path.rsplit_once('.') else { continue };
        let pointer = format!("/{}", table.replace('.', "/"));
        configuration
            .pointer_mut(&pointer)
            .and_then(Value::as_object_mut)
            .map(|table| table.shift_remove(key));
    }
}

/// Removes keys without effect that an override sets for every flow and that have an effect on another flow.
///
/// # Errors
/// Returns an error about any other key without effect that the file or an override sets.
pub(crate) fn refuse(merged: &mut Tree, idle: &[Idle<'_>]) -> Result<(), ConfigError> {
    for key in idle {
        let path = &key.path;
        let Some(tree) = merged.at(path) else { continue };
        let mut said = Vec::new();
        tree.said_values(path, &mut said);
        if said.is_empty() {
            continue;
        }
        let is_idle = |path: &str| idle.iter().any(|idle| is_at_or_below(path, &idle.path));
        let wrong = said.iter().find(|(path, said)| !is_of_another_flow(merged, is_idle, path, &said.origin));
        if let Some((path, said)) = wrong {
            return Err(refused(path, said, &key.reason()));
        }
        let Some((table, key)) = path.rsplit_once('.') else { continue };
        table.split('.').try_fold(&mut *merged, |at, key| at.get_mut(key)).map(|table| table.take(key));
    }
    Ok(())
}

/// Errors about keys that the file or an override sets, and that have no effect because of other keys. `varied` are the
/// keys that overrides and the sweep set. An override of every flow is accepted if a flow uses it.
pub(crate) fn said_unused(merged: &Tree, unused: &[Unused], varied: &[&str]) -> Vec<ConfigError> {
    let is_varied = |key: &String| varied.iter().any(|&varied| overlap(varied, key));
    let is_unused = |path: &str| unused.iter().any(|unused| is_at_or_below(path, &unused.key));
    let error = |unused: &Unused| {
        let mut said = Vec::new();
        merged.at(&unused.key).into_iter().for_each(|tree| tree.said_values(&unused.key, &mut said));
        let (path, said) = said.into_iter().next().filter(|_| !unused.needs.iter().any(is_varied))?;
        let is_useful = is_of_another_flow(merged, is_unused, &path, &said.origin);
        (!is_useful).then(|| refused(&path, said, &unused.reason))
    };
    unused.iter().filter_map(error).collect()
}

/// Whether one of two dotted paths is below the other, or both are equal. The key `flow.KEY` of every flow overlaps that of
/// each flow, and `preset`, which may set any key, overlaps every key.
fn overlap(varied: &str, key: &str) -> bool {
    if varied == "preset" {
        return true;
    }
    let below = |key: &str| varied.split('.').zip(key.split('.')).all(|(one, other)| one == other);
    below(key) || of_flow(key).is_some_and(|of_every| below(&format!("flow.{of_every}")))
}

/// Key of a flow at a dotted path; `None` if the path is not that of a flow.
fn of_flow(path: &str) -> Option<&str> {
    path.strip_prefix("flow.")?.split_once('.').map(|(_, key)| key)
}

/// Whether a dotted path is `key` or below it.
fn is_at_or_below(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|below| below.is_empty() || below.starts_with('.'))
}

/// Error about the value at `path`, which has no effect.
fn refused(path: &str, said: &Tree, reason: &str) -> ConfigError {
    let value = said.value();
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let at = path.strip_suffix(".kind").unwrap_or(path);
    ConfigError::new(at, format!("`{value}` {reason}"))
}

/// Whether the override that sets the key `path` of a flow also sets it for a flow on which it has an effect, because
/// that flow's key `is_idle` not.
fn is_of_another_flow(merged: &Tree, is_idle: impl Fn(&str) -> bool, path: &str, origin: &Origin) -> bool {
    let Some(key) = of_flow(path) else { return false };
    let others = (0..).map(|index: usize| format!("flow.{index}"));
    let others = others.take_while(|flow| merged.at(flow).is_some()).map(|flow| format!("{flow}.{key}"));
    let mut useful = others.filter(|other| !is_idle(other));
    useful.any(|other| merged.at(&other).is_some_and(|tree| tree.origin == *origin))
}

#[cfg(test)]
mod tests {
    use crate::{Axis, Scenario};

    const CALL: &str = "[[flow]]\nworkload = \"media\"\n[[flow]]\nsender = \"reno\"\n";

    fn refused(text: &str, sets: &[&str]) -> String {
        let sets: Vec<_> = sets.iter().map(ToString::to_string).collect();
        Scenario::load("x.toml", text, &sets).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn a_tcp_key_of_media_is_refused_with_its_line_and_value() {
        let said = refused("[[flow]]\nworkload = \"media\"\nsender = \"cubic\"", &[]);
        assert!(
            said.starts_with("x.toml:3: flow.0.sender: `cubic` is of TCP; workload = \"media\""),
            "{said}"
        );
        for set in ["flow.0.max_window=4p", "flow.0.acks=every", "flow.0.sender.prr=on"] {
            let said = refused(CALL, &[set]);
            assert!(
                said.starts_with(&format!("--set {set}: flow.0.")) && said.contains("is of TCP"),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_set_for_every_flow_is_refused_only_if_no_flow_uses_it() {
        assert_eq!(
            refused(CALL, &["flow.sender=cubic", "flow.acks=delayed", "flow.sender.cubic.hystart=on"]),
            ""
        );
        let bbr = CALL.replace("reno", "bbr");
        assert_eq!(refused(&bbr, &["flow.sender.bbr.policer=on"]), "");
        let said = refused(CALL, &["flow.sender.bbr.policer=on"]);
        assert!(
            said.contains("flow.1.sender.bbr.policer: `on` has no effect on `reno`")
                && said.contains("it is an option of bbr"),
            "{said}"
        );
        let said = refused("[[flow]]\nworkload = \"media\"", &["flow.sender=cubic"]);
        assert!(said.contains("flow.0.sender: `cubic`"), "{said}");
    }

    const STEERED: &str = "[relay]\nsteering = \"rnf\"\n[edge.report]\nevery = \"1s\"\n";

    #[test]
    fn an_option_that_only_the_fallback_uses_is_refused_where_the_relay_has_another_sender() {
        let flow = "[[flow]]\nsender = { kind = \"reno\", bbr = { policer = \"on\" } }\n";
        // The relay uses the sender of the flow, whose options go to the fallback.
        assert_eq!(refused(&format!("{STEERED}{flow}"), &[]), "");
        let own = STEERED.replace("[relay]", "[relay]\nsender = \"reno\"");
        let said = refused(&format!("{own}{flow}"), &[]);
        assert!(said.contains("x.toml:7: flow.0.sender.bbr.policer: `on` has no effect on `reno`"), "{said}");
        // An upload is not steered, beside a download that is.
        let upload = format!("{STEERED}[[flow]]\n{flow}towards = \"server\"\n");
        let said = refused(&upload, &[]);
        assert!(said.contains("flow.1.sender.bbr.policer: `on` has no effect"), "{said}");
    }

    #[test]
    fn options_of_a_congestion_control_that_a_relay_never_uses_are_refused() {
        let own = STEERED
            .replace("[relay]", "[relay]\nsender = { kind = \"cubic\", cubic = { hystart = \"on\" } }");
        let said = refused(&own, &[]);
        let start = "x.toml:2: relay.sender.cubic.hystart: `on` has no effect, since steering = \"rnf\" sets the congestion \
                     windows, or the fallback `bbr`";
        assert!(said.starts_with(start), "{said}");
        // The fallback uses them, or an upload, or the relay steers nothing.
        assert_eq!(refused(&own, &["relay.fallback=cubic"]), "");
        assert_eq!(refused(&format!("{own}[[flow]]\n[[flow]]\ntowards = \"server\"\n"), &[]), "");
        assert_eq!(refused("[relay]\nsender = { kind = \"cubic\", cubic = { hystart = \"on\" } }", &[]), "");
        // Options of the recovery stay in use.
        assert_eq!(refused(&own.replace("cubic = { hystart = \"on\" }", "sack_memory = \"clear\""), &[]), "");
    }

    #[test]
    fn keys_of_the_edge_without_effect_are_refused_with_what_gives_them_one() {
        let flows = "[edge]\nmax_flows = 4\n";
        let cell = |keys: &str| format!("[edge.down]\nkind = \"cell\"\n{keys}\n");
        let arriving = "overflow = \"arriving\"";
        for (text, start) in [
            (
                flows.to_owned(),
                "x.toml:2: edge.max_flows: `4` has no effect, since no flow is regulated: set a `regulator`",
            ),
            (
                cell(arriving),
                "x.toml:3: edge.down.overflow: `arriving` has no effect if each flow has a buffer",
            ),
        ] {
            let said = refused(&text, &[]);
            assert!(said.starts_with(start), "{said}");
        }
        let behind = "[edge]\nbearer = { kind = \"observed\", side = \"network\" }\n[edge.behind.down]\nkind = \"cell\"\n";
        let said = refused(&format!("{behind}{arriving}"), &[]);
        assert!(said.starts_with("x.toml:5: edge.behind.down.overflow: `arriving`"), "{said}");
        let observed = |keys: &str, more: &str| {
            let bearer = format!("bearer = {{ kind = \"observed\", side = \"network\"{more} }}\n");
            format!("[edge]\n{keys}\n{bearer}[edge.behind]\n")
        };
        let said = refused(&observed("regulator = { kind = \"forecast\", reserve = 2 }", ""), &[]);
        assert!(
            said.starts_with(
                "x.toml:2: edge.regulator.reserve: `2` has no effect on a box that only observes"
            ),
            "{said}"
        );
        let said =
            refused("[edge]\nregulator = { kind = \"forecast\", act = \"mark\", min_window = 4 }", &[]);
        assert!(
            said.starts_with("x.toml:2: edge.regulator.min_window: `4` has no effect on marks"),
            "{said}"
        );
        let lost = ", record_loss = 0.1";
        for text in [
            observed("regulator = \"forecast\"", lost),
            observed("regulator = \"wrs\"", lost),
            observed("regulator = \"none\"", lost),
            "[edge]\nregulator = { kind = \"forecast\", reserve = 2, min_window = 4 }".to_owned(),
            "[edge]\nregulator = \"wrd\"\nmax_flows = 4\n".to_owned(),
            cell("overflow = \"arriving\"\nbuffer_per = \"user\""),
            cell("overflow = \"longest\""),
        ] {
            assert_eq!(refused(&text, &[]), "", "{text}");
        }
    }

    #[test]
    fn a_key_of_the_edge_may_be_without_effect_in_some_runs_of_a_comparison() {
        let flows = "[edge]\nmax_flows = 4\n";
        assert_eq!(refused(&format!("{flows}[sweep]\n\"edge.regulator\" = [\"none\", \"wrd\"]\n"), &[]), "");
        let text = flows.replace("max", "regulator = \"wrd\"\nmax");
        assert_eq!(refused(&text, &["edge.regulator=none"]), "");
        let said = refused(flows, &["edge.buffer=4p"]);
        assert!(said.contains("edge.max_flows"), "{said}");
        let beside = |key| {
            let axis = Axis::new(key, vec!["none".into(), "wrd".into()], "--regulators none,wrd");
            Scenario::load_beside("x.toml", flows, &[], &[key])?.points_over(&[axis])
        };
        assert_eq!(beside("edge.regulator").expect("one of both uses it").len(), 2);
        assert!(beside("edge.queue").is_err());
    }

    #[test]
    fn a_key_of_real_packets_is_refused_before_anything_is_simulated() {
        let scenario = Scenario::load("x.toml", "[edge]\nmtu_blackhole = true\nmtu = \"1400B\"\n", &[])
            .expect("for a link");
        let said = scenario.check_simulated().expect_err("for no simulation").to_string();
        assert!(said.starts_with("x.toml:2: edge.mtu_blackhole: `true`"), "{said}");
    }

    #[test]
    fn another_kind_of_sender_drops_the_options_that_it_does_not_use() {
        let text = "[[flow]]\nsender = { kind = \"newreno\", partial_ack_timer = \"slow\" }";
        let scenario =
            Scenario::load("x.toml", text, &["flow.sender=cubic".to_owned()]).expect("an option is dropped");
        assert_eq!(scenario.dropped()[0].key, "flow.sender.partial_ack_timer");
    }

    #[test]
    fn a_complete_configuration_has_no_key_without_effect_and_is_read_again() {
        let scenario = Scenario::load("x.toml", CALL, &["flow.sender=bbr".to_owned()]).expect("it is right");
        for value in [scenario.configuration(), scenario.said()] {
            assert!(value["flow"][0].get("sender").is_none(), "{value}");
            let text = toml::to_string(&value).expect("a table");
            Scenario::load("y.toml", &text, &[]).expect("an equivalent scenario");
        }
        assert!(scenario.configuration()["flow"][1]["sender"].get("cubic").is_none());
    }
}
