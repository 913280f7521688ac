//! Tests of the counters beside a trial.
use super::*;
use nephoscope_linux::captured::Captured;

/// Keys of the `counters` object, in its order.
const KEYS: [&str; 27] = [
    "elapsed_ns",
    "steal_ratio",
    "busy_ratio",
    "psi_cpu_some_ratio",
    "psi_memory_some_ratio",
    "psi_memory_full_ratio",
    "psi_io_some_ratio",
    "psi_io_full_ratio",
    "throttled_ratio",
    "throttled_count",
    "major_faults_count",
    "minor_faults_count",
    "voluntary_switches_count",
    "involuntary_switches_count",
    "swap_in_count",
    "swap_out_count",
    "swapped_bytes",
    "clock_step_ns",
    "load_1m",
    "own_busy_cpus",
    "others_busy_cpus",
    "others_io_bytes_per_s",
    "kernel_read_bytes_per_s",
    "kernel_written_bytes_per_s",
    "kernel_flushes_per_s",
    "kernel_packets_per_s",
    "kernel_switches_per_s",
];

fn reading(files: &[(&str, &str)], read_ns: u64) -> Counters {
    let captured = Captured::new(files);
    Counters { read_ns, ..Counters::read_files(&captured.files(), None) }
}

#[test]
fn the_keys_are_stable_and_in_order() {
    let object = Counters::read().since(&Counters::read());
    let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, KEYS);
}

#[test]
fn a_hidden_proc_gives_nulls_and_no_zeros() {
    let hidden = reading(&[], 1_000_000_000);
    let change = hidden.since(&reading(&[], 0));
    let always_known = ["elapsed_ns", "clock_step_ns"];
    for key in KEYS.iter().filter(|key| !always_known.contains(key)) {
        assert!(change[*key].is_null(), "{key} is {}", change[*key]);
    }
    assert_eq!(change["elapsed_ns"], 1_000_000_000);
}

#[test]
fn ratios_follow_their_formulas() {
    let at = |steal: u32, io: u32, total: u32| {
        let idle = total - steal - 5000;
        [
            ("/proc/stat", format!("cpu  5000 0 0 {idle} 0 0 0 {steal} 0 0\n")),
            ("/proc/pressure/io", format!("some avg10=0 total={io}\nfull avg10=0 total=0\n")),
        ]
    };
    let (before, after) = (at(350, 1_200_000, 10_000), at(620, 1_950_000, 11_500));
    let of = |texts: &[(&str, String)], ns| {
        let texts: Vec<_> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
        reading(&texts, ns)
    };
    let counters = of(&after, 10_000_000_000).since(&of(&before, 0));
    let near = |key: &str, wanted: f64| {
        assert!((counters[key].as_f64().unwrap() - wanted).abs() < 1e-12, "{key}: {counters}");
    };
    near("steal_ratio", 0.18);
    near("psi_io_some_ratio", 0.075);
    near("psi_io_full_ratio", 0.0);
    assert!(counters["psi_memory_some_ratio"].is_null());
}

#[test]
fn throttling_is_the_largest_over_the_levels_and_needs_the_same_group() {
    let level = |path: &str, count, time_ns| Throttled { path: path.into(), count, time_ns };
    let of = |levels: Vec<Throttled>, read_ns| Counters {
        throttled: Some(levels),
        read_ns,
        ..Counters::default()
    };
    let before = of(vec![level("/a/b", 1, 10), level("/a", 5, 100)], 0);
    let after = of(vec![level("/a/b", 1, 10), level("/a", 8, 600)], 1000);
    let counters = after.since(&before);
    assert_eq!(
        (&counters["throttled_ratio"], &counters["throttled_count"]),
        (&json!(0.5), &json!(3))
    );
    let moved = of(vec![level("/a/c", 1, 10), level("/a", 8, 600)], 1000);
    assert!(moved.since(&before)["throttled_ratio"].is_null());
}

#[test]
fn a_clock_step_is_seen_with_its_sign() {
    let before = Counters { clock_offset_ns: 5_000, ..Counters::default() };
    let after = Counters { clock_offset_ns: -1_000_000_000, ..Counters::default() };
    assert_eq!(after.since(&before)["clock_step_ns"], -1_000_005_000);
}

#[test]
fn without_a_step_the_offset_stays() {
    crate::trial::attempts::attempt("the clock's step", || {
        let before = Counters::read();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let step = Counters::read().since(&before)["clock_step_ns"].as_i64().unwrap();
        // Preemption between the readings of every one of five tries would have to exceed this; a
        // step that matters to a trial is larger.
        crate::trial::attempts::holds(step.abs() < 1_000_000, format!("{step} ns"))
    });
}

#[test]
fn own_faults_and_switches_are_counted() {
    let before = Counters::read();
    let mut buffer =
        crate::memory::buffer::Buffer::map(400 * 4096, crate::memory::buffer::Pages::Small)
            .unwrap();
    buffer.touch(0..400 * 4096);
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    let delta = Counters::read().since(&before);
    assert!(delta["minor_faults_count"].as_i64().unwrap() >= 400, "{delta}");
    let count = |name: &str| delta[name].as_i64().unwrap();
    // A program that is preempted while it begins to wait does not wait again when its timer has
    // ended meanwhile: that sleep counts as an involuntary switch.
    let (voluntary, involuntary) =
        (count("voluntary_switches_count"), count("involuntary_switches_count"));
    assert!(voluntary >= 1 && voluntary + involuntary >= 20, "{delta}");
}
