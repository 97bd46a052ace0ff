//! Parses tokens into expressions, with the operator precedence of Python.

use super::expression::{Comparison, Expression, Operation};
use super::lexer::{Kind, Token};
use crate::refusal::Refusal;

/// Parser of one assertion.
pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    next: usize,
    depth: u32,
}

/// Maximum nesting depth of an expression, which also bounds its length.
const DEEPEST: u32 = 50;
const LONGEST: usize = 500;

/// Binary operators by precedence, lowest first.
const LEVELS: [&[(&str, Operation)]; 4] = [
    &[("|", Operation::BitOr)],
    &[("&", Operation::BitAnd)],
    &[("+", Operation::Add), ("-", Operation::Subtract)],
    &[
        ("*", Operation::Multiply),
        ("/", Operation::Divide),
        ("//", Operation::FloorDivide),
        ("%", Operation::Remainder),
    ],
];

impl<'a> Parser<'a> {
    /// # Errors
    /// Returns an error if the statement is too long.
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Result<Self, Refusal> {
        if tokens.len() > LONGEST {
            return Err(Refusal::new(
                tokens[0].line,
                format!("an assertion of more than {LONGEST} words is too long"),
            ));
        }
        Ok(Self { tokens, next: 0, depth: 0 })
    }

    /// Parses an expression. `or` has the lowest precedence.
    pub(super) fn expression(&mut self) -> Result<Expression, Refusal> {
        let mut left = self.conjunction()?;
        while self.take_word("or") {
            left = Expression::Or(Box::new((left, self.conjunction()?)));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expression, Refusal> {
        let mut left = self.negation()?;
        while self.take_word("and") {
            left = Expression::And(Box::new((left, self.negation()?)));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Expression, Refusal> {
        if self.take_word("not") {
            return self.deeper(|parser| Ok(Expression::Not(Box::new(parser.negation()?))));
        }
        self.comparison()
    }

    /// Parses comparisons. `a < b <= c` means `a < b and b <= c`.
    fn comparison(&mut self) -> Result<Expression, Refusal> {
        let first = self.operation(0)?;
        let mut others = Vec::new();
        while let Some(comparison) = self.peek().and_then(Comparison::of) {
            self.next += 1;
            others.push((comparison, self.operation(0)?));
        }
        Ok(if others.is_empty() { first } else { Expression::Compare(Box::new(first), others) })
    }

    fn operation(&mut self, level: usize) -> Result<Expression, Refusal> {
        let Some(operations) = LEVELS.get(level) else { return self.signed() };
        let mut left = self.operation(level + 1)?;
        while let Some((_, operation)) = operations.iter().find(|(sign, _)| self.peek() == Some(*sign)) {
            self.next += 1;
            left = Expression::Operation(*operation, Box::new((left, self.operation(level + 1)?)));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expression, Refusal> {
        if self.take("-") {
            return self.deeper(|parser| Ok(Expression::Minus(Box::new(parser.signed()?))));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression, Refusal> {
        let Some(&token) = self.tokens.get(self.next) else {
            return Err(self.refuse("an expression ends too early"));
        };
        self.next += 1;
        match token.kind {
            Kind::Number(value) => Ok(Expression::Number(value)),
            Kind::Word => Expression::named(token.text).map_err(|why| Refusal::new(token.line, why)),
            Kind::Operator if token.text == "(" => {
                let inside = self.deeper(Self::expression)?;
                if self.take(")") { Ok(inside) } else { Err(self.refuse("`)` is missing")) }
            }
            _ => Err(Refusal::new(
                token.line,
                format!("`{}` stands where a number or a name should", token.text),
            )),
        }
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.depth == DEEPEST {
            return Err(self.refuse("an expression nests too deep"));
        }
        self.depth += 1;
        let outcome = inside(self);
        self.depth -= 1;
        outcome
    }

    /// Consumes `operator` if it is the next token; returns whether the operator was consumed.
    pub(super) fn take(&mut self, operator: &str) -> bool {
        let is_next = self.peek() == Some(operator);
        self.next += usize::from(is_next);
        is_next
    }

    /// Consumes a quoted text if it is the next token, and returns the text without quotation marks.
    pub(super) fn take_text(&mut self) -> Option<&'a str> {
        let token = self.tokens.get(self.next).filter(|token| token.kind == Kind::Text)?;
        self.next += 1;
        Some(&token.text[1..token.text.len() - 1])
    }

    /// Consumes `word`; returns an error if the next token is a different word.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.take_word(word) {
            return Ok(());
        }
        let found = self.tokens.get(self.next).map_or("", |token| token.text);
        Err(self
            .refuse(&format!("`{found}`: a block holds lines `assert CONDITION, MESSAGE` and nothing else")))
    }

    /// Returns an error if tokens follow the end of the assertion.
    pub(super) fn expect_end(&self) -> Result<(), Refusal> {
        match self.tokens.get(self.next) {
            None => Ok(()),
            Some(token) => Err(Refusal::new(
                token.line,
                format!("`{}` stands behind the end of an assertion", token.text),
            )),
        }
    }

    /// Byte offset of the next token in the block.
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or_else(|| self.passed(), |token| token.at)
    }

    /// Byte offset, in the block, of the end of the last consumed token.
    pub(super) fn passed(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(0, |token| token.at + token.text.len())
    }

    fn take_word(&mut self, word: &str) -> bool {
        let next = self.tokens.get(self.next);
        let is_next = next.is_some_and(|token| token.kind == Kind::Word && token.text == word);
        self.next += usize::from(is_next);
        is_next
    }

    /// Returns the next token if it is an operator.
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).filter(|token| token.kind == Kind::Operator).map(|token| token.text)
    }

    fn refuse(&self, why: &str) -> Refusal {
        let last = self.tokens.get(self.next).or(self.tokens.last());
        Refusal::new(last.map_or(1, |token| token.line), why)
    }
}
