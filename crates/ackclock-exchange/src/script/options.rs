//! TCP options of a packet in a script: `<mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 7>`.

use ackclock_core::{
    AccEcn, EctField, LARGEST_WINDOW_SCALE, SackBlock, Segment, Seq, SynOptions, Timestamps,
};

/// TCP options of a packet in a script. The order and padding of the options are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// Options that only a SYN has.
    pub(crate) syn: SynOptions,
    /// Timestamps option (TSval and TSecr), if present.
    pub(crate) timestamps: Option<Timestamps>,
    /// SACK blocks, at most [`Segment::MAX_SACK`].
    pub(crate) sack: Vec<SackBlock>,
    /// AccECN option, if present.
    pub(crate) marks: Option<AccEcn>,
}

const HELP: &str = "options are `mss N`, `wscale N`, `sackOK`, `TS val N ecr N`, `sack N:N ...`, `ECN e0b N ceb N`, `ECN e1b N ceb N`, `nop`, `eol`, or `...` alone";

/// Parses the options between `<` and `>`. Returns `None` for `...`, which matches any options.
///
/// # Errors
/// Returns an error that names the invalid option.
pub(super) fn read(text: &str) -> Result<Option<Options>, String> {
    if text.trim() == "..." {
        return Ok(None);
    }
    let mut options = Options::default();
    for option in text.split(',') {
        let words: Vec<&str> = option.split_whitespace().collect();
        read_one(&words, &mut options)?;
    }
    Ok(Some(options))
}

fn read_one(words: &[&str], options: &mut Options) -> Result<(), String> {
    match *words {
        ["nop" | "eol"] => {}
        ["sackOK"] => options.syn.sack_permitted = true,
        ["mss", value] => options.syn.mss = Some(above_zero(number("mss", value)?)?),
        ["wscale", value] => match number("wscale", value)? {
            shift @ 0..=LARGEST_WINDOW_SCALE => options.syn.window_scale = Some(shift),
            shift => return Err(format!("wscale: {shift} is above {LARGEST_WINDOW_SCALE}")),
        },
        ["TS", "val", value, "ecr", echo] => {
            let stamps = Timestamps { value: number("TS val", value)?, echo: number("ecr", echo)? };
            options.timestamps = Some(stamps);
        }
        ["ECN", field @ ("e0b" | "e1b"), ect, "ceb", ce] => {
            let (ect_bytes, ce_bytes) = (number(field, ect)?, number("ceb", ce)?);
            if u32::max(ect_bytes, ce_bytes) >= 1 << 24 {
                return Err("ECN: a counter has 24 bits".to_owned());
            }
            let field = if field == "e0b" { EctField::Ect0 } else { EctField::Ect1 };
            options.marks = Some(AccEcn { field, ect_bytes, ce_bytes });
        }
        ["sack", ref blocks @ ..] if !blocks.is_empty() => {
            for text in blocks {
                options.sack.push(block(text)?);
            }
            if options.sack.len() > Segment::MAX_SACK {
                return Err(format!("sack: more than {} blocks", Segment::MAX_SACK));
            }
        }
        _ => return Err(format!("unknown option `{}`; {HELP}", words.join(" "))),
    }
    Ok(())
}

fn above_zero(mss: u16) -> Result<u16, String> {
    if mss == 0 { Err("mss: 0 is not above 0".to_owned()) } else { Ok(mss) }
}

fn block(text: &str) -> Result<SackBlock, String> {
    let Some((left, right)) = text.split_once(':') else {
        return Err(format!("sack: `{text}` is not a block, like `1001:2001`"));
    };
    Ok(SackBlock { left: Seq(number("sack", left)?), right: Seq(number("sack", right)?) })
}

/// Parses a whole number that consists of digits only; `what` names the number in error messages.
pub(super) fn number<T: std::str::FromStr>(what: &str, word: &str) -> Result<T, String> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = || format!("{what}: `{word}` is not a whole number in its range");
    if digits { word.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_not_known_or_out_of_range_is_named() {
        let refused = [
            ("mss", "unknown option `mss`"),
            ("mss 0", "0 is not above 0"),
            ("mss 70000", "mss: `70000`"),
            ("wscale 15", "15 is above 14"),
            ("TS val 1", "`TS val 1`"),
            ("sack", "unknown option `sack`"),
            ("sack 1", "not a block"),
            ("sack 1:2 3:4 5:6 7:8", "more than 3 blocks"),
            ("ECN e2b 1 ceb 1", "unknown option"),
            ("ECN e0b 1 ceb 16777216", "24 bits"),
            ("FO abc", "`FO abc`"),
            ("", "unknown option ``"),
        ];
        for (text, message) in refused {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert_eq!(read(" ... "), Ok(None));
    }
}
