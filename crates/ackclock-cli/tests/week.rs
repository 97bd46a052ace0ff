//! `ackclock trace week`: a log of cake-autorate over two days.

use serde_json::Value;

use crate::common::Folder;

/// A log from Monday 2024-01-01 00:00 UTC on a router one hour ahead, two days long: every evening from 20:00 to 21:00 the rate
/// halves and the delay is 300 ms instead of 30 ms.
fn log() -> String {
    let mut text = "DATA_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; DL_OWD_BASELINE; DL_OWD_US; UL_OWD_BASELINE; UL_OWD_US; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS\n".to_owned();
    for second in (0..2 * 86_400).step_by(10) {
        let local = second + 3600;
        let (day, hour) = (1 + local / 86_400, local / 3600 % 24);
        let (rate, delay) = if hour == 20 { (10_000, 300_000) } else { (20_000, 30_000) };
        text += &format!(
            "DATA; 2024-01-{day:02}-{hour:02}:{:02}:{:02}; {}.0; 1; {rate}; 900; 20000; {delay}; 20000; 21000; 30000; 2000\n",
            local / 60 % 60,
            local % 60,
            1_704_067_200 + second
        );
    }
    text
}

#[test]
fn the_worst_hours_of_a_line_are_found_and_advised_on() {
    let folder = Folder::new();
    folder.write("line.log", log());
    let printed = |arguments: &[&str]| {
        let ended = folder.run(arguments);
        assert_eq!(ended.status, 0, "{}", ended.err);
        ended.out
    };
    let shown = printed(&["trace", "week", "line.log", "--worst", "worst.csv", "--json"]);
    let week: Value = serde_json::from_str(&shown).unwrap();
    let hours = week["hours"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    assert_eq!((&hours[20]["mean_bps"], &hours[20]["delay_ms"]["p95"]), (&1e7.into(), &300.0.into()));
    assert_eq!((&hours[19]["mean_bps"], &hours[19]["delay_ms"]["p95"]), (&2e7.into(), &30.0.into()));
    let days: Vec<&str> =
        week["weekdays"].as_array().unwrap().iter().map(|day| day["weekday"].as_str().unwrap()).collect();
    assert_eq!(days, ["Mon", "Tue", "Wed"]);
    let worst: Vec<&str> =
        week["worst"].as_array().unwrap()[..2].iter().map(|hour| hour["begins"].as_str().unwrap()).collect();
    assert_eq!(worst, ["2024-01-01 20:00", "2024-01-02 20:00"]);
    // The recording of the worst hour has the delay of the empty line, for the queue is what is simulated.
    let csv = std::fs::read_to_string(folder.path("worst.csv")).unwrap();
    assert!(csv.contains("\n0,10000,20,0\n") && csv.lines().count() > 360, "{}", &csv[..200]);
    assert!(printed(&["trace", "info", "worst.csv"]).contains("application"));
    let table = printed(&["trace", "week", "line.log", "--direction", "up"]);
    assert!(table.contains("20:00") && table.contains("kbit/s") && table.contains("Tue"), "{table}");
}

#[test]
fn a_recording_without_hours_is_refused() {
    let folder = Folder::new();
    folder.write("a.down", "1\n5\n9\n");
    let told = folder.complains(2, &["trace", "week", "a.down"]);
    assert!(told.contains("its times do not say the hour of the day"), "{told}");
}
