//! Programs under supervision: what comes back, and how they end.
use super::*;

fn job(program: &str, arguments: &[&str], input: &str) -> WrapJob {
    WrapJob {
        program: program.to_owned(),
        arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        input: input.to_owned(),
        ..WrapJob::default()
    }
}

fn wrapped(job: &WrapJob) -> Result<serde_json::Value> {
    let folder = Folder::make(&place::directory("")).unwrap();
    let place = StartPlace::new(job, &folder, Vec::new())?;
    let session = Session::detached();
    let report = place.run_once(job, session, || Ok(clock::monotonic_ns()));
    folder.remove().unwrap();
    report.map(|ended| ended.report())
}

#[test]
fn what_it_says_comes_back_with_its_times() {
    let script = "cat; echo more; sleep 0.2; pwd; echo bad >&2; exit 3";
    let report = wrapped(&job("sh", &["-c", script], "in {scratch}\n")).unwrap();
    let out = report["stdout"].as_str().unwrap();
    let mut lines = out.lines();
    let folder = lines.next().unwrap().strip_prefix("in ").unwrap().to_owned();
    assert!(folder.contains(".nephoscope-folder-"), "{folder}");
    assert_eq!(lines.next(), Some("more"));
    let real = std::path::Path::new(lines.next().unwrap());
    assert_eq!(real.file_name(), std::path::Path::new(&folder).file_name());
    assert_eq!((&report["exit"], &report["stderr"]), (&json!(3), &json!("bad\n")));
    let marks = report["marks"].as_array().unwrap();
    let (first, last) = (&marks[0], &marks[marks.len() - 1]);
    assert_eq!(last[1], out.len());
    // Between the first word and the last it slept a fifth of a second.
    assert!(last[0].as_u64().unwrap() - first[0].as_u64().unwrap() >= 200_000_000);
    assert!(!std::path::Path::new(&folder).exists());
}

fn step(script: &str) -> ProgramStep {
    let arguments = ["-c", script].map(str::to_owned).to_vec();
    ProgramStep { program: "sh".to_owned(), arguments, input: "in\n".to_owned() }
}

#[test]
fn what_it_needs_is_prepared_in_its_folder() {
    let main = job("sh", &["-c", "cat made; echo $HOME | grep -c .nephoscope-folder-"], "");
    let prepared =
        WrapJob { prepare: vec![step("cat >made"), step("echo >>made")], ..main.clone() };
    assert_eq!(wrapped(&prepared).unwrap()["stdout"], "in\n\n1\n");
    let failing = step("echo no such thing >&2; exit 3");
    let error = wrapped(&WrapJob { prepare: vec![failing], ..main }).unwrap_err();
    assert_eq!(error.name, "step_failed");
    assert!(error.hint.contains("no such thing"), "{}", error.hint);
}

#[test]
fn what_it_has_left_follows_its_output() {
    let main = job("sh", &["-c", "echo left >file; echo said"], "");
    let followed = WrapJob { after: vec![step("cat file")], ..main.clone() };
    let report = wrapped(&followed).unwrap();
    assert_eq!(report["stdout"], "said\nleft\n");
    assert_eq!(report["marks"].as_array().unwrap().last().unwrap()[1], 10);
    // A program that failed is reported in its own words, without them.
    let failed = WrapJob { arguments: vec!["-c".to_owned(), "exit 3".to_owned()], ..followed };
    assert_eq!(wrapped(&failed).unwrap()["exit"], 3);
    let error = wrapped(&WrapJob { after: vec![step("cat nothing")], ..main }).unwrap_err();
    assert_eq!(error.name, "step_failed");
}

#[test]
fn variables_reach_it_and_its_steps_with_the_folder_filled_in() {
    let variables = [("SET_HERE", "a b $c"), ("PLACE", "{scratch}/x")];
    let script = "test \"$PLACE\" = \"$HOME/x\" && echo \"$SET_HERE\"";
    let job = WrapJob {
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        prepare: vec![step(script)],
        ..job("sh", &["-c", script], "")
    };
    assert_eq!(wrapped(&job).unwrap()["stdout"], "a b $c\n");
}

#[test]
fn programs_are_looked_for_in_the_newest_of_more_folders() {
    let folder = Folder::make(&place::directory("")).unwrap();
    let base = folder.path().to_str().unwrap();
    for version in ["9", "15", "extra"] {
        std::fs::create_dir_all(folder.path().join(version).join("bin")).unwrap();
    }
    let path = search_path(&[format!("{base}/*/bin"), "/nowhere-*/bin".to_owned()]);
    assert!(path.to_str().unwrap().ends_with(&format!(":{base}/15/bin")), "{path:?}");
    folder.remove().unwrap();
}

#[test]
fn as_root_it_runs_under_the_named_account_with_its_own_folder() {
    let script = "id -u; touch made; cat /dev/stdin; ls -l -L /dev/stdin | cut -c1-10";
    let main = WrapJob { user: "nobody".to_owned(), ..job("sh", &["-c", script], "in\n") };
    let report = wrapped(&main).unwrap();
    // SAFETY: asks who this process is.
    let own = unsafe { libc::geteuid() };
    let expected = if own == 0 { 65534 } else { own };
    assert_eq!(report["stdout"], format!("{expected}\nin\n-rw-------\n"), "{report}");
    if own == 0 {
        let error = wrapped(&WrapJob { user: "no-such-user".to_owned(), ..main }).unwrap_err();
        assert_eq!(error.name, "no_user");
    }
}

#[test]
fn a_program_that_is_not_there_is_lacking() {
    let error = wrapped(&job("no-such-program-here", &[], "")).unwrap_err();
    assert_eq!((error.name, error.kind.exit_code()), ("no_program", 4));
}

#[test]
fn a_signal_is_no_exit_code() {
    let report = wrapped(&job("sh", &["-c", "kill -9 $$"], "")).unwrap();
    assert!(report["exit"].is_null());
    assert_eq!(report["signal"], 9);
}

#[test]
fn endless_output_is_ended() {
    let error = wrapped(&job("sh", &["-c", "while :; do echo yes yes yes; done"], ""));
    assert_eq!(error.unwrap_err().name, "too_much_output");
}

#[test]
fn a_token_may_stand_in_the_input_only() {
    assert!(job("sh", &["{token}"], "").check_secrets().is_err());
    assert!(job("sh", &["{peer_token}"], "").check_secrets().is_err());
    assert!(job("sh", &["{port}"], "pass {token}").check_secrets().is_ok());
    let closing = WrapJob { closing: vec![step("{token}")], ..WrapJob::default() };
    assert!(closing.check_secrets().is_err());
    let environment = [("PASSWORD".to_owned(), "{token}".to_owned())].into();
    assert!(WrapJob { environment, ..WrapJob::default() }.check_secrets().is_err());
}
