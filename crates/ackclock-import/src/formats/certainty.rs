//! Certainty that a recording shows the capacity of a link and not the rate of a sender.

use serde::Serialize;

/// Relation between the rates of a recording and the capacity of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The link was kept busy, so the recorded rate is its capacity.
    Capacity,
    /// The link was kept busy for a part of the time: some of the recorded rates are its capacity, all are lower bounds.
    Mixed,
    /// A bulk transfer was recorded: the capacity of the link is at least the recorded rate.
    LowerBound,
    /// The sender did not use the full capacity of the link.
    SenderLimited,
    /// Application traffic was recorded, which uses only the capacity that it needs.
    Application,
}

impl Grade {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Capacity, "capacity"),
        (Self::Mixed, "mixed"),
        (Self::LowerBound, "lower-bound"),
        (Self::SenderLimited, "sender-limited"),
        (Self::Application, "application"),
    ];

    /// Name of the grade in files and tables.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find_map(|(grade, name)| (grade == self).then_some(name)).unwrap_or_default()
    }
}

/// Grade of a recording's certainty, with the reason for the grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certainty {
    /// Grade of certainty of the recording's rates.
    pub grade: Grade,
    /// Reason for the grade of certainty.
    pub why: String,
}

/// Start of the comment line in a CSV file that states how certain its rates are.
const COMMENT: &str = "# certainty: ";

impl Certainty {
    pub(crate) fn new(grade: Grade, why: impl Into<String>) -> Self {
        Self { grade, why: why.into() }
    }

    /// CSV comment line that states grade and reason, including its line end.
    pub fn comment(&self) -> String {
        format!("{COMMENT}{self}\n")
    }

    /// Grade stated by a comment at the start of a CSV file.
    pub(super) fn of_comments(bytes: &[u8]) -> Option<Self> {
        let lines = super::super::lines(bytes).map_while(|(_, line)| line.ok());
        let mut comments = lines.take_while(|line| line.is_empty() || line.starts_with('#'));
        let (name, why) = comments.find_map(|line| line.strip_prefix(COMMENT)?.split_once(": "))?;
        let (grade, _) = Grade::ALL.into_iter().find(|(_, known)| *known == name)?;
        Some(Self::new(grade, why))
    }
}

impl std::fmt::Display for Certainty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.grade.name(), self.why)
    }
}
