//! # ackclock-edge
