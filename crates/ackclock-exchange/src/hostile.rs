//! Properties that hold for any script. The fuzz target and the quick property test call the function of this module.

use crate::{RunOptions, Script, run};

/// Parses a script and runs it if it is valid. Any script must either be refused with the number of one of its lines,
/// or run to its end.
///
/// # Errors
/// Returns an error that names the violated property.
pub fn script(text: &str) -> Result<(), String> {
    let refusal = match Script::parse(text) {
        Ok(script) => {
            let outcome = run(&script, &RunOptions::default());
            return match outcome.failure {
                Some(failure) if failure.got.is_empty() => Err(format!("{failure:?} says nothing")),
                _ => Ok(()),
            };
        }
        Err(refusal) => refusal,
    };
    let message = refusal.to_string();
    let lines = text.lines().count().max(1);
    if message.trim_end().contains('\n') || refusal.message.is_empty() || !(1..=lines).contains(&refusal.line)
    {
        return Err(format!("of {lines} lines: {message:?}"));
    }
    Ok(())
}
