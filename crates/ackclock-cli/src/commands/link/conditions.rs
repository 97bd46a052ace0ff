//! Options of `ackclock link` for delay, loss and jitter. Each option writes keys of `[edge.up]` and `[edge.down]`.

use ackclock_core::Span;
use ackclock_link::{Direction, Loss, Redraw};
use toml::{Table, Value};

use crate::failure::Failure;

/// Delay, loss and jitter of the link, in both directions or in one. An option for one direction overrides the option
/// for both directions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Delay, loss and jitter")]
pub(super) struct Conditions {
    /// One-way delay, in both directions.
    #[arg(long, value_name = "TIME", conflicts_with = "scenario")]
    delay: Option<Span>,
    /// Round-trip delay, split equally between the two directions.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["scenario", "delay", "up_delay", "down_delay"])]
    rtt: Option<Span>,
    /// One-way delay of packets from the command.
    #[arg(long, value_name = "TIME", conflicts_with = "scenario")]
    up_delay: Option<Span>,
    /// One-way delay of packets to the command.
    #[arg(long, value_name = "TIME", conflicts_with = "scenario")]
    down_delay: Option<Span>,
    /// Share of packets that are dropped, in both directions: 0.01 or 1%.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true)]
    loss: Option<Loss>,
    /// Share of packets from the command that are dropped.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true)]
    up_loss: Option<Loss>,
    /// Share of packets to the command that are dropped.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true)]
    down_loss: Option<Loss>,
    /// Mean duration of a loss burst, 10ms or longer. Without a burst duration, each packet is lost independently.
    #[arg(long, value_name = "TIME", conflicts_with = "scenario")]
    loss_burst: Option<Span>,
    /// Jitter in both directions: a standard deviation such as 10ms, optionally with a distribution. Examples of
    /// jitter: 10ms,uniform (delay ± 10ms) and 10ms,exponential (delay + 10ms on average). The default distribution of
    /// the jitter is normal.
    #[arg(long, value_name = "SPREAD[,LAW]", conflicts_with = "scenario", value_parser = jitter)]
    jitter: Option<Jitter>,
    /// Jitter of packets from the command.
    #[arg(long, value_name = "SPREAD[,LAW]", conflicts_with = "scenario", value_parser = jitter)]
    up_jitter: Option<Jitter>,
    /// Jitter of packets to the command.
    #[arg(long, value_name = "SPREAD[,LAW]", conflicts_with = "scenario", value_parser = jitter)]
    down_jitter: Option<Jitter>,
    /// Time between changes of the jitter delay, or `packet` for a change with every packet. The default interval
    /// between changes is ten times the jitter, and at least 20ms.
    #[arg(long, value_name = "TIME|packet", conflicts_with = "scenario", value_parser = every)]
    jitter_every: Option<Redraw>,
}

/// Spread and distribution of the delay.
#[derive(Clone, Copy, Debug)]
struct Jitter {
    spread: Span,
    law: JitterLaw,
}

#[derive(Clone, Copy, Debug)]
enum JitterLaw {
    Normal,
    Uniform,
    Exponential,
}

fn jitter(text: &str) -> Result<Jitter, String> {
    let (spread, law) = text.split_once(',').unwrap_or((text, "normal"));
    let spread = spread.trim().parse::<Span>().map_err(|error| error.to_string())?;
    let law = match law.trim() {
        "normal" => JitterLaw::Normal,
        "uniform" => JitterLaw::Uniform,
        "exponential" => JitterLaw::Exponential,
        other => {
            return Err(format!("`{other}` is not a law of jitter; write normal, uniform or exponential"));
        }
    };
    Ok(Jitter { spread, law })
}

fn every(text: &str) -> Result<Redraw, String> {
    let redraw = if text == "packet" { text.to_owned() } else { format!("interval({text})") };
    redraw.parse().map_err(|_| "write `packet` or a time of at least 10us, like 100ms".to_owned())
}

/// Time step of the Gilbert-Elliott channel that `--loss-burst` creates.
const BURST_STEP: Span = Span::from_millis(10);
/// Smallest default value of the option `--jitter-every`.
const LEAST_INTERVAL: Span = Span::from_millis(20);

impl Conditions {
    /// Refuses `--loss-burst` without a loss option, and `--jitter-every` without a jitter option.
    ///
    /// # Errors
    /// Fails with the names of the given option and of the missing option.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let loss = self.loss.or(self.up_loss).or(self.down_loss);
        if self.loss_burst.is_some() && loss.is_none() {
            return Err(Failure::Input("--loss-burst says how losses cluster; add --loss SHARE".to_owned()));
        }
        let jitter = self.jitter.or(self.up_jitter).or(self.down_jitter);
        if self.jitter_every.is_some() && jitter.is_none() {
            return Err(Failure::Input(
                "--jitter-every says when jitter is drawn; add --jitter SPREAD".to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns the names of the condition options that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--delay", self.delay.is_some()),
            ("--rtt", self.rtt.is_some()),
            ("--up-delay", self.up_delay.is_some()),
            ("--down-delay", self.down_delay.is_some()),
            ("--loss", self.loss.is_some()),
            ("--up-loss", self.up_loss.is_some()),
            ("--down-loss", self.down_loss.is_some()),
            ("--jitter", self.jitter.is_some()),
            ("--up-jitter", self.up_jitter.is_some()),
            ("--down-jitter", self.down_jitter.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Writes the delay, loss and jitter keys of one direction into the table of its link.
    ///
    /// # Errors
    /// Fails with the name of the option and its allowed values.
    pub(super) fn put(&self, direction: Direction, table: &mut Table) -> Result<(), Failure> {
        let (delay, loss, jitter) = match direction {
            Direction::Up => (self.up_delay, self.up_loss, self.up_jitter),
            Direction::Down => (self.down_delay, self.down_loss, self.down_jitter),
        };
        let given = delay.or(self.delay).or(self.rtt.map(|rtt| rtt / 2));
        let own = table.get("delay").and_then(Value::as_str).map(str::parse::<Span>);
        // A profile's delay may be a distribution instead of a constant.
        let delay = given.or_else(|| own.unwrap_or(Ok(Span::ZERO)).ok());
        if let Some(delay) = delay {
            table.insert("delay".to_owned(), Value::String(delay.to_string()));
        }
        if let Some(jitter) = jitter.or(self.jitter).filter(|jitter| jitter.spread > Span::ZERO) {
            let delay = delay.ok_or_else(|| {
                Failure::Input(
                    "--jitter: the profile's delay varies already; add --delay TIME, or leave --jitter out"
                        .to_owned(),
                )
            })?;
            self.put_jitter(delay, jitter, table)?;
        }
        if let Some(loss) = loss.or(self.loss) {
            let loss = loss.probability();
            let value = match self.loss_burst {
                Some(burst) if loss > 0.0 => bursts(loss, burst)?,
                _ => Value::Float(loss),
            };
            table.insert("loss".to_owned(), value);
        }
        Ok(())
    }

    fn put_jitter(&self, delay: Span, jitter: Jitter, table: &mut Table) -> Result<(), Failure> {
        if let Some(file) = table.get("file") {
            return Err(Failure::Input(format!(
                "--jitter: the recording {file} takes a constant delay; write a rate in its place, or leave --jitter out"
            )));
        }
        let Jitter { spread, law } = jitter;
        if spread > delay && !matches!(law, JitterLaw::Exponential) {
            return Err(Failure::Input(format!(
                "--jitter {spread}: more than the delay, {delay}: the delay would be negative; write at most {delay}, a longer --delay, or {spread},exponential"
            )));
        }
        let law = match law {
            JitterLaw::Normal => format!("n({delay}, {spread})"),
            JitterLaw::Uniform => {
                format!("u({delay}, {})", Span::from_secs_f64(spread.as_secs_f64() / 3_f64.sqrt()))
            }
            JitterLaw::Exponential => format!("{delay} + e({spread})"),
        };
        let tenfold = Span::from_nanos(spread.as_nanos().saturating_mul(10));
        let redraw = self.jitter_every.unwrap_or_else(|| Redraw::Interval(tenfold.max(LEAST_INTERVAL)));
        for (key, value) in [("kind", "variable".to_owned()), ("delay", law), ("redraw", redraw.to_string())]
        {
            table.insert(key.to_owned(), Value::String(value));
        }
        Ok(())
    }
}

/// Creates a Gilbert-Elliott channel with this loss ratio and this mean burst duration.
fn bursts(share: f64, burst: Span) -> Result<Value, Failure> {
    let to_good = BURST_STEP.as_secs_f64() / burst.as_secs_f64();
    let to_bad = to_good * share / (1.0 - share);
    // The check also refuses a loss ratio of 1, which leaves no good state, and a burst duration of 0.
    if share >= 1.0 || to_bad + to_good > 1.0 {
        return Err(Failure::Input(format!(
            "--loss-burst {burst}: with a loss of {share}, bursts last {BURST_STEP} / (1 - {share}) or longer; bursts shorter than {BURST_STEP} are single losses; leave --loss-burst out"
        )));
    }
    let mut table = Table::from_iter([
        ("kind".to_owned(), Value::String("gilbert-elliott".to_owned())),
        ("interval".to_owned(), Value::String(BURST_STEP.to_string())),
    ]);
    for (key, share) in [("p", to_bad), ("r", to_good), ("good", 0.0), ("bad", 1.0)] {
        table.insert(key.to_owned(), Value::Float(share));
    }
    Ok(Value::Table(table))
}
