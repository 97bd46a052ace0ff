//! Marks for scalable and classic senders that share a queue, with coupled probabilities (RFC 9332 section 2.1).

/// Coupling factor between scalable and classic signals (RFC 9332 section 2.5.1).
const COUPLING: f64 = 2.0;

/// Selects the packets that carry a signal, at equal distances.
#[derive(Debug, Default)]
pub(crate) struct CoupledMarks {
    /// Sum of the probabilities that have not become signals of scalable senders.
    scalable: f64,
    /// Sum of the probabilities that have not become signals of classic senders.
    classic: f64,
}

impl CoupledMarks {
    /// Returns whether a packet with ECT(1) is selected.
    pub(crate) fn scalable(&mut self, probability: f64) -> bool {
        selects(&mut self.scalable, probability)
    }

    /// Returns whether a packet of a classic sender is selected, if scalable senders have this `probability`.
    pub(crate) fn classic(&mut self, probability: f64) -> bool {
        selects(&mut self.classic, (probability / COUPLING) * (probability / COUPLING))
    }
}

fn selects(sum: &mut f64, probability: f64) -> bool {
    *sum += probability;
    let selects = *sum > 1.0;
    if selects {
        *sum -= 1.0;
    }
    selects
}
