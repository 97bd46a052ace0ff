//! Reader of saturatr logs: each packet that arrived shows one transmission opportunity of the link.

use std::collections::BTreeMap;

use super::super::{Opportunities, Recording, TraceError, lines};
use super::{Certainty, Form, Grade, Imported};

pub(super) fn read(bytes: &[u8]) -> Result<Imported, TraceError> {
    let (mut arrivals, mut seqs) = (Vec::new(), BTreeMap::<u64, (u64, u64, u64)>::new());
    for (index, line) in lines(bytes) {
        let Some(fields) = line?.strip_prefix("DATA RECEIVED") else { continue };
        let (Some(sender), Some(seq), Some(at)) =
            (field(fields, "senderid"), field(fields, "seq"), field(fields, "recv_time"))
        else {
            return Err(TraceError::at(index, "no senderid, seq and recv_time"));
        };
        let (first, last, count) = seqs.entry(sender).or_insert((seq, seq, 0));
        (*first, *last, *count) = (seq.min(*first), seq.max(*last), *count + 1);
        if arrivals.last().is_some_and(|&before| at < before) {
            return Err(TraceError::at(index, format!("recv_time {at} is before that of the line above")));
        }
        arrivals.push(at);
    }
    let first = *arrivals.first().ok_or_else(|| TraceError::whole("there is no line `DATA RECEIVED`"))?;
    let millis: Result<Vec<u32>, _> =
        arrivals.iter().map(|at| u32::try_from((at - first) / 1_000_000)).collect();
    let opportunities = millis
        .map_err(|_| TraceError::whole("it lasts for longer than 2^32 ms"))
        .and_then(Opportunities::new)?;
    let missing =
        |(first, last, count): &(u64, u64, u64)| (last - first).saturating_add(1).saturating_sub(*count);
    let lost: u64 = seqs.values().map(missing).sum();
    let mut notes = vec!["a packet of 1400 bytes counts as a chance to send 1500".to_owned()];
    if lost > 0 {
        notes.push(format!("{lost} packets were lost: mahimahi files hold no loss"));
    }
    Ok(Imported {
        form: Form::Saturatr,
        recording: Recording::Opportunities(opportunities),
        certainty: Some(Certainty::new(Grade::Capacity, "saturatr keeps the link busy")),
        missing: 0,
        even: false,
        begins: None,
        capacity: Vec::new(),
        notes,
    })
}

/// Number in the field `name=` of a log line.
fn field(fields: &str, name: &str) -> Option<u64> {
    let (_, rest) = fields.split_once(&format!("{name}="))?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{Options, read};
    use super::*;

    #[test]
    fn each_arrival_is_an_opportunity_and_a_gap_a_loss() {
        let line = |seq: u64, ms: u64| {
            format!(
                "DATA RECEIVED senderid=7, seq={seq}, send_time=1, recv_time={}\nACK SENT senderid=7, seq={seq}, send_time=1, recv_time=2\n",
                1_000_000_000 + ms * 1_000_000
            )
        };
        let text = [line(1, 0), line(2, 5), line(4, 5), line(5, 20)].concat();
        let imported = read(text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(imported.recording.to_mahimahi().unwrap(), "0\n5\n5\n20\n");
        assert_eq!(imported.certainty.unwrap().grade, Grade::Capacity);
        assert!(imported.notes[1].starts_with("1 packets were lost"), "{:?}", imported.notes);
    }

    #[test]
    fn a_log_out_of_order_is_refused() {
        let text = "DATA RECEIVED senderid=7, seq=1, send_time=1, recv_time=9\nDATA RECEIVED senderid=7, seq=2, send_time=1, recv_time=8\n";
        let error = read(text.as_bytes(), &Options::default()).unwrap_err().to_string();
        assert_eq!(error, "line 2: recv_time 8 is before that of the line above");
    }
}
