//! # ackclock-tcp
