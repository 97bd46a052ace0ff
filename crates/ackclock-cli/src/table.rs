//! Formats tables for human readers: aligned columns, few digits, grouped thousands.

use std::io::{self, IsTerminal};

use ackclock_core::text::printable_line;

use crate::statistics::Estimate;

/// Alignment of a table column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Left alignment, for columns of names.
    Left,
    /// Right alignment, for columns of numbers.
    Right,
}

/// Table with column headings and rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column to the table. Columns must be added before rows.
    pub(crate) fn column(&mut self, heading: impl Into<String>, align: Align) {
        self.headings.push((heading.into(), align));
    }

    /// Adds a row with one cell per column to the table.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells.into_iter().map(|cell| printable_line(&cell).into_owned()).collect());
    }

    /// Appends a column of numbers with one cell per row.
    pub(crate) fn last_column(&mut self, heading: String, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows.len());
        self.column(printable_line(&heading).into_owned(), Align::Right);
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }

    /// Returns the table as text. If lines would exceed `width` characters, each row becomes a block of lines.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.column_width(column)).collect();
        let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if width.is_some_and(|width| whole > width) { self.blocks() } else { self.lines(&widths) }
    }

    fn column_width(&self, column: usize) -> usize {
        let heading = length(&self.headings[column].0);
        self.rows.iter().map(|row| length(&row[column])).fold(heading, usize::max)
    }

    fn lines(&self, widths: &[usize]) -> String {
        let headings: Vec<_> = self.headings.iter().map(|(heading, _)| heading.clone()).collect();
        let rule: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut text = String::new();
        for row in [&headings, &rule].into_iter().chain(&self.rows) {
            let cells: Vec<_> =
                row.iter().zip(widths).zip(&self.headings).map(|((c, &w), (_, a))| pad(c, w, *a)).collect();
            text += cells.join(GAP).trim_end();
            text.push('\n');
        }
        text
    }

    fn blocks(&self) -> String {
        let label = self.headings.iter().map(|(heading, _)| length(heading)).max().unwrap_or(0);
        let blocks: Vec<String> = self
            .rows
            .iter()
            .map(|row| {
                let line = |(cell, (heading, _)): (&String, &(String, Align))| {
                    format!("{}{GAP}{cell}\n", pad(heading, label, Align::Left))
                };
                row.iter().zip(&self.headings).map(line).collect()
            })
            .collect();
        blocks.join("\n")
    }
}

/// Width of the terminal in characters; `None` if standard output is a pipe or file.
pub(crate) fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(out).map(|(width, _)| width.0.into())
}

/// Formats a count with grouped thousands: `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with four significant digits and grouped thousands. Whole numbers have no decimals.
pub(crate) fn number(value: f64) -> String {
    let whole = value == libm::round(value);
    with_decimals(value, if whole { 0 } else { decimals(value, 4) })
}

/// Formats a mean and its confidence interval, such as `178.3 ± 1.2`, with the precision of the interval; `-` if the
/// estimate is missing.
pub(crate) fn estimate(of: Option<Estimate>) -> String {
    match of {
        None => "-".to_owned(),
        Some(Estimate { mean, half_interval: Some(half) }) if half > 0.0 => {
            let places = decimals(half, 2);
            format!("{} ± {}", with_decimals(mean, places), with_decimals(half, places))
        }
        Some(Estimate { mean, .. }) => number(mean),
    }
}

/// Formats an estimate like [`estimate`], with an explicit plus sign.
pub(crate) fn change(of: Option<Estimate>) -> String {
    let sign = if of.is_some_and(|of| of.mean > 0.0) { "+" } else { "" };
    format!("{sign}{}", estimate(of))
}

/// Returns a suitable unit for rates up to `most` bit/s: its name and its size in bit/s.
pub(crate) fn rate_unit(most: f64) -> (&'static str, f64) {
    match most {
        most if most >= 1e9 => ("Gbit/s", 1e9),
        most if most >= 1e7 => ("Mbit/s", 1e6),
        _ => ("kbit/s", 1e3),
    }
}

/// Number of decimals that show `digits` significant digits of `value`.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i32;
    // At most nine decimals are shown, because smaller digits are noise in every unit.
    (digits - 1 - magnitude).clamp(0, 9) as usize
}

fn with_decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

fn pad(cell: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width.saturating_sub(length(cell)));
    match align {
        Align::Left => format!("{cell}{space}"),
        Align::Right => format!("{space}{cell}"),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::default();
        table.column("sender", Align::Left);
        table.column("drops", Align::Right);
        table.row(vec!["reno".into(), "1,234".into()]);
        table.row(vec!["s\u{1b}k".into(), "7".into()]);
        table
    }

    #[test]
    fn names_stand_left_and_numbers_right() {
        assert_eq!(
            sample().render(None),
            "sender    drops\n--------  -----\nreno      1,234\ns\\u001bk      7\n"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_a_block_for_each_row() {
        assert_eq!(
            sample().render(Some(14)),
            "sender  reno\ndrops   1,234\n\nsender  s\\u001bk\ndrops   7\n"
        );
        assert_eq!(sample().render(Some(15)), sample().render(None));
    }

    #[test]
    fn numbers_have_four_digits_and_thousands_are_grouped() {
        let shown = [0.0, 0.012_341, 1.5, 178.349, 1999.6, 1_234_567.0, -12.0].map(number);
        assert_eq!(shown, ["0", "0.01234", "1.500", "178.3", "2,000", "1,234,567", "-12"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_mean_has_the_decimals_that_its_interval_knows() {
        let of = |mean, half_interval| estimate(Some(Estimate { mean, half_interval }));
        assert_eq!(of(178.349, Some(1.234)), "178.3 ± 1.2");
        assert_eq!(of(178.349, Some(25.6)), "178 ± 26");
        assert_eq!(of(178.349, Some(0.0)), "178.3");
        assert_eq!(of(178.349, None), "178.3");
        assert_eq!(estimate(None), "-");
    }
}
