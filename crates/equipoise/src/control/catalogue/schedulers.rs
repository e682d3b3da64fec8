//! The table of schedulers.

use alloc::boxed::Box;

use super::super::scheduler::{ApScheduler, ApSchedulerConfig, BoxedScheduler, Equal, MinDelay, PathId, Single};
use super::rates::{LEARN, RESPONSE};
use super::{Entry, Kind, Parameter};
use crate::units::Size;

/// A scheduler that can be built by name. Its context is the size of the session's IP packets.
pub type SchedulerEntry = Entry<BoxedScheduler, Size>;

const PROBE: Parameter = Parameter {
    name: "probe",
    kind: Kind::Rate,
    default: Some("64 kbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "rate on a path that the scheduler does not prefer, so that its delay stays known; with a lower rate, the delay is known less exactly",
    source: "Asvarujanon 2014, Sec. 4.4",
};
const LONGEST_STEP: Parameter = Parameter {
    name: "longest_step",
    kind: Kind::Number { unit: "" },
    default: Some("0.1"),
    range: Some(("0.001", "1")),
    meaning: "longest step of a path in a period, as a share of the total rate; less is steadier, and slower",
    source: "Asvarujanon 2014, Sec. 3",
};
const PATH: Parameter = Parameter {
    name: "path",
    kind: Kind::Number { unit: "counted from 0" },
    default: None,
    range: Some(("0", "65535")),
    meaning: "number of the path",
    source: "Asvarujanon 2014, Sec. 4.4",
};

pub(super) static ENTRIES: &[SchedulerEntry] = &[
    Entry {
        name: "ap",
        summary: "attractor perturbation: moves rate between the paths in the steps that most reduce the mean delay of all packets; the variance of each path's delay predicts the effect of a step",
        source: "Asvarujanon 2014, Eq. 2, Alg. 1",
        parameters: &[RESPONSE, LEARN, LONGEST_STEP, PROBE],
        make: |given, packet| {
            let (response, learning) = (given.number(&RESPONSE)?, given.learning()?);
            let (longest_step, probe) = (given.number(&LONGEST_STEP)?, given.rate(&PROBE)?);
            Ok(Box::new(ApScheduler::new(ApSchedulerConfig {
                response,
                learning,
                longest_step,
                probe,
                packet: *packet,
            })))
        },
    },
    Entry {
        name: "single",
        summary: "all packets on one path, whatever this path does",
        source: "Asvarujanon 2014, Sec. 4.4",
        parameters: &[PATH],
        // The range of `path` is already checked, so the conversion only rounds a fraction down.
        make: |given, _| Ok(Box::new(Single::new(PathId(given.number(&PATH)? as u16)))),
    },
    Entry {
        name: "equal",
        summary: "the same rate on every path",
        source: "Asvarujanon 2014, Sec. 4.4",
        parameters: &[],
        make: |_, _| Ok(Box::new(Equal)),
    },
    Entry {
        name: "min-delay",
        summary: "nearly all packets on the path whose mean delay was the lowest in the last period",
        source: "Asvarujanon 2014, Sec. 4.4",
        parameters: &[PROBE],
        make: |given, _| Ok(Box::new(MinDelay::new(given.rate(&PROBE)?))),
    },
];
