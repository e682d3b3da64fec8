//! Tests of `equipoise sweep`: the output has the same bytes, however the sweep is divided, and even if the sweep was
//! killed and continued.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, equipoise, eventually, run, said, scenario};

/// Returns the arguments of a sweep of the short demo: three link rates, three random values of `b`, and `runs` runs
/// for each combination.
fn arguments<'a>(demo: &'a str, out: &'a str, runs: &'a str) -> Vec<&'a str> {
    let mut all = vec!["sweep", demo, "--set", "duration=6s", "--set", "warm_up=1s", "--out", out, "--runs", runs];
    all.extend(["--vary", "link.bottleneck.rate=12M,15M,20M", "--points", "3"]);
    all.extend(["--draw", "flow.media.controller.b=loguniform(50, 500)"]);
    all
}

#[track_caller]
fn done(arguments: &[&str]) -> String {
    let done = run(arguments);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    said(&done)
}

/// Returns the number of parts of the sweep that are complete.
fn parts(out: &str) -> usize {
    let entries = fs::read_dir(Path::new(out).join("parts")).map(|entries| entries.filter_map(Result::ok));
    let names = entries.map(|entries| entries.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.map_or(0, |names| names.filter(|name| name.ends_with(".parquet")).count())
}

#[test]
fn threads_and_shares_give_the_same_bytes_of_each_point_its_runs() {
    let folder = Folder::new();
    let demo = scenario("demo-short");
    let merged = |out: &str| {
        let (parquet, csv) = (folder.file(&format!("{out}.parquet")), folder.file(&format!("{out}.csv")));
        done(&["sweep", "--out", &folder.file(out), "--merge", &parquet, "--csv", &csv]);
        (fs::read(parquet).expect("written"), fs::read_to_string(csv).expect("written"))
    };
    let said = done(&[&arguments(&demo, &folder.file("one"), "2")[..], &["--threads", "1"]].concat());
    assert!(said.contains("9 points, 18 runs, of which 18 were run now"), "{said}");
    done(&[&arguments(&demo, &folder.file("two"), "2")[..], &["--threads", "2", "--quiet"]].concat());
    // The second command needs only the folder, in which the first command has stored the sweep.
    done(&[&arguments(&demo, &folder.file("shares"), "2")[..], &["--shard", "2/2"]].concat());
    done(&["sweep", "--out", &folder.file("shares"), "--shard", "1/2"]);
    let one = merged("one");
    assert!(one == merged("two") && one == merged("shares"));
    let mut lines = one.1.lines();
    let head = lines.next().expect("a head");
    assert!(head.starts_with("run,point,seed,scenario,flow,kind,controller,link.bottleneck.rate_bps,"), "{head}");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 18);
    for (number, row) in rows.iter().enumerate() {
        let [point, seed] = [number / 2, 1 + number % 2].map(|number| number.to_string());
        assert_eq!((row[0], row[1], row[2]), (number.to_string().as_str(), point.as_str(), seed.as_str()));
        assert_eq!((row[4], row[5], row[6]), ("media", "media", "ap"));
        assert_eq!(row[7], ["12000000", "15000000", "20000000"][number / 6]);
    }
}

/// If this test fails, a sweep that was killed and continued has a different result from an uninterrupted sweep. Parts
/// that were complete before the kill are kept, and the other parts are run again.
#[test]
fn a_killed_sweep_goes_on_without_a_lost_or_doubled_row() {
    let folder = Folder::new();
    let (demo, out, calm) = (scenario("demo-short"), folder.file("killed"), folder.file("calm"));
    for at_least in [3, 20] {
        let mut child = equipoise()
            .args(arguments(&demo, &out, "20"))
            .args(["--threads", "2", "--quiet"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the command starts");
        eventually("some parts are there", || (parts(&out) >= at_least).then_some(()));
        // This sends SIGKILL, which a process cannot handle.
        child.kill().expect("it was running");
        child.wait().expect("it ended");
    }
    let found = parts(&out);
    assert!((20..180).contains(&found), "{found} parts are there, and the sweep was to be killed half-way");
    let incomplete = run(&["sweep", "--out", &out, "--csv", "-"]);
    assert_eq!(incomplete.status.code(), Some(1));
    assert!(said(&incomplete).contains("of 180 parts are missing"), "{}", said(&incomplete));
    let goes_on = done(&["sweep", "--out", &out]);
    assert!(goes_on.contains(&format!("180 runs, of which {} were run now", 180 - found)), "{goes_on}");
    done(&[&arguments(&demo, &calm, "20")[..], &["--quiet"]].concat());
    let merged = |out: &str| {
        let file = folder.file("merged.parquet");
        done(&["sweep", "--out", out, "--merge", &file]);
        fs::read(file).expect("written")
    };
    assert!(merged(&out) == merged(&calm), "a killed sweep differs from a calm one");
    let csv = run(&["sweep", "--out", &out, "--csv", "-"]);
    let runs: Vec<_> = String::from_utf8_lossy(&csv.stdout).lines().skip(1).map(first_number).collect();
    assert_eq!(runs, (0..180).collect::<Vec<_>>());
}

fn first_number(line: &str) -> u64 {
    line.split(',').next().and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn what_cannot_be_swept_is_refused_by_name_with_what_would_be_right() {
    let folder = Folder::new();
    let (demo, out) = (scenario("demo-short"), folder.file("out"));
    let wrong = folder.file("wrong.toml");
    fs::write(&wrong, "name = \"wrong\"").expect("writable");
    let cases: [(&[&str], i32, &str); 11] = [
        (&[&demo, "--vary", "link.bottleneck.rat=1M,2M"], 3, "a similar one exists: `rate`"),
        (&[&demo, "--vary", "link.bottleneck.rate=1M,2"], 3, "with link.bottleneck.rate=2"),
        (&[&demo, "--vary", "duration"], 2, "KEY=VALUE"),
        (&[&demo, "--set", "=2"], 2, "chain of keys"),
        (&[&demo, "--points", "3", "--draw", "duration=evenly(1s, 2s)"], 2, "there is no distribution `evenly`"),
        (&[&demo, "--draw", "duration=uniform(1s, 2s)"], 2, "--points"),
        (&[&demo, "--points", "3"], 2, "--draw"),
        (&[&demo, "--shard", "5/4"], 2, "counted from 1"),
        (&["--vary", "duration=1s,2s"], 2, "FILE"),
        (&[&wrong], 3, "missing field"),
        (&[], 2, "has no sweep"),
    ];
    for (arguments, code, words) in cases {
        let refused = run(&[&["sweep", "--out", &out][..], arguments].concat());
        let message = said(&refused);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?} is refused with `{message}`, without `{words}`");
        assert!(!Path::new(&out).exists(), "{arguments:?} left something behind");
    }
    done(&["sweep", &demo, "--set", "duration=6s", "--set", "warm_up=1s", "--out", &out]);
    let other = run(&["sweep", &demo, "--set", "duration=7s", "--set", "warm_up=1s", "--out", &out]);
    assert_eq!(other.status.code(), Some(2));
    assert!(said(&other).contains("has another sweep") && said(&other).contains("hint:"), "{}", said(&other));
}

/// If this test fails, the book does not describe every column of the sweep's table.
#[test]
fn the_book_has_every_column() {
    let book =
        fs::read_to_string(format!("{}/../../docs/src/sweep.md", env!("CARGO_MANIFEST_DIR"))).expect("a chapter");
    let folder = Folder::new();
    let (demo, out) = (scenario("demo-short"), folder.file("out"));
    done(&["sweep", &demo, "--set", "duration=6s", "--set", "warm_up=1s", "--out", &out]);
    let csv = run(&["sweep", "--out", &out, "--csv", "-"]);
    let text = String::from_utf8_lossy(&csv.stdout).into_owned();
    let missing: Vec<_> =
        text.lines().next().expect("a head").split(',').filter(|name| !book.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/src/sweep.md lacks {missing:?}");
}

#[test]
fn a_seed_that_is_set_is_the_first_seed() {
    let folder = Folder::new();
    let (demo, out, csv) = (scenario("demo-short"), folder.file("out"), folder.file("out.csv"));
    let set = ["sweep", &demo, "--set", "duration=6s", "--set", "warm_up=1s", "--set", "seed=7"];
    done(&[&set[..], &["--vary", "link.bottleneck.rate=15M", "--out", &out, "--csv", &csv]].concat());
    let table = fs::read_to_string(csv).expect("written");
    assert!(table.lines().nth(1).expect("a row").starts_with("0,0,7,"), "{table}");
}
