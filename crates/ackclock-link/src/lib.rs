//! # ackclock-link
