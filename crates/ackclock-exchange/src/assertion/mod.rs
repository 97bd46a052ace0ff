//! Assertions of a script about the sender: `%{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%`.
//!
//! The language is a subset of Python expressions: numbers, the fields and constants of [`ackclock_tcp::info`],
//! comparisons, `and`, `or`, `not` and arithmetic. An assertion has no side effects.

mod expression;
mod lexer;
mod parser;

use ackclock_tcp::TcpInfo;

use self::expression::{Expression, shown};
use self::lexer::{Token, tokens};
use self::parser::Parser;
use crate::refusal::Refusal;

/// An assertion about the sender.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    /// Line of the assertion in the script.
    pub(crate) line: usize,
    /// Source text of the assertion, joined into one line.
    pub(crate) text: String,
    condition: Expression,
    message: Option<Message>,
}

/// Additional message that a failed assertion prints.
#[derive(Clone, Debug)]
enum Message {
    Text(String),
    Value(String, Expression),
}

/// Parses a block of assertions that starts on `line`.
///
/// # Errors
/// Returns an error that names the line of an invalid assertion.
pub(crate) fn assertions(line: usize, block: &str) -> Result<Vec<Assertion>, Refusal> {
    let tokens = tokens(line, block)?;
    let statements = tokens.split(|token| token.is_end()).filter(|statement| !statement.is_empty());
    let found = statements.map(|statement| assertion(block, statement)).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() {
        return Err(Refusal::new(line, "the block asserts nothing"));
    }
    Ok(found)
}

fn assertion(block: &str, tokens: &[Token<'_>]) -> Result<Assertion, Refusal> {
    let mut parser = Parser::new(tokens)?;
    parser.expect_word("assert")?;
    let first = parser.at();
    let condition = parser.expression()?;
    let text = one_line(&block[first..parser.passed()]);
    let message = if parser.take(",") {
        let first = parser.at();
        match parser.take_text() {
            Some(text) => Some(Message::Text(text.to_owned())),
            None => {
                let value = parser.expression()?;
                Some(Message::Value(one_line(&block[first..parser.passed()]), value))
            }
        }
    } else {
        None
    };
    parser.expect_end()?;
    Ok(Assertion { line: tokens[0].line, text, condition, message })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Assertion {
    /// Checks the assertion against the state `info` of the sender.
    ///
    /// # Errors
    /// Returns an error that lists the actual values if the assertion does not hold.
    pub(crate) fn check(&self, info: &TcpInfo) -> Result<(), String> {
        let values = info.values();
        match self.condition.value(&values) {
            Ok(value) if value != 0.0 => Ok(()),
            Ok(_) => Err(self.told(&values)),
            Err(wrong) => Err(format!("{wrong}; {}", self.told(&values))),
        }
    }

    /// Formats the values of the fields in the assertion, and the assertion's message.
    fn told(&self, values: &[u64]) -> String {
        let mut fields = Vec::new();
        self.condition.fields(&mut fields);
        fields.sort_unstable();
        fields.dedup();
        let mut told: Vec<String> = fields.iter().map(|&field| shown(field, values)).collect();
        match &self.message {
            Some(Message::Text(text)) => told.push(text.clone()),
            Some(Message::Value(_, value)) if value.is_field() => {}
            Some(Message::Value(text, value)) => {
                told.push(
                    value.value(values).map_or_else(|wrong| wrong, |value| format!("{text} = {value}")),
                );
            }
            None => {}
        }
        if told.is_empty() { "it does not hold".to_owned() } else { told.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn info() -> TcpInfo {
        TcpInfo {
            tcpi_snd_cwnd: 10,
            tcpi_snd_ssthresh: 7,
            tcpi_ca_state: 3,
            tcpi_rtt: 100_500,
            tcpi_options: 5,
            ..TcpInfo::default()
        }
    }

    fn holds(text: &str) -> Result<(), String> {
        let found = assertions(1, text).map_err(|refusal| refusal.to_string())?;
        found.iter().try_for_each(|assertion| assertion.check(&info()))
    }

    #[test]
    fn expressions_mean_what_they_mean_in_python() {
        let hold = [
            "assert tcpi_snd_cwnd == 10",
            "assert 5 < tcpi_snd_cwnd <= 10 != 11",
            "assert not tcpi_snd_cwnd < 5 and tcpi_snd_ssthresh == 7 or 0",
            "assert tcpi_ca_state == TCP_CA_Recovery, tcpi_ca_state",
            "assert tcpi_snd_cwnd - 2 * 3 + 1 == 5 and -1 == 2 - 3",
            "assert 7 // 2 == 3 and 7 / 2 == 3.5 and 7 % 4 == 3 and -7 // 2 == -4 and -7 % 4 == 1",
            "assert (tcpi_options & TCPI_OPT_WSCALE) != 0 and 4 | 1 == 5",
            "assert tcpi_rtt > 100000.5",
            "assert TCP_INFINITE_SSTHRESH == 0x7fffffff and True and not False",
            "\n  assert (tcpi_snd_cwnd\n    == 10)  # the first window\n  assert 1; assert 2, 'two'\n",
        ];
        for text in hold {
            assert_eq!(holds(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_does_not_hold_is_told_with_the_fields_that_it_names() {
        let fail = [
            ("assert tcpi_snd_cwnd == 5, tcpi_snd_cwnd", "tcpi_snd_cwnd = 10"),
            ("assert tcpi_snd_cwnd < tcpi_snd_ssthresh", "tcpi_snd_ssthresh = 7, tcpi_snd_cwnd = 10"),
            ("assert tcpi_ca_state == TCP_CA_Open", "tcpi_ca_state = 3 (TCP_CA_Recovery)"),
            ("assert 0, 'never'", "never"),
            ("assert 1 > 2", "it does not hold"),
            ("assert 1 == 2, tcpi_rtt / 1000", "tcpi_rtt / 1000 = 100.5"),
            ("assert tcpi_rtt / 0 > 1", "division by zero; tcpi_rtt = 100500"),
            ("assert 1.5 & 1", "1.5 is not a whole number for `&`; it does not hold"),
        ];
        for (text, told) in fail {
            assert_eq!(holds(text), Err(told.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_assertion_is_refused_by_its_line() {
        let refused = [
            ("", "1: the block asserts nothing"),
            ("\nimport os", "2: `import`: a block holds lines `assert CONDITION, MESSAGE`"),
            ("assert\n", "1: an expression ends too early"),
            ("assert 1 +", "1: an expression ends too early"),
            ("assert cwnd == 1", "1: unknown name `cwnd`"),
            ("assert 1 2", "1: `2` stands behind the end"),
            ("assert (1", "1: `)` is missing"),
            ("assert 1 == $", "1: `$`"),
            ("assert 'a' == 1", "1: `'a'`"),
            ("assert 'a", "1: `'a` does not end"),
            ("assert open('x')", "1: unknown name `open`"),
            ("assert 12a", "1: `12a` is not a number"),
        ];
        for (text, message) in refused {
            let error = assertions(1, text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn an_expression_too_deep_or_too_long_is_refused() {
        for text in [format!("assert {}1", "(".repeat(10_000)), format!("assert 1{}", "+1".repeat(10_000))] {
            assert!(assertions(1, &text).unwrap_err().message.contains("too"), "{:.20}", text);
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(
            text in "(assert |[a-z_0-9()+*/%<>=!&|,;'\" \n.-]|tcpi_rtt|and|or|not){0,40}"
        ) {
            let _ = holds(&text);
        }
    }
}
