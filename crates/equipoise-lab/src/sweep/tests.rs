use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::{DEMO, DEMO_SHORT};

/// Returns a design of 3 × 2 points with 4 short runs each. Its sweep has several parts.
fn design() -> Design {
    Design {
        scenarios: vec![NamedText { file: "short.toml".to_owned(), text: DEMO_SHORT.to_owned() }],
        set: vec!["duration=6 s".to_owned(), "warm_up=1 s".to_owned()],
        vary: vec!["link.bottleneck.rate=12 Mbit/s,15M,20 Mbit/s".to_owned()],
        draw: vec!["flow.media.controller.b=loguniform(50, 500)".to_owned()],
        random_points: 2,
        seed: 5,
        runs: 4,
    }
}

fn plan() -> Plan {
    Plan::new(design()).expect("a right design")
}

fn refused(change: impl FnOnce(&mut Design)) -> String {
    let mut design = design();
    change(&mut design);
    let mut text = String::new();
    let error = Plan::new(design).expect_err("wrong on purpose");
    let mut source: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = source {
        text.push_str(&format!("{error}\n"));
        source = error.source();
    }
    text
}

#[test]
fn the_number_of_a_run_says_its_point_and_its_seed() {
    let plan = plan();
    assert_eq!((plan.runs(), plan.points()), (24, 6));
    let all: Vec<_> = (0..24).filter_map(|run| plan.run(run)).collect();
    assert_eq!(plan.run(24), None);
    for (place, run) in (0..).zip(&all) {
        assert_eq!((run.run, run.point, run.seed), (place, place / 4, 5 + place % 4));
    }
    let rates: Vec<_> = all.iter().step_by(8).map(|run| run.changes[0].to_string()).collect();
    let expected = ["12 Mbit/s", "15M", "20 Mbit/s"].map(|rate| format!("link.bottleneck.rate={rate}"));
    assert_eq!(rates, expected);
    // Every rate is combined with the same two random values.
    assert_eq!(all[0].changes[1], all[8].changes[1]);
    assert_ne!(all[0].changes[1], all[4].changes[1]);
}

/// If this test fails, the rows of a sweep differ from the results of single runs with the same scenario and seed, or
/// the rows depend on the number of threads.
#[test]
fn rows_are_those_of_single_runs() {
    let plan = plan();
    let table = plan.simulate(0..24, Some(2), &|_| {}).expect("it runs");
    assert!(table == plan.simulate(0..24, Some(1), &|_| {}).expect("it runs"));
    assert_eq!(table.rows(), 24, "background traffic has no rows");
    let numbers = |name: &str| table.numbers(name).unwrap_or_else(|| panic!("no column {name}"));
    assert_eq!(numbers("link.bottleneck.rate_bps")[9], Some(15e6));
    assert_eq!(table.texts("scenario").expect("there")[0], Some("demo-short"));
    for number in [0, 10, 23] {
        let run = plan.run(number).expect("planned");
        let alone = crate::sim::simulate(&plan.scenario(&run).expect("right"), run.seed, &mut |_| {}).expect("it runs");
        let (place, flow) = (usize::try_from(number).expect("small"), &alone.flows[0]);
        assert_eq!(numbers("seed")[place], Some(run.seed as f64));
        assert_eq!(numbers("delay_mean_s")[place], flow.delay.mean_s);
        assert_eq!(numbers("delivered_rate_bps")[place], flow.delivered_rate_bps);
        assert_eq!(numbers("packets_sent")[place], Some(flow.packets_sent as f64));
        assert_eq!(numbers("goodput_bps")[place], None, "no connection of TCP");
        assert_eq!(numbers("media_utilisation")[place], alone.media.as_ref().and_then(|media| media.utilisation));
    }
}

/// Returns the contents of all part files of a sweep, by file name.
fn files(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.join("parts")).expect("readable").map(|entry| entry.expect("readable"));
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| (name(&entry), fs::read(entry.path()).expect("readable"))).collect()
}

fn merged(folder: &Folder) -> (Vec<u8>, Vec<u8>) {
    let (mut parquet, mut csv) = (Vec::new(), Vec::new());
    folder.merge(Some(Box::new(&mut parquet)), Some(Box::new(&mut csv))).expect("it is complete");
    (parquet, csv)
}

#[test]
fn threads_shares_and_interruptions_do_not_change_a_byte() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| Folder::create(&scratch.path().join(name), &plan()).expect("a folder");
    let whole = folder("whole");
    whole.run(Shard::ALL, Some(1), &|_| {}).expect("it runs");
    let expected = (files(&scratch.path().join("whole")), merged(&whole));
    assert_eq!(expected.0.len(), 24);

    let threads = folder("threads");
    threads.run(Shard::ALL, Some(3), &|_| {}).expect("it runs");
    assert!(expected == (files(&scratch.path().join("threads")), merged(&threads)));

    let shares = folder("shares");
    for share in ["2/3", "1/3", "3/3"] {
        assert!(matches!(shares.merge(None, None), Err(SweepError::Incomplete { parts: 24, .. })), "{share}");
        shares.run(share.parse().expect("a share"), Some(2), &|_| {}).expect("it runs");
    }
    assert!(expected == (files(&scratch.path().join("shares")), merged(&shares)));

    // A killed process or a power failure can leave a missing part, a truncated part, or a part that was never renamed.
    let broken = folder("broken");
    broken.run(Shard::ALL, Some(2), &|_| {}).expect("it runs");
    let parts = scratch.path().join("broken/parts");
    fs::remove_file(parts.join("runs-000000000003.parquet")).expect("there");
    let cut = parts.join("runs-000000000007.parquet");
    fs::write(&cut, &fs::read(&cut).expect("readable")[..900]).expect("writable");
    assert!(matches!(broken.merge(None, None), Err(SweepError::Incomplete { missing: 2, first: 3, .. })));
    let again = std::sync::Mutex::new(Progress { done: 0, planned: 0 });
    let note = |progress| *again.lock().expect("no panic") = progress;
    Folder::open(&scratch.path().join("broken")).expect("there").run(Shard::ALL, Some(1), &note).expect("it runs");
    assert_eq!(again.into_inner().expect("no panic"), Progress { done: 2, planned: 2 });
    assert!(expected == (files(&scratch.path().join("broken")), merged(&broken)));
}

/// If this test fails, the merged Parquet file or the merged CSV differs from the table of the same runs.
#[test]
fn the_merged_file_holds_the_table() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = Folder::create(scratch.path(), &plan()).expect("a folder");
    folder.run(Shard::ALL, None, &|_| {}).expect("it runs");
    let (parquet, csv) = merged(&folder);
    let table = folder.plan().simulate(0..24, None, &|_| {}).expect("it runs");
    let path = scratch.path().join("all.parquet");
    fs::write(&path, &parquet).expect("writable");
    let reader = part::Reader::new(fs::File::open(&path).expect("readable")).expect("a file of Parquet");
    assert!(reader.read(folder.plan().columns()).expect("readable").as_ref() == Some(&table));
    assert!(reader.about("equipoise.sweep").is_some_and(|about| about.contains("loguniform(50, 500)")));
    let csv = String::from_utf8(csv).expect("a text");
    let mut lines = csv.lines();
    let heads: Vec<_> = lines.next().expect("a head").split(',').collect();
    let names: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(heads, names);
    let delay = names.iter().position(|name| *name == "delay_mean_s").expect("a column");
    for (line, number) in lines.zip(table.numbers("delay_mean_s").expect("a column")) {
        assert_eq!(line.split(',').nth(delay).and_then(|cell| cell.parse::<f64>().ok()), number);
    }
}

#[test]
fn a_folder_of_another_sweep_and_strange_parts_are_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path();
    assert!(matches!(Folder::open(path), Err(SweepError::NoSweep { .. })));
    let folder = Folder::create(path, &plan()).expect("a folder");
    let other = |change: &dyn Fn(&mut Design)| {
        let mut design = design();
        change(&mut design);
        let plan = Plan::new(design).expect("a right design");
        Folder::create(path, &plan).expect_err("another one").to_string()
    };
    assert!(other(&|design| design.seed = 6).contains("there, the seed is 5, and here 6"));
    assert!(other(&|design| design.vary.push("flow.media.start=0 s,1 s".to_owned())).contains("what is varied"));
    assert!(other(&|design| design.set[0] = "duration=7 s".to_owned()).contains("what is set"));
    folder.run("1/24".parse().expect("a share"), None, &|_| {}).expect("it runs");
    let name = |run: u64| path.join(format!("parts/runs-{run:012}.parquet"));
    fs::copy(name(0), name(1)).expect("writable");
    let refused = folder.run(Shard::ALL, None, &|_| {}).expect_err("a part of other runs");
    assert!(matches!(refused, SweepError::StrangePart { part: 1, .. }), "{refused}");
    fs::write(path.join("sweep.json"), "{}").expect("writable");
    assert!(matches!(Folder::open(path), Err(SweepError::Manifest { .. })));
}

#[test]
fn a_design_that_cannot_be_run_is_refused_with_what_would_be_right() {
    let vary = |text: &'static str| refused(move |design| design.vary = vec![text.to_owned()]);
    assert!(vary("link.bottleneck.rat=1M,2M").contains("a similar one exists: `rate`"));
    assert!(vary("link.botleneck.rate=1M,2M").contains("there are: bottleneck"));
    let wrong = vary("link.bottleneck.rate=15M,15");
    assert!(wrong.contains("link.bottleneck.rate=15,") && wrong.contains("no unit"), "{wrong}");
    assert!(vary("flow.media.controller.b=1,2").contains("varied or drawn twice"));
    assert!(vary("seed=1,2").contains("seeds of the runs"));
    assert!(vary("flow=1,2").contains("the column of `flow` would have the name of another one"));
    let drawn = refused(|design| design.draw.push("flow=uniform(1, 2)".to_owned()));
    assert!(drawn.contains("what is drawn, 'flow=uniform(1, 2)'\nthe column of `flow`"), "{drawn}");
    let varied = refused(|design| design.vary.push("flow=1,2".to_owned()));
    assert!(varied.contains("what is varied, 'flow=1,2'\nthe column of `flow`"), "{varied}");
    assert!(refused(|design| design.draw.clear()).contains("random points"));
    assert!(refused(|design| design.runs = 0).contains("a run or more"));
    assert!(refused(|design| design.scenarios.clear()).contains("a scenario or more"));
    assert!(refused(|design| design.set.push("duration".to_owned())).contains("KEY=VALUE"));
    let upper = refused(|design| design.draw = vec!["link.bottleneck.loss=uniform(1%, 200%)".to_owned()]);
    assert!(upper.contains("no number"), "{upper}");
    let many = ["k", "l", "m", "n"].map(|key| format!("flow.media.controller.{key}=1{}", ",1".repeat(4000)));
    assert!(refused(|design| design.vary = many.to_vec()).contains("more than"));
}

/// A target delay of 8.2 ms and a link delay of 30 ms are each valid, but not together, because the target is shorter
/// than the link delay.
#[test]
fn values_that_do_not_fit_each_other_are_refused_before_a_run() {
    let mut design = design();
    design.vary =
        vec!["flow.media.controller.target=40 ms,8.2 ms".to_owned(), "link.bottleneck.delay=5 ms,30 ms".to_owned()];
    let plan = Plan::new(design).expect("each value is right");
    let refused =
        plan.simulate(0..plan.runs(), None, &|_| panic!("nothing runs")).expect_err("a target below the delay");
    let SweepError::Point { values, .. } = &refused else { panic!("{refused}") };
    assert!(values.starts_with("flow.media.controller.target=8.2 ms, link.bottleneck.delay=30 ms"), "{values}");
}

#[test]
fn scenarios_of_one_name_are_called_by_their_files_and_parts_are_bounded() {
    let mut design = design();
    design.scenarios.push(NamedText { file: "other.toml".to_owned(), text: DEMO_SHORT.to_owned() });
    let plan = Plan::new(design.clone()).expect("right");
    let names = plan.simulate(23..25, None, &|_| {}).expect("it runs");
    assert_eq!(names.texts("scenario").expect("there"), [Some("short.toml"), Some("other.toml")]);
    design.scenarios[1].text = DEMO.to_owned();
    design.set.clear();
    design.runs = 2_000_000_000;
    let plan = Plan::new(design).expect("right");
    assert_eq!(plan.part(0), 0..1000);
    assert_eq!(plan.part(plan.parts() - 1).end, plan.runs());
    assert!(plan.part(plan.parts()).is_empty());
}

#[test]
fn a_share_is_one_of_several_counted_from_1_or_from_0() {
    let parts = |text: &str| text.parse::<Shard>().expect("a share").parts(7).collect::<Vec<_>>();
    assert_eq!([parts("1/3"), parts("2/3"), parts("3/3")], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    assert_eq!(parts("0/3"), parts("3/3"));
    for text in ["0/0", "4/3", "1", "1/0", "a/b", "-1/3"] {
        assert_eq!(text.parse::<Shard>(), Err(ShardError), "{text}");
    }
}

/// If this test fails, a user must wait for the end of a run that takes hours.
#[test]
fn a_sweep_is_stopped_within_a_run() {
    let mut two = design();
    two.set = vec!["warm_up=1 s".to_owned()];
    (two.vary, two.draw, two.random_points, two.runs) = (vec!["duration=40 s,2 h".to_owned()], Vec::new(), 1, 1);
    let stop = crate::sim::Stop::default();
    let execution = crate::sim::Execution { threads: Some(2), stop: stop.clone() };
    // When the short run is complete, the long run is in progress. If the long run were not stopped, both runs would
    // complete.
    let ended = Plan::new(two).expect("a right design").simulate(0..2, execution, &|_| stop.stop());
    assert!(
        matches!(ended, Err(SweepError::Run(crate::sim::SimError::Stopped))),
        "{:?}",
        ended.map(|table| table.rows())
    );
}

/// If this test fails, a part that another machine produced is stored without a check.
#[test]
fn a_part_from_elsewhere_is_taken_if_it_is_that_part() {
    let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let folders = [&here, &there].map(|folder| Folder::create(folder.path(), &plan()).expect("a new folder"));
    folders[1].run(Shard::ALL, Some(2), &|_| {}).expect("it runs");
    let part = |number: u64| {
        let name = format!("parts/runs-{:012}.parquet", plan().part(number).start);
        fs::read(there.path().join(name)).expect("written")
    };
    for wrong in [&part(1)[..], &part(0)[..100], b"", b"PAR1 and no more PAR1"] {
        let refused = folders[0].put(0, wrong);
        assert!(matches!(refused, Err(SweepError::StrangePart { part: 0, .. })), "{refused:?}");
        assert_eq!(fs::read_dir(here.path().join("parts")).expect("a folder").count(), 0);
    }
    folders[0].put(0, &part(0)).expect("the right one");
    assert!(!folders[0].missing(Shard::ALL).expect("readable").contains(&0));
    // If wrong bytes are stored as a part that already exists, they are refused, and the existing part stays.
    assert!(matches!(folders[0].put(0, &part(1)), Err(SweepError::StrangePart { part: 0, .. })));
    assert_eq!(files(here.path()), BTreeMap::from([("runs-000000000000.parquet".to_owned(), part(0))]));
}

/// If this test fails, a folder that cannot be written is reported as a broken part. The test does not use permissions
/// to prevent writing, because root may write in spite of them.
#[test]
fn a_part_that_cannot_be_stored_is_a_file_error() {
    let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let folders = [&here, &there].map(|folder| Folder::create(folder.path(), &plan()).expect("a new folder"));
    folders[1].run(Shard::ALL, Some(2), &|_| {}).expect("it runs");
    let bytes = fs::read(there.path().join("parts/runs-000000000000.parquet")).expect("written");
    let parts = here.path().join("parts");
    let target = parts.join("runs-000000000000.parquet");
    let is_file_error = |refused| match refused {
        Err(SweepError::File { path, .. }) => path == target,
        other => panic!("{other:?}"),
    };
    // A folder exists where the part's file should be.
    fs::create_dir(&target).expect("a folder");
    assert!(is_file_error(folders[0].put(0, &bytes)));
    assert_eq!(fs::read_dir(&parts).expect("a folder").count(), 1, "the temporary file is removed");
    // A file is where the folder of the parts should be.
    fs::remove_dir_all(&parts).expect("it was there");
    fs::write(&parts, b"").expect("room");
    assert!(is_file_error(folders[0].put(0, &bytes)));
}
