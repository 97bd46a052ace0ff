//! Options of `ackclock link` for delay, loss, jitter and impairments. Each option writes keys of `[edge.up]` and `[edge.down]`.

use ackclock_core::Span;
use ackclock_link::{Direction, Framing, Loss, Redraw};
use toml::{Table, Value};

use crate::failure::Failure;

/// Delay, loss and jitter of the link, in both directions or in one. An option for one direction overrides the option
/// for both directions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Delay, loss, jitter and impairments")]
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
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true, value_parser = share)]
    loss: Option<Loss>,
    /// Share of packets from the command that are dropped.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true, value_parser = share)]
    up_loss: Option<Loss>,
    /// Share of packets to the command that are dropped.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true, value_parser = share)]
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
    /// Share of packets that leave late, in both directions, so that later packets pass them: 1%, or with how much
    /// later they leave: 1%,20ms. By default they leave later by the one-way delay.
    #[arg(long, value_name = "SHARE[,EXTRA]", conflicts_with = "scenario", value_parser = reorder)]
    reorder: Option<(Loss, Option<Span>)>,
    /// Share of packets followed by a copy, in both directions.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true, value_parser = share)]
    duplicate: Option<Loss>,
    /// Share of packets with a wrong bit in their payload, in both directions.
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", allow_negative_numbers = true, value_parser = share)]
    corrupt: Option<Loss>,
    /// Bytes that frames of the link add to each packet, in both directions: 44, with ATM or PTM cells 44,atm or
    /// 30,ptm, with a smallest frame 18,least=64; or a keyword of tc-cake(8), such as docsis or pppoe-llcsnap.
    #[arg(long, value_name = "BYTES|KEYWORD", conflicts_with = "scenario", allow_negative_numbers = true)]
    overhead: Option<Framing>,
    /// Largest packet in bytes that a hop in front of the link forwards, in both directions. The hop tells senders its
    /// MTU by ICMP, and fragments IPv4 packets without DF.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=1500))]
    pub(super) mtu: Option<u16>,
    /// Drop packets larger than `--mtu` without ICMP.
    #[arg(long, requires = "mtu")]
    pub(super) mtu_blackhole: bool,
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

/// Parses a share of packets. The number 1 without a unit may mean 1 % or all packets, so it is refused.
pub(super) fn share(text: &str) -> Result<Loss, String> {
    let is_number = text.parse::<f64>().is_ok_and(|number| number >= 1.0);
    let share = text.parse::<Loss>();
    match &share {
        Ok(_) if is_number => Err("write 1% for one packet in a hundred, or 100% for all packets".to_owned()),
        Err(message) if is_number => Err(format!("{message}; for {text} packets in a hundred write {text}%")),
        _ => share,
    }
}

fn reorder(text: &str) -> Result<(Loss, Option<Span>), String> {
    let (share, extra) = text.split_once(',').map_or((text, None), |(share, extra)| (share, Some(extra)));
    let extra = extra.map(|extra| extra.trim().parse::<Span>().map_err(|error| error.to_string()));
    Ok((self::share(share.trim())?, extra.transpose()?))
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
            ("--reorder", self.reorder.is_some()),
            ("--duplicate", self.duplicate.is_some()),
            ("--corrupt", self.corrupt.is_some()),
            ("--overhead", self.overhead.is_some()),
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
        self.put_impairments(delay, table)
    }

    fn put_impairments(&self, delay: Option<Span>, table: &mut Table) -> Result<(), Failure> {
        if let Some((share, extra)) = self.reorder {
            let extra = extra.or(delay).filter(|&extra| extra > Span::ZERO).ok_or_else(|| {
                let share = share.probability() * 100.0;
                Failure::Input(format!(
                    "--reorder {share}%: how much later packets leave is missing, and the link has no constant delay to take; write --reorder {share}%,20ms"
                ))
            })?;
            let reorder = Table::from_iter([
                ("share".to_owned(), Value::Float(share.probability())),
                ("extra".to_owned(), Value::String(extra.to_string())),
            ]);
            table.insert("reorder".to_owned(), Value::Table(reorder));
        }
        for (key, share) in [("duplicate", self.duplicate), ("corrupt", self.corrupt)] {
            if let Some(share) = share {
                table.insert(key.to_owned(), Value::Float(share.probability()));
            }
        }
        if let Some(overhead) = self.overhead {
            table.insert("overhead".to_owned(), Value::String(overhead.to_string()));
        }
        Ok(())
    }

    /// A remark if normal jitter is large for the delay of its direction, uplink before downlink.
    pub(super) fn remark(&self, [up, down]: [&Table; 2]) -> Option<String> {
        [(self.up_jitter, up), (self.down_jitter, down)].into_iter().find_map(|(own, table)| {
            let Jitter { spread, law: JitterLaw::Normal } = own.or(self.jitter)? else { return None };
            let law = table.get("delay")?.as_str()?.strip_prefix("n(")?;
            let delay: Span = law.split(',').next()?.parse().ok()?;
            (spread * 3 > delay).then(|| {
                format!(
                    "--jitter {spread}: more than a third of the delay, {delay}: at least 0.1 % of the delays are cut at 0, which raises their mean"
                )
            })
        })
    }

    /// Keys of a direction's table that the given options write, each with its option.
    pub(super) fn written(&self, direction: Direction) -> Vec<(&'static str, &'static str)> {
        let given: Vec<&str> = self.given().collect();
        let [own_delay, own_loss, own_jitter] = match direction {
            Direction::Up => ["--up-delay", "--up-loss", "--up-jitter"],
            Direction::Down => ["--down-delay", "--down-loss", "--down-jitter"],
        };
        let keys = [
            ("delay", own_jitter),
            ("delay", "--jitter"),
            ("delay", own_delay),
            ("delay", "--delay"),
            ("delay", "--rtt"),
            ("redraw", own_jitter),
            ("redraw", "--jitter"),
            ("loss", own_loss),
            ("loss", "--loss"),
            ("reorder", "--reorder"),
            ("duplicate", "--duplicate"),
            ("corrupt", "--corrupt"),
            ("overhead", "--overhead"),
        ];
        keys.into_iter().filter(|(_, option)| given.contains(option)).collect()
    }

    fn put_jitter(&self, delay: Span, jitter: Jitter, table: &mut Table) -> Result<(), Failure> {
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
        if !table.contains_key("file") {
            table.insert("kind".to_owned(), Value::String("variable".to_owned()));
        }
        for (key, value) in [("delay", law), ("redraw", redraw.to_string())] {
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
