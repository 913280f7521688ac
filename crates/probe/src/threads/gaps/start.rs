//! What precedes the loops: which clock, which CPUs, and a thread for each.
use super::watch::Watch;
use super::{GapMeterSettings, LoopPlacement, Record};
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::team::{self, ThreadPlacement};
use crate::timing::ticks::{self, Ticks};
use crate::trial::affinity;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;

/// One loop per place, each in a thread.
pub fn threads<C: Ticks>(
    trial: &mut Trial,
    settings: &GapMeterSettings,
    places: &[LoopPlacement],
) -> Result<Vec<Record>> {
    let placement = ThreadPlacement::free(trial.session, places.len())?;
    for note in &placement.notes {
        trial.out.note(note);
    }
    let prepare = |thread: usize| Ok(Watch::prepare::<C>(settings, places[thread]));
    let watch_one = |_, watch: &mut Watch| {
        watch.watch_clock::<C>(None);
        Ok(())
    };
    let members = team::run_behind(|| trial.prepared(), &placement, prepare, watch_one)?;
    members.into_iter().map(|member| member.state.record()).collect()
}

/// Whether the loop reads the time-stamp counter.
pub fn reads_tsc(trial: &mut Trial) -> Result<bool> {
    let wanted = trial.params.text("clock").to_owned();
    if wanted == "monotonic" {
        return Ok(false);
    }
    let Err(reason) = ticks::tsc_usable() else { return Ok(true) };
    if wanted == "tsc" {
        return Err(ProbeError::new(
            FailureKind::Lacks,
            "no_tsc_clock",
            format!("The time-stamp counter is no clock here: {reason}."),
            "Set clock to auto or monotonic.",
        ));
    }
    trial.out.note(format!("The loops read CLOCK_MONOTONIC, because {reason}."));
    Ok(false)
}

/// Length of a tick to a few parts per million: enough for buckets of three digits. Sums use the
/// rate over the window itself.
pub fn calibrate<C: Ticks>() -> f64 {
    const WAIT_NS: u64 = 5_000_000;
    let first = C::pair();
    while clock::monotonic_ns() < first.monotonic_ns + WAIT_NS {
        std::hint::spin_loop();
    }
    C::pair().ns_per_tick(&first)
}

/// Where the loops run.
pub fn places(trial: &mut Trial) -> Result<Vec<LoopPlacement>> {
    let per_cpu = trial.params.size("processes_per_cpu");
    let mut cpus = affinity::named("cpu.gaps", &trial.params)?;
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        cpus = affinity::allowed();
    }
    match trial.params.size("cpus_max") {
        0 => {}
        most => cpus.truncate(most),
    }
    if scheduling::is_reserved() {
        let loops = cpus.len() * per_cpu;
        if loops > 1 && scheduling::children_are_ordinary() {
            trial.out.note(format!(
                "{loops} processes, each unpinned and under a reservation of its own: \
                 SCHED_DEADLINE allows no pinning."
            ));
            let place = |number| LoopPlacement { cpu: None, process: number, number };
            return Ok((0..loops).map(place).collect());
        }
        if loops > 1 {
            trial.out.note(format!(
                "One loop instead of {}: SCHED_DEADLINE allows no more.",
                cpus.len() * per_cpu
            ));
        }
        return Ok(vec![LoopPlacement { cpu: None, process: 0, number: 0 }]);
    }
    let pin = trial.params.bool("pin");
    let loops = cpus.iter().flat_map(|cpu| (0..per_cpu).map(move |process| (*cpu, process)));
    let place = |(number, (cpu, process))| match pin {
        true => LoopPlacement { cpu: Some(cpu), process, number },
        false => LoopPlacement { cpu: None, process: number, number },
    };
    Ok(loops.enumerate().map(place).collect())
}
