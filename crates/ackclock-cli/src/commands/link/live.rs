//! Runs a link: starts its threads, waits for the command to end, and prints the results.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, io, iter};

use ackclock_core::results::{Provenance, RunResult};
use ackclock_core::{Config, RadioReport, Span, Time};
use ackclock_edge::{EdgeConfig, ReportTable};
use ackclock_import::Recording;
use ackclock_live::capture::{Recorder, Tap};
use ackclock_live::control::{self, LinkRequest};
use ackclock_live::faults::Fault;
use ackclock_live::namespace::{
    DeviceCounters, Ends, Obstacle, Outside, Pair, Plan, Publish, Received, World, needs,
};
use ackclock_live::reach::Reach;
use ackclock_live::selection::{MatchedEnds, Selection};
use ackclock_live::{
    Account, Crowd, Driver, Hop, Orders, Page, Plane, PlaneConfig, RealClock, Remote, Side, Snapshot,
    Traffic, TunPort, web_control,
};
use ackclock_output::{Folders, WholeFile};
use ackclock_scenario::{DiskFiles, Inputs, Scenario, Series, certainties, json_line};
use serde_json::json;

use super::course::Course;
use super::current::Current;
use super::forward;
use super::outputs::{self, Captures, Outputs, now, recording};
use super::progress::{self, Progress};
use super::publish;
use super::requests::Requests;
use super::text::Text;
use super::web::WebControl;
use super::{Args, Network, Watching};
use crate::commands::radio_report::Sender;
use crate::failure::Failure;
use crate::report::Draft;
use crate::{metrics, output};

/// Thread that runs the data plane.
type Thread = JoinHandle<io::Result<Driver<RealClock, Tap<TunPort>>>>;

/// Reader of the recording files that a link plays.
pub(super) type Read = Inputs<DiskFiles>;

/// Time before a deadline that the driver spends busy-waiting.
const SPIN: Span = Span::from_micros(50);

/// Creates the link, runs the command in it, and prints the results.
pub(super) fn run(args: &Args, text: &Text, scenario: &Scenario, files: Read) -> Result<(), Failure> {
    let shown = progress::Place::of(args.words().is_empty() && args.network.proxy.is_none());
    // Every operation that may fail in this process runs before other processes are started.
    let metrics = args.watching.metrics.listen()?;
    let web_control = args.watching.control.map(WebControl::listen).transpose()?;
    let captures = outputs::create_captures(args)?;
    let plan = plan(args, web_control.as_ref())?;
    let (mut world, ends) =
        World::begin(&plan).map_err(|failed| cannot_be_made(&needs::obstacles(failed)))?;
    say_reach(&world, args);
    forward::say_congestion_control(&world);
    let requests = Requests::hear()?;
    let Ends { outside, inside, control, web_control: web_inside, counters } = ends;
    let hop = hop(&scenario.tables().edge, &world.pair);
    let link = Link::start(args, text, scenario, files, ([outside, inside], counters), captures, hop)?;
    let _name = link.serve(Some(control), metrics);
    if let Some(web_control) = web_control {
        link.serve_web(web_control, web_inside);
    }
    world
        .go(output::remark)
        .map_err(|error| Failure::Run(format!("the command cannot be started: {error}")))?;
    let once = args.spelling.once.then(|| link.length()).flatten();
    let status = attend(&mut world, &requests, &link, once, shown);
    requests.command_has_ended();
    let published: Vec<u16> = plan.publishes.iter().map(Publish::inside).collect();
    forward::say_refused(&world, &plan.forwards, &published);
    drop(world);
    let (results, series, outputs) = link.finish();
    let printed = results.and_then(|results| deliver(args, scenario, &results, series.as_ref()));
    conclude(status, printed.err().into_iter().chain(outputs.finish()).collect())
}

/// Prints the results, and writes the report. Results come first, so that a failing output file cannot suppress them.
pub(super) fn deliver(
    args: &Args,
    scenario: &Scenario,
    results: &RunResult,
    series: Option<&Series>,
) -> Result<(), Failure> {
    let line = json_line(results, &[]);
    if args.watching.json {
        output::print(&format!("{line}\n"))?;
    }
    let Some(series) = series else { return Ok(()) };
    if let Some(path) = &args.watching.series {
        let mut file = WholeFile::create(path, Folders::Existing)?;
        series.write_csv(&mut file).map_err(|error| file.failure(error))?;
        file.finish()?;
    }
    let Some(path) = &args.watching.report_html else { return Ok(()) };
    let mut draft = Draft::new(scenario, iter::once(line))?;
    draft.add_series("link", series)?;
    draft.draw(path)
}

/// Plans the processes and networks of the link.
fn plan(args: &Args, web_control: Option<&WebControl>) -> Result<Plan, Failure> {
    let outside = match &args.network {
        Network { server: Some(server), .. } => Outside::Server(server.clone()),
        Network { closed: true, .. } => Outside::Nothing,
        Network { .. } => Outside::Machine,
    };
    Ok(Plan {
        command: command(args)?,
        environment: web_control.into_iter().flat_map(WebControl::environment).collect(),
        outside,
        forwards: forward::all(&args.network.forward)?,
        publishes: publish::listen(&args.network.publish, args.network.proxy)?,
        web_control: web_control.map(|web_control| web_control.address),
        ecn: args.network.ecn,
    })
}

/// Puts what packets meet before the link into the plane: the selection of flows, and the hop with a smaller MTU.
fn put_before(plane: &mut Plane, network: &Network, hop: Option<Hop>) {
    let ends = if network.gateway.is_some() { MatchedEnds::Either } else { MatchedEnds::Far };
    plane.match_at(ends);
    let selection = Selection { only: network.only.clone(), except: network.except.clone(), ends };
    if !selection.is_everything() {
        plane.select(selection);
    }
    for kind in &network.fault {
        // A fault of the command line acts on all flows, so it has no match that could be refused.
        let _ = plane.add_fault(Time::ZERO, Fault { kind: *kind, only: Vec::new(), lasts: None });
    }
    if let Some(hop) = hop {
        plane.narrow(hop);
    }
}

/// Hop with the MTU of the edge in front of the link.
fn hop(edge: &EdgeConfig, pair: &Pair) -> Option<Hop> {
    let mtu = edge.mtu_bytes()?;
    Some(if edge.mtu_blackhole { Hop::black_hole(mtu) } else { Hop::new(mtu, pair) })
}

/// Starts the sender of radio reports; the thread ends with the link.
fn reports(watching: &Watching) -> Result<Option<mpsc::Sender<RadioReport>>, Failure> {
    let Watching { radio_reports: Some(to), report_key: Some(key), report_user: Some(user), .. } = watching
    else {
        return Ok(None);
    };
    let mut sender = Sender::new(*to, key, *user)?;
    let (reports, heard) = mpsc::channel::<RadioReport>();
    thread::spawn(move || {
        for report in heard {
            let bytes = u32::try_from(report.queued_bytes).unwrap_or(u32::MAX);
            // A proxy that does not listen yet hears the next report.
            let _ = sender.send(report.rate, report.queued_packets, bytes);
        }
    });
    Ok(Some(reports))
}

/// Creates an error that lists all obstacles to creating a link, one per line.
fn cannot_be_made(obstacles: &[Obstacle]) -> Failure {
    let lines: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
    Failure::Run(match lines.as_slice() {
        [one] => one.clone(),
        all => format!("a link needs {} things that are missing here:\n{}", all.len(), all.join("\n")),
    })
}

/// Prints each requirement of a link, whether the requirement is met, and how to meet it.
pub(super) fn check(json: bool) -> Result<(), Failure> {
    let needs: Vec<_> = needs::NEEDS.iter().map(|need| (need.what, need.obstacle())).collect();
    let ok = needs.iter().all(|(_, obstacle)| obstacle.is_none());
    let text = if json {
        let need = |(what, obstacle): &(&str, Option<Obstacle>)| {
            let missing = obstacle.as_ref();
            let (why, remedy) = (missing.map(|it| &it.why), missing.and_then(|it| it.remedy.as_ref()));
            json!({ "need": what, "ok": missing.is_none(), "why": why, "remedy": remedy })
        };
        let needs: Vec<_> = needs.iter().map(need).collect();
        format!("{}\n", json!({ "ok": ok, "needs": needs }))
    } else {
        let line = |(what, obstacle): &(&str, Option<Obstacle>)| match obstacle {
            None => format!("{what}: ok\n"),
            Some(obstacle) => format!("{obstacle}\n"),
        };
        needs.iter().map(line).collect()
    };
    output::print(&text)?;
    if ok { Ok(()) } else { Err(Failure::Reported(1)) }
}

/// Reports all failures except the last, which is returned as the error. The command's exit status takes precedence
/// over failures.
pub(super) fn conclude(status: u8, mut failures: Vec<Failure>) -> Result<(), Failure> {
    let last = if status == 0 { failures.pop() } else { Some(Failure::Reported(status)) };
    failures.iter().filter_map(Failure::message).for_each(output::remark);
    last.map_or(Ok(()), Err)
}

/// Returns the command to run: that of the command line, the proxy of `--proxy`, or the user's shell.
fn command(args: &Args) -> Result<Vec<OsString>, Failure> {
    let words = args.words();
    match args.network.proxy {
        Some(_) if !words.is_empty() => Err(Failure::Input(
            "link: --proxy is for other devices and runs until Ctrl-C; leave the command out".to_owned(),
        )),
        Some(at) => {
            let own = env::current_exe().map_err(|error| Failure::Run(format!("this program: {error}")))?;
            let inside = format!("127.0.0.1:{}", at.port());
            output::remark(&format!("HTTP and SOCKS5 proxy at {at}; its connections cross the link"));
            Ok(vec![own.into(), "proxy".into(), "--listen".into(), inside.into()])
        }
        None if words.is_empty() => Ok(vec![env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())]),
        None => Ok(words),
    }
}

fn say_reach(world: &World, args: &Args) {
    if let Reach::Closed(why) = &world.reach
        && args.network.server.is_none()
        && !args.network.closed
    {
        output::remark(&format!("the inside reaches only {}: {why}", world.pair.base));
    }
    world.remarks.iter().for_each(|remark| output::remark(remark));
}

/// Waits for the command to end, forwards signals to the command, and shows the status of the link.
fn attend(
    world: &mut World,
    requests: &Requests,
    link: &Link,
    once: Option<Span>,
    shown: progress::Place,
) -> u8 {
    let begun = now();
    let mut progress = Progress::begin(shown);
    loop {
        for request in requests.wait(PERIOD).filter(Received::is_ours) {
            world.signal(request.signal);
        }
        world.note_refusals();
        if let Some(status) = world.ended() {
            return status;
        }
        if once.is_some_and(|length| begun.elapsed() >= Duration::from_nanos(length.as_nanos())) {
            // As in mm-link, `--once` ends the command at the end of the recording.
            return 0;
        }
        if progress.is_shown()
            && let Some(snapshot) = link.snapshot()
        {
            progress.show(&snapshot);
        }
    }
}

/// Interval between status updates, and between checks for the end of a recording.
pub(super) const PERIOD: Duration = Duration::from_millis(250);

/// Thread of the driver, and the data shared with it.
pub(super) struct Link {
    thread: Thread,
    outputs: Outputs,
    /// Sampler for the report.
    course: Option<Course>,
    shared: Arc<Shared>,
}

/// Data shared by the threads of a link.
pub(super) struct Shared {
    pub(super) remote: Remote,
    scenario: Scenario,
    pub(super) seed: u64,
    pub(super) files: Read,
    /// Current conditions of the link.
    pub(super) conditions: Mutex<Current>,
    /// Name of the link's regulator.
    regulator: String,
    /// Collector of the link's results.
    account: Mutex<Account>,
    /// Latest snapshot of the link, with the time at which it was taken.
    snapshot: Mutex<Option<(Instant, Arc<Snapshot>)>>,
}

impl Link {
    /// Starts the driver, which moves packets between two TUN devices. The first TUN device is at the outer end of the
    /// link.
    pub(super) fn start(
        args: &Args,
        text: &Text,
        scenario: &Scenario,
        files: Read,
        (tuns, counters): ([OwnedFd; 2], [DeviceCounters; 2]),
        mut captures: Captures,
        hop: Option<Hop>,
    ) -> Result<Self, Failure> {
        let mut edge = scenario.tables().edge.clone();
        let reports = reports(&args.watching)?;
        if reports.is_some() {
            let table = ReportTable { every: args.watching.report_every, ..ReportTable::default() };
            table.check().map_err(|error| Failure::Input(format!("--report-every: {error}")))?;
            edge.report = Some(table);
        }
        let seed = args.seed.unwrap_or(scenario.tables().seed);
        let config = PlaneConfig { delay: scenario.tables().path.delay, seed, ..PlaneConfig::new(&edge) };
        let mut plane =
            Plane::new(&config, &files).map_err(|error| Failure::Input(format!("{}: {error}", text.name)))?;
        if let Some(reports) = reports {
            plane.report_to(reports);
        }
        put_before(&mut plane, &args.network, hop);
        let mut account =
            plane.account().ok_or_else(|| Failure::Run("the plane is somebody else's".to_owned()))?;
        account.include_devices(counters);
        let mut outputs = Outputs::default();
        outputs.log(&mut plane, args, edge.radio(), &files)?;
        let [outside, inside] = Side::BOTH.map(|side| outputs.capture(side, &mut captures));
        let (remote, thread) = drive(plane, tuns, [outside?, inside?])
            .map_err(|error| Failure::Run(format!("the link cannot be driven: {error}")))?;
        let scenario = scenario.clone();
        let shared = Shared {
            remote,
            scenario,
            seed,
            files,
            conditions: Mutex::new(Current::new(edge.radio().clone())),
            regulator: account.regulator().to_owned(),
            account: Mutex::new(account),
            snapshot: Mutex::new(None),
        };
        let is_sampled = args.watching.report_html.is_some() || args.watching.series.is_some();
        let course = is_sampled.then(|| Course::begin(shared.remote.clone()));
        Ok(Self { thread, outputs, course, shared: Arc::new(shared) })
    }

    /// Starts answering requests at the control sockets and the metrics address. The name of the outer control socket
    /// exists as long as the returned value.
    pub(super) fn serve(
        &self,
        inside: Option<OwnedFd>,
        metrics: Option<metrics::Listening>,
    ) -> Option<control::Name> {
        // Without the outer socket, only processes inside the link can change its conditions.
        let (outside, name) = control::listen(std::process::id()).ok().unzip();
        let inside = inside.map(|inside| control::Listener::from(UnixListener::from(inside)));
        for listener in inside.into_iter().chain(outside) {
            let shared = Arc::clone(&self.shared);
            thread::spawn(move || listener.serve(|request| shared.answer(request)));
        }
        if let Some(page) = metrics {
            let shared = Arc::clone(&self.shared);
            page.serve(move || {
                shared.snapshot().map_or_else(String::new, |all| progress::page(&all, &shared.regulator))
            });
        }
        name
    }

    /// Starts answering HTTP requests, on the machine and inside.
    pub(super) fn serve_web(
        &self,
        WebControl { listener, token, .. }: WebControl,
        inside: Option<TcpListener>,
    ) {
        for listener in std::iter::once(listener).chain(inside) {
            let (shared, token) = (Arc::clone(&self.shared), token.clone());
            thread::spawn(move || web_control::serve(&listener, &token, |request| shared.answer(request)));
        }
    }

    /// Latest snapshot of the link.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.shared.snapshot()
    }

    /// Duration of the shortest recording that the link plays; `None` if the link plays no recording.
    fn length(&self) -> Option<Span> {
        let edge = self.shared.scenario.tables().edge.radio();
        [&edge.up, &edge.down]
            .into_iter()
            .filter_map(|table| recording(table, &self.shared.files))
            .map(|recording| match recording {
                Recording::Opportunities(opportunities) => opportunities.length(),
                Recording::Samples(samples) => samples.length(),
            })
            .min()
    }

    /// Stops the driver and returns the results, the time series for the report, and the unfinished output files.
    pub(super) fn finish(self) -> (Result<RunResult, Failure>, Option<Series>, Outputs) {
        let series = self.course.map(Course::end);
        let results = self.shared.results();
        self.shared.remote.stop();
        let failed = |error: &dyn std::fmt::Display| Failure::Run(format!("the link broke down: {error}"));
        let ended = match self.thread.join() {
            Ok(Ok(mut driver)) => {
                driver.plane_mut().finish_logs();
                results.ok_or_else(|| failed(&"it does not answer")).map(|(results, traffic)| {
                    say_lost(&traffic, driver.plane().crowd());
                    say_strays(&traffic);
                    results
                })
            }
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&"its thread died")),
        };
        (ended, series, self.outputs)
    }
}

/// Reports packets that this machine lost outside the emulated link, and packets missing from the counts.
fn say_lost(traffic: &[Traffic; 2], crowd: Option<Crowd>) {
    let of = |at: usize, way: &str| {
        let lost = &traffic[at].lost;
        (lost.total() != Some(0)).then(|| match lost.total() {
            Some(total) => format!("{total} packets {way} ({lost})"),
            None => format!("packets {way}, of which the kernel gives no count"),
        })
    };
    let lost: Vec<_> = [of(0, "to the command"), of(1, "from the command")].into_iter().flatten().collect();
    if !lost.is_empty() {
        output::remark(&format!("this machine, not the emulated link, lost {}", lost.join(" and ")));
    }
    if let Some(Crowd { inside, waiting, held, kept }) = crowd {
        output::remark(&format!(
            "when the first packet found no room {inside} packets were inside: {waiting} were queued, the regulator held {held} \
             ACKs and kept copies of {kept}"
        ));
    }
    for unaccounted in traffic.iter().map(Traffic::unaccounted).filter(|packets| *packets != 0) {
        output::remark(&format!("{unaccounted} packets are unaccounted for: this is a fault of ackclock"));
    }
}

/// Reports fragments that `--only` and `--except` could not assign to a flow.
fn say_strays(traffic: &[Traffic; 2]) {
    let strays: u64 = traffic.iter().map(|traffic| traffic.strays).sum();
    if strays > 0 {
        output::remark(&format!(
            "{strays} fragments came without the first fragment of their datagram, which has the ports; --only and --except \
             judged them by address and protocol alone"
        ));
    }
}

/// Starts the driver in a separate thread.
fn drive(plane: Plane, tuns: [OwnedFd; 2], captures: [Option<Recorder>; 2]) -> io::Result<(Remote, Thread)> {
    let (orders, remote) = Orders::new()?;
    let ([outside, inside], [capture_outside, capture_inside]) = (tuns, captures);
    let wired = Tap::new(TunPort::new(outside, plane.pool())?, capture_outside);
    let radio = Tap::new(TunPort::new(inside, plane.pool())?, capture_inside);
    let thread = thread::spawn(move || {
        let clock = RealClock::new([wired.as_fd(), radio.as_fd()], orders.as_fd(), SPIN)?;
        let mut driver = Driver::new(plane, clock, [wired, radio]);
        driver.run(&orders, None)?;
        Ok(driver)
    });
    Ok((remote, thread))
}

impl Shared {
    fn answer(self: &Arc<Self>, request: &LinkRequest) -> Result<String, String> {
        match request {
            LinkRequest::Show => self
                .results()
                .map(|(results, _)| json_line(&results, &[]))
                .ok_or_else(|| "the link has ended".to_owned()),
            LinkRequest::Conditions => {
                self.conditions.lock().unwrap_or_else(PoisonError::into_inner).conditions()
            }
            LinkRequest::Set(pairs) => self.set(pairs).map(|()| String::new()),
            LinkRequest::Outage(outage) => self.interrupt(*outage).map(|()| String::new()),
            LinkRequest::Fault(fault) => {
                let fault = fault.clone();
                let added = self.of_plane(|plane, now| plane.add_fault(now, fault))?;
                added.map(|()| String::new()).map_err(|error| error.to_string())
            }
            LinkRequest::Faults => self.of_plane(|plane, now| plane.faults(now).to_string()),
            LinkRequest::ClearFaults => {
                self.of_plane(|plane, _| plane.clear_faults()).map(|()| String::new())
            }
        }
    }

    /// Calls `with` on the thread of the data plane.
    pub(super) fn of_plane<T: Send + 'static>(
        &self,
        with: impl FnOnce(&mut Plane, Time) -> T + Send + 'static,
    ) -> Result<T, String> {
        self.remote.ask(with).ok_or_else(|| "the link has ended".to_owned())
    }

    /// Returns the results so far, and the packet counters of each direction.
    fn results(&self) -> Option<(RunResult, [Traffic; 2])> {
        let provenance = Provenance {
            inputs: self.files.digests(),
            recordings: certainties(self.scenario.tables(), &self.files),
            ..self.scenario.provenance()
        };
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = account.snapshot(|from| self.page(from))?;
        let faults = self.remote.ask(Plane::fault_results)?;
        let results = account.results(&snapshot, self.scenario.name(), self.seed, provenance);
        let results = RunResult { faults, ..results };
        Some((results, snapshot.summary.traffic))
    }

    /// Returns a snapshot of the link that is at most [`MOMENT`] old, so that frequent requests do not delay packets.
    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let mut last = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, snapshot)) = &*last
            && at.elapsed() < MOMENT
        {
            return Some(Arc::clone(snapshot));
        }
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = Arc::new(account.snapshot(|from| self.page(from))?);
        *last = Some((now(), Arc::clone(&snapshot)));
        Some(snapshot)
    }

    fn page(&self, from: usize) -> Option<Page> {
        self.remote.ask(move |plane, _| plane.page(from))
    }
}

/// Maximum age at which a snapshot of the link is reused.
const MOMENT: Duration = Duration::from_millis(100);
