//! Times of events: `0.1`, `+.1`, `0.1~0.2`, `+.1~+.2`, `*`.

use ackclock_core::Span;

/// Time or time range of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Range of two times since the start of the script.
    At(Span, Span),
    /// Range of two delays after the previous event.
    After(Span, Span),
    /// The event may occur at any time.
    Any,
}

/// Latest allowed time in a script, seconds.
const LAST_SECOND: f64 = 1e6;

const HELP: &str = "an event begins with its time, like `0.1`, `+.1`, `+.1~+.2` or `*`";

/// Splits an event into its time and its remaining text.
///
/// # Errors
/// Returns an error if the event does not start with a time.
pub(super) fn read(text: &str) -> Result<(When, &str), String> {
    let end = text.find(|c: char| !"+.~*0123456789".contains(c)).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let rest = rest.trim_start();
    if time.is_empty() {
        return Err(format!("`{text}` has no time; {HELP}"));
    }
    if time.contains("...") {
        return Err(format!("`{time}` is a call that blocks; a call takes no time here"));
    }
    if time == "*" {
        return Ok((When::Any, rest));
    }
    let (start, end) = time.split_once('~').unwrap_or((time, time));
    let when = match (start.strip_prefix('+'), end.strip_prefix('+')) {
        (Some(start), Some(end)) => When::After(span(start)?, span(end)?),
        (None, None) => When::At(span(start)?, span(end)?),
        _ => return Err(format!("`{time}` begins in one way and ends in another; {HELP}")),
    };
    match when {
        When::At(start, end) | When::After(start, end) if end < start => {
            Err(format!("`{time}` ends before it begins"))
        }
        _ => Ok((when, rest)),
    }
}

fn span(text: &str) -> Result<Span, String> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    match text.parse::<f64>() {
        Ok(seconds) if digits && seconds <= LAST_SECOND => Ok(Span::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a number of seconds from 0 to 1000000; {HELP}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_packetdrill_writes_them() {
        let ms = Span::from_millis;
        let cases = [
            ("0 x", When::At(ms(0), ms(0))),
            ("0.25~.3 x", When::At(ms(250), ms(300))),
            ("+.1 x", When::After(ms(100), ms(100))),
            ("+0~+1 x", When::After(ms(0), ms(1000))),
            ("* x", When::Any),
        ];
        for (text, when) in cases {
            assert_eq!(read(text), Ok((when, "x")), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["< .", "", "+ x", "1.2.3 x", "0~+1 x", "2~1 x", "0...1 x", "2000000 x", "** x", ". x"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
