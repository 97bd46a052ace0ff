//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far additive increase and multiplicative decrease (RFC 5681 section 3.1).
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.
