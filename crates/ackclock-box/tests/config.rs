//! The file of a box: every key, what is refused, and who gets which rule.

use ackclock_box::config::{BoxTable, EdgeValues, Policy};
use ackclock_core::{Size, Span};
use ackclock_link::Side;
use ackclock_observe::ObservedConfig;

fn edge(regulator: &str) -> EdgeValues {
    EdgeValues { regulator: regulator.into(), buffer: Size::Packets(20), observed: None }
}

fn policy(keys: &str, list: Option<&str>) -> Result<Policy, String> {
    let table = BoxTable::read(&format!("[box]\ninterface = \"wwan0\"\n{keys}"));
    table.and_then(|table| table.policy(edge("wrd"), list)).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_a_box_that_measures_for_one_subscriber() {
    let table = BoxTable::read("[box]\ninterface = \"wwan0\"").unwrap();
    assert!(!table.act && table.side == Side::Mobile && table.stale == Span::from_secs(5));
    let policy = table.policy(edge("wrd"), None).unwrap();
    assert_eq!(policy.prefixes(), [("::".parse().unwrap(), 0, 0)]);
    let rule = policy.rule("::".parse().unwrap()).unwrap();
    assert!(rule.act && rule.regulator == "wrd" && policy.label("::".parse().unwrap()) == "all");
}

#[test]
fn an_error_names_the_key_the_value_and_what_is_allowed() {
    let networks = "subscribers = [\"10.0.0.0/24\", \"2001:db8::/48\"]\n";
    for (keys, expected) in [
        ("inteface = 1", "unknown field `inteface`"),
        ("side = \"radio\"", "box.side: unknown variant `radio`, expected `network` or `mobile`"),
        ("act = \"10min\"", "box.act: invalid type: string \"10min\", expected a boolean"),
        ("subscribers = [\"10.0.0.0/33\"]", "box.subscribers[0]: `10.0.0.0/33` is not a network"),
        (
            "subscribers = [\"2001:db8::1/128\"]",
            "box.subscribers: 2001:db8::1/128 is smaller than one subscriber, a /64",
        ),
        ("prefix6 = 0", "box.prefix6: 0 is not from 1 to 128"),
        ("stale = \"100ms\"", "box.stale: 100ms is not from 1s to 60s"),
        ("file = \"list.csv\"", "box.file: needs `subscribers`"),
        ("act_on = \"50 %\"", "box.act_on: needs `subscribers`"),
        ("leave_alone = [\"10.0.0.1\"]", "box.leave_alone: needs `subscribers`"),
        ("act_on = \"101 %\"", "box.act_on: \"101 %\" is neither a share from \"0 %\" to \"100 %\""),
        ("act_on = 0.5", "box.act_on: 0.5 is neither a share"),
    ] {
        let error = policy(keys, None).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(BoxTable::read("[edge]").unwrap_err().message.contains("`[box]` is missing"));
    let error = BoxTable::read("[box]\nact = true").unwrap_err();
    assert!(error.path == "box" && error.message.contains("missing field `interface`"), "{error}");
    for (list, expected) in [
        ("", "1: the first line is not `key,name,regulator,buffer`"),
        ("10.0.0.1", "2: 1 fields"),
        ("10.0.0,,,", "2: key: `10.0.0` is not a network"),
        ("10.0.0.0/25,,,", "2: key: `10.0.0.0/25` is not one subscriber, an address"),
        ("2001:db8::/56,,,", "2: key: `2001:db8::/56` is not one subscriber, a /64"),
        ("10.0.1.1,,,", "2: key: `10.0.1.1` is in no network of `box.subscribers`"),
        ("10.0.0.1,,wrb,", "2: regulator: `wrb`: it holds ACKs"),
        ("10.0.0.1,,,much", "2: buffer: "),
        ("10.0.0.1,,,500ms", "2: buffer: 500ms: a box that only observes takes packets"),
        ("10.0.0.1,,,0bdp", "2: buffer: 0bdp: a box that only observes takes packets"),
        ("10.0.0.1,,,0B", "2: buffer: 0B: a box that only observes takes packets"),
        ("10.0.0.1,,,\n10.0.0.1,,,", "3: key: this subscriber has an earlier line"),
    ] {
        let list =
            if list.is_empty() { String::new() } else { format!("key,name,regulator,buffer\n{list}\n") };
        let error = policy(&format!("{networks}file = \"list.csv\""), Some(&list)).unwrap_err();
        assert!(error.contains(&format!("list.csv:{expected}")), "{error}");
    }
    let table = BoxTable::read("[box]\ninterface = \"wwan0\"").unwrap();
    let observed = Some(ObservedConfig { side: Side::Network, ..ObservedConfig::default() });
    let error = table.policy(EdgeValues { observed, ..edge("wrd") }, None).unwrap_err().to_string();
    assert!(error.contains("edge.bearer.side: \"network\" and box.side: \"mobile\" differ"), "{error}");
    let error = table.policy(edge("snoop"), None).unwrap_err();
    assert!(error.path == "edge.regulator" && error.message.starts_with("`snoop`"), "{error}");
}

#[test]
fn a_subscriber_is_an_address_or_a_prefix_and_may_have_a_line_in_the_list() {
    let list =
        "# ours\nkey,name,regulator,buffer\n10.0.0.7,kitchen,forecast,30kB\n\n2001:db8:0:5::1, hall ,,\n";
    let keys = "subscribers = [\"10.0.0.0/24\", \"2001:db8::/48\"]\nfile = \"list.csv\"";
    let policy = policy(keys, Some(list)).unwrap();
    let rule = |text: &str| policy.rule(text.parse().unwrap());
    let kitchen = rule("::ffff:10.0.0.7").unwrap();
    assert_eq!((kitchen.name.as_deref(), kitchen.buffer), (Some("kitchen"), Size::Bytes(30_000)));
    assert_eq!(kitchen.regulator, "forecast");
    assert_eq!(rule("2001:db8:0:5::").unwrap().name.as_deref(), Some("hall"));
    assert_eq!(rule("::ffff:10.0.0.8").unwrap().name, None);
    assert_eq!(rule("::ffff:10.0.1.8"), None);
    assert_eq!(policy.label("2001:db8:0:5::".parse().unwrap()), "2001:db8:0:5::/64");
    assert_eq!(policy.label("::ffff:10.0.0.7".parse().unwrap()), "10.0.0.7");
    let prefixes = [("::ffff:10.0.0.0".parse().unwrap(), 120, 128), ("2001:db8::".parse().unwrap(), 48, 64)];
    assert_eq!(policy.prefixes(), prefixes);
}

#[test]
fn a_hold_back_group_is_a_share_by_hash_or_a_list() {
    let acted_on = |keys: &str| {
        let policy = policy(&format!("subscribers = [\"10.0.0.0/16\"]\n{keys}"), None).unwrap();
        let address = |number: u32| std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).to_ipv6_mapped();
        (0..10_000).filter(|number| policy.rule(address(*number)).unwrap().act).collect::<Vec<_>>()
    };
    let (half, quarter) = (acted_on("act_on = \"50 %\""), acted_on("act_on = \"25 %\""));
    assert!((4800..5200).contains(&half.len()) && (2300..2700).contains(&quarter.len()));
    assert!(quarter.iter().all(|number| half.contains(number)), "a larger group keeps its members");
    assert!(acted_on("act_on = \"0 %\"").is_empty());
    assert_eq!(acted_on("").len(), 10_000);
    assert_eq!(acted_on("act_on = [\"10.0.0.4/30\"]\nleave_alone = [\"10.0.0.5\"]"), [4, 6, 7]);
}
