//! `--gateway`: runs a link for the devices behind an interface of this machine.

use ackclock_live::gateway::{Disappeared, Gateway, GatewayError};
use ackclock_live::namespace::Received;
use ackclock_scenario::Scenario;

use super::Args;
use super::live::{Link, PERIOD, Read, conclude, deliver};
use super::outputs;
use super::progress::{Place, Progress};
use super::requests::Requests;
use super::text::Text;
use super::web::WebControl;
use crate::failure::Failure;
use crate::output;

/// Puts the devices behind an interface behind the link until a request to end it, and prints the results.
pub(super) fn run(
    args: &Args,
    text: &Text,
    scenario: &Scenario,
    files: Read,
    interface: &str,
) -> Result<(), Failure> {
    refuse_others(args, scenario)?;
    let shown = Place::of(false);
    let metrics = args.watching.metrics.listen()?;
    let web_control = args.watching.control.map(WebControl::listen).transpose()?;
    let captures = outputs::create_captures(args)?;
    let (mut gateway, ends) = Gateway::prepare(interface).map_err(|error| match error {
        GatewayError::Interface(why) => Failure::Input(format!("--gateway: {why}")),
        GatewayError::Obstacle(obstacle) => Failure::Run(obstacle.to_string()),
    })?;
    let requests = Requests::hear()?;
    let link = Link::start(args, text, scenario, files, (ends.tuns, ends.counters), captures, None)?;
    let _name = link.serve(None, metrics);
    if let Some(web_control) = web_control {
        link.serve_web(web_control, None);
    }
    gateway.divert().map_err(|obstacle| Failure::Run(obstacle.to_string()))?;
    output::remark(&format!("the devices behind {interface} are behind the link until Ctrl-C"));
    let ended = attend(&gateway, &requests, &link, shown);
    requests.command_has_ended();
    drop(gateway);
    let (results, series, outputs) = link.finish();
    let printed = results.and_then(|results| deliver(args, scenario, &results, series.as_ref()));
    let failures = [ended.err().map(|gone| Failure::Run(gone.to_string())), printed.err()];
    conclude(0, failures.into_iter().flatten().chain(outputs.finish()).collect())
}

/// Refuses what a gateway has no use for.
///
/// # Errors
/// Fails if there is a command, or an MTU of the link.
fn refuse_others(args: &Args, scenario: &Scenario) -> Result<(), Failure> {
    if !args.words().is_empty() {
        return Err(Failure::Input(
            "link: --gateway is for the devices behind an interface and runs until Ctrl-C; leave the command out"
                .to_owned(),
        ));
    }
    if scenario.tables().edge.mtu_bytes().is_some() {
        return Err(Failure::Input(
            "link: a smaller MTU is for links with a command; with --gateway set that of the interface: \
             ip link set INTERFACE mtu BYTES"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Shows the status of the link until a request to end it.
///
/// # Errors
/// Fails if the interface disappears.
fn attend(gateway: &Gateway, requests: &Requests, link: &Link, shown: Place) -> Result<(), Disappeared> {
    let mut progress = Progress::begin(shown);
    loop {
        if requests.wait(PERIOD).any(|received: Received| received.is_request()) {
            return Ok(());
        }
        gateway.check_interface()?;
        if progress.is_shown()
            && let Some(snapshot) = link.snapshot()
        {
            progress.show(&snapshot);
        }
    }
}
