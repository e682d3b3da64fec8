//! Formats durations for the user.

/// Returns a duration, given in seconds, as rounded text: "45 s", "7 min", "2 h 5 min".
pub(crate) fn in_words(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        _ if seconds < 119.5 => format!("{seconds:.0} s"),
        0..120 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_wait_is_said_in_the_unit_that_fits() {
        let said = [0.0, 45.3, 119.4, 119.6, 412.0, 7_100.0, 7_199.0, 7_500.0].map(in_words);
        assert_eq!(said, ["0 s", "45 s", "119 s", "2 min", "7 min", "118 min", "2 h 0 min", "2 h 5 min"]);
    }
}
