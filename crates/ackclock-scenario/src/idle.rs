//! Keys without effect: a scenario that sets one is refused.
//!
//! Presets and overrides of every flow set keys of flows of all kinds, so such a value stays without effect where it has
//! none.

use ackclock_core::{Component, ConfigError};
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
}

impl Idle<'_> {
    /// Reason, and what has an effect. For a sender it compares all kinds, which takes longer than reading a scenario.
    fn reason(&self) -> String {
        match self.of {
            Of::Media => {
                "is of TCP; workload = \"media\" is sent over UDP, and has the sender GCC".to_owned()
            }
            Of::Sender(sender, option) => why_idle(sender, option),
        }
    }

    /// Whether `path` is this key or a key below it.
    fn contains(&self, path: &str) -> bool {
        path.strip_prefix(&self.path).is_some_and(|below| below.is_empty() || below.starts_with('.'))
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
        match flow.is_media()? {
            true => media.extend(OF_TCP.map(|key| of_media(&path, key))),
            false => idle.extend(of_sender(&path, &flow.sender, &**flow.sender()?, relay)?),
        }
    }
    if let Some((table, sender)) = relay.and_then(|relay| Some((relay, relay.sender.as_ref()?))) {
        idle.extend(of_sender("relay", sender, &**table.row(&FlowGroup::default())?, relay)?);
    }
    idle.extend(media);
    Ok(idle)
}

/// Options without effect of the sender of the table `path`. A relay gives its fallback the options of the sender.
fn of_sender<'a>(
    path: &str,
    sender: &'a Component<dyn SenderRow>,
    row: &dyn SenderRow,
    relay: Option<&RelayTable>,
) -> Result<Vec<Idle<'a>>, ConfigError> {
    let mut options = row.idle_options();
    if let Some(relay) = relay
        && relay.listens()?
    {
        let of_fallback = relay.fallback()?.idle_options();
        options.retain(|option| of_fallback.contains(option));
    }
    let idle = |option| Idle { path: format!("{path}.sender.{option}"), of: Of::Sender(sender, option) };
    Ok(options.into_iter().map(idle).collect())
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
        let wrong = said.iter().find(|(path, said)| !is_of_another_flow(merged, idle, path, &said.origin));
        if let Some((path, said)) = wrong {
            let value = said.value();
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let at = path.strip_suffix(".kind").unwrap_or(path);
            return Err(ConfigError::new(at, format!("`{value}` {}", key.reason())));
        }
        let Some((table, key)) = path.rsplit_once('.') else { continue };
        table.split('.').try_fold(&mut *merged, |at, key| at.get_mut(key)).map(|table| table.take(key));
    }
    Ok(())
}

/// Whether the override that sets the key `path` of a flow also sets it for a flow on which it has an effect.
fn is_of_another_flow(merged: &Tree, idle: &[Idle<'_>], path: &str, origin: &Origin) -> bool {
    let Some((_, key)) = path.strip_prefix("flow.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let others = (0..).map(|index: usize| format!("flow.{index}"));
    let others = others.take_while(|flow| merged.at(flow).is_some()).map(|flow| format!("{flow}.{key}"));
    let mut useful = others.filter(|other| !idle.iter().any(|idle| idle.contains(other)));
    useful.any(|other| merged.at(&other).is_some_and(|tree| tree.origin == *origin))
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

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
