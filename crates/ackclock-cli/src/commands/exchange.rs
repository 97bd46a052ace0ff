//! `ackclock exchange`: runs packetdrill-style scripts against a simulated sender.

use std::path::{Path, PathBuf};

use ackclock_core::Span;
use ackclock_exchange::{Failure as Unmet, Outcome, RunOptions, Script, run};
use ackclock_tcp::TcpInfo;
use ackclock_tcp::info::CONSTANTS;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;
use crate::scenario_file::read_text;

/// Run packetdrill-style scripts: a peer's packets, and the packets that the sender must answer with.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// packetdrill-style scripts to run.
    #[arg(value_name = "FILE", required_unless_present = "names")]
    files: Vec<PathBuf>,
    /// Time tolerance, such as `5ms`. This tolerance overrides the script's --tolerance_usecs and the default of 10ms.
    #[arg(long, value_name = "TIME", value_parser = tolerance)]
    tolerance: Option<Span>,
    /// Print one JSON object per script, each on its own line.
    #[arg(long)]
    json: bool,
    /// List the names that assertions may use, with their meanings.
    #[arg(long, conflicts_with_all = ["files", "tolerance", "json"])]
    names: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock exchange reno.pkt
  ackclock exchange --tolerance 2ms tests/exchanges/*.pkt
  ackclock exchange --json reno.pkt
  ackclock exchange --names

Exit status: 0 every script came about, 1 one did not, 2 one cannot be expressed here.";

/// Result of one packetdrill-style script.
struct Judged {
    /// File name of the script, as given on the command line.
    name: String,
    script: Script,
    outcome: Outcome,
}

/// Runs the scripts and prints the result of each.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    if args.names {
        return output::print(&names());
    }
    let options = RunOptions { tolerance: args.tolerance };
    let (mut passed, mut failed, mut refused) = (0, 0, 0);
    for file in &args.files {
        match judge(file, &options) {
            Ok(judged) => {
                let counted = if judged.outcome.failure.is_none() { &mut passed } else { &mut failed };
                *counted += 1;
                output::print(&if args.json { judged.json() } else { judged.text() })?;
            }
            Err(message) => {
                refused += 1;
                output::remark(&message);
            }
        }
    }
    if !args.json && args.files.len() > 1 {
        let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
        output::print(&format!("{passed} passed, {failed} failed{refused}\n"))?;
    }
    match (refused, failed) {
        (0, 0) => Ok(()),
        (0, _) => Err(Failure::Reported(1)),
        _ => Err(Failure::Reported(2)),
    }
}

/// Reads a script and runs it against the sender.
fn judge(file: &Path, options: &RunOptions) -> Result<Judged, String> {
    let text =
        read_text(file, "script").map_err(|failure| failure.message().unwrap_or_default().to_owned())?;
    let name = file.display().to_string();
    let script = Script::parse(&text).map_err(|refusal| format!("{name}:{refusal}"))?;
    let outcome = run(&script, options);
    Ok(Judged { name, script, outcome })
}

impl Judged {
    fn text(&self) -> String {
        let mut text = match &self.outcome.failure {
            None => format!("ok    {}\n", self.name),
            Some(Unmet { line, expected, got }) => {
                format!("FAIL  {}:{line}\n      expected  {expected}\n      got       {got}\n", self.name)
            }
        };
        for note in self.script.notes() {
            text += &format!("      note: line {}: {}\n", note.line, note.text);
        }
        if self.outcome.failure.is_some() {
            for seen in &self.outcome.seen {
                text +=
                    &format!("      {:.6} {} {}\n", seen.at.as_secs_f64(), seen.direction.sign(), seen.text);
            }
        }
        text
    }

    fn json(&self) -> String {
        let seen = self.outcome.seen.iter().map(|seen| {
            json!({"time_s": seen.at.as_secs_f64(), "direction": seen.direction.sign(), "segment": seen.text})
        });
        let notes = self.script.notes().iter().map(|note| json!({"line": note.line, "text": note.text}));
        let unmet = self.outcome.failure.as_ref();
        let object = json!({
            "script": self.name,
            "passed": unmet.is_none(),
            "line": unmet.map(|unmet| unmet.line),
            "expected": unmet.map(|unmet| &unmet.expected),
            "got": unmet.map(|unmet| &unmet.got),
            "segments": seen.collect::<Vec<Value>>(),
            "notes": notes.collect::<Vec<Value>>(),
        });
        format!("{object}\n")
    }
}

fn names() -> String {
    let longest = TcpInfo::FIELDS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let field = |(name, meaning): &(&str, &str)| format!("{name:longest$} {meaning}\n");
    let constants: Vec<_> = CONSTANTS.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let fields: String = TcpInfo::FIELDS.iter().map(field).collect();
    format!("{fields}\n{}\n", constants.join("\n"))
}

fn tolerance(text: &str) -> Result<Span, String> {
    text.parse::<Span>().map_err(|error| error.to_string())
}
