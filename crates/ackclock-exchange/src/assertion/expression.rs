//! Expressions of assertions and their evaluation.

use ackclock_tcp::TcpInfo;
use ackclock_tcp::info::CONSTANTS;

/// An expression over the sender's `TCP_INFO` fields. As in Python, 0 is false and any other number is true.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Expression {
    Number(f64),
    /// A field of `TCP_INFO`, by its index in [`TcpInfo::FIELDS`].
    Field(usize),
    Minus(Box<Self>),
    Not(Box<Self>),
    And(Box<(Self, Self)>),
    Or(Box<(Self, Self)>),
    Compare(Box<Self>, Vec<(Comparison, Self)>),
    Operation(Operation, Box<(Self, Self)>),
}

/// Comparison operator between two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Arithmetic or bit operator between two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    BitAnd,
    BitOr,
}

impl Expression {
    /// Returns the field, constant or truth value called `name`.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if let Some(field) = TcpInfo::FIELDS.iter().position(|(known, _)| *known == name) {
            return Ok(Self::Field(field));
        }
        let truths = [("True", 1), ("False", 0)];
        let constant = CONSTANTS.iter().chain(&truths).find(|(known, _)| *known == name);
        constant
            .map(|(_, value)| Self::Number(*value as f64))
            .ok_or_else(|| format!("unknown name `{name}`; `ackclock exchange --names` lists the known ones"))
    }

    /// Evaluates the expression with these field values.
    ///
    /// # Errors
    /// Returns an error if the value is undefined, as after a division by zero.
    pub(super) fn value(&self, fields: &[u64]) -> Result<f64, String> {
        Ok(match self {
            Self::Number(value) => *value,
            Self::Field(field) => fields.get(*field).map_or(0.0, |value| *value as f64),
            Self::Minus(inside) => -inside.value(fields)?,
            Self::Not(inside) => truth(inside.value(fields)? == 0.0),
            Self::And(sides) => match sides.0.value(fields)? {
                0.0 => 0.0,
                _ => sides.1.value(fields)?,
            },
            Self::Or(sides) => match sides.0.value(fields)? {
                0.0 => sides.1.value(fields)?,
                value => value,
            },
            Self::Compare(first, others) => {
                let mut left = first.value(fields)?;
                for (comparison, right) in others {
                    let right = right.value(fields)?;
                    if !comparison.holds(left, right) {
                        return Ok(0.0);
                    }
                    left = right;
                }
                1.0
            }
            Self::Operation(operation, sides) => {
                operation.apply(sides.0.value(fields)?, sides.1.value(fields)?)?
            }
        })
    }

    /// Adds the fields that the expression uses to `found`.
    pub(super) fn fields(&self, found: &mut Vec<usize>) {
        match self {
            Self::Number(_) => {}
            Self::Field(field) => found.push(*field),
            Self::Minus(inside) | Self::Not(inside) => inside.fields(found),
            Self::And(sides) | Self::Or(sides) | Self::Operation(_, sides) => {
                sides.0.fields(found);
                sides.1.fields(found);
            }
            Self::Compare(first, others) => {
                first.fields(found);
                others.iter().for_each(|(_, other)| other.fields(found));
            }
        }
    }

    /// Whether the expression is a single field.
    pub(super) fn is_field(&self) -> bool {
        matches!(self, Self::Field(_))
    }
}

impl Comparison {
    /// Returns the comparison that the operator `sign` stands for.
    pub(super) fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "==" => Self::Equal,
            "!=" => Self::Unequal,
            "<" => Self::Less,
            "<=" => Self::AtMost,
            ">" => Self::Greater,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

impl Operation {
    fn apply(self, left: f64, right: f64) -> Result<f64, String> {
        if right == 0.0 && matches!(self, Self::Divide | Self::FloorDivide | Self::Remainder) {
            return Err("division by zero".to_owned());
        }
        Ok(match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::FloorDivide => (left / right).floor(),
            Self::Remainder => left - right * (left / right).floor(),
            Self::BitAnd => (whole(left, "&")? & whole(right, "&")?) as f64,
            Self::BitOr => (whole(left, "|")? | whole(right, "|")?) as f64,
        })
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Converts an operand of a bit operation to an integer; returns an error if the operand is not a whole number.
fn whole(value: f64, sign: &str) -> Result<u64, String> {
    if value.fract() == 0.0 && (0.0..9e15).contains(&value) {
        return Ok(value as u64);
    }
    Err(format!("{value} is not a whole number for `{sign}`"))
}

/// Formats a field and its value, followed by the symbolic name of the value if there is one.
pub(super) fn shown(field: usize, values: &[u64]) -> String {
    let (Some((name, _)), Some(value)) = (TcpInfo::FIELDS.get(field), values.get(field)) else {
        return String::new();
    };
    let states = match *name {
        "tcpi_ca_state" => "TCP_CA_",
        "tcpi_state" => "TCP_",
        _ => return format!("{name} = {value}"),
    };
    let called = CONSTANTS.iter().find(|(called, number)| called.starts_with(states) && number == value);
    called.map_or_else(|| format!("{name} = {value}"), |(called, _)| format!("{name} = {value} ({called})"))
}
