//! Keys of a table that have no effect because of its other keys.

/// A key that has a value and no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Dotted path of the key.
    pub key: String,
    /// Dotted paths of the keys on which its effect depends.
    pub needs: Vec<String>,
    /// Why the key has no effect, and with which values it has one.
    pub reason: String,
}

impl Unused {
    /// Creates the key `key` of a table, whose effect depends on the keys `needs` of the same table.
    pub fn new(key: &str, needs: &[&str], reason: impl Into<String>) -> Self {
        let needs = needs.iter().map(|&key| key.to_owned()).collect();
        Self { key: key.to_owned(), needs, reason: reason.into() }
    }

    /// The same key with paths that begin at the table that contains its table as `table`.
    #[must_use]
    pub fn under(self, table: &str) -> Self {
        let under = |key: String| format!("{table}.{key}");
        Self { key: under(self.key), needs: self.needs.into_iter().map(under).collect(), ..self }
    }
}
