//! How sure it is that a recording shows the capacity of a link and not the rate of a sender.

use serde::Serialize;

/// What the rates of a recording are to the capacity of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The link was kept busy: what it delivered is what it could.
    Capacity,
    /// A bulk transfer: the link could deliver at least this.
    LowerBound,
    /// The sender did not use all of the link.
    SenderLimited,
    /// The traffic of applications, which use a link as they need it.
    Application,
}

impl Grade {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Capacity, "capacity"),
        (Self::LowerBound, "lower-bound"),
        (Self::SenderLimited, "sender-limited"),
        (Self::Application, "application"),
    ];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find_map(|(grade, name)| (grade == self).then_some(name)).unwrap_or_default()
    }
}

/// A grade and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certainty {
    /// The grade.
    pub grade: Grade,
    /// Why it is this one.
    pub why: String,
}

/// How the comment of a CSV begins that states the grade.
const COMMENT: &str = "# certainty: ";

impl Certainty {
    pub(crate) fn new(grade: Grade, why: impl Into<String>) -> Self {
        Self { grade, why: why.into() }
    }

    /// The comment that states it in a CSV, with its end of line.
    pub fn comment(&self) -> String {
        format!("{COMMENT}{self}\n")
    }

    /// The grade that a comment at the beginning of a CSV states.
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
