//! Whether objects are still what was written: lost, damaged and unreachable are three things.
use super::content::{Content, Object};
use super::lasting::LastingPlace;
use super::ledger::{hexadecimal, Ledger, LedgerObject, ObjectState};
use super::Store;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_wire::random::Random;
use sha2::{Digest, Sha256};

/// Failures in a row after which the store counts as unreachable; the objects left are not asked for.
const FAILURES_IN_A_ROW: usize = 3;
/// Number of the object that marks the place; it counts as none of the objects.
const MARK: u64 = u64::MAX;
const MARK_BYTES: u64 = 64;

/// What the store answers to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Intact,
    Lost,
    Damaged,
    /// No answer about the object, and why.
    Unreachable(String),
}

/// What a check saw. Counts are of the ledger after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurabilityCheck {
    /// Objects that were written and read back in this check.
    pub written: u64,
    pub intact: u64,
    pub lost: u64,
    pub damaged: u64,
    /// Objects without an answer in this check, whatever their last answer was.
    pub unreachable: u64,
    /// Objects that were lost or damaged before and are intact again.
    pub returned: u64,
    /// Sum over objects of the time from the writing to the last intact answer.
    pub exposure_s: u64,
    /// What a person should read.
    pub notes: Vec<String>,
}

/// What is to be checked, and how.
pub struct DurabilityRules {
    /// Objects at risk; lost and damaged ones are replaced.
    pub objects: u64,
    pub bytes: u64,
    /// Whether nothing at all in the place counts as the loss of everything.
    pub counts_total_loss: bool,
}

/// Reads all objects of the ledger back, writes those that are missing up to the number, saves it.
///
/// now_s: seconds since 1970. Fails where the place itself is not there, and where a ledger without
/// objects cannot be begun.
pub fn check(
    place: &mut LastingPlace,
    ledger: &mut Ledger,
    rules: &DurabilityRules,
    session: Session,
    now_s: u64,
) -> Result<DurabilityCheck> {
    let content = Content::new(ledger.seed());
    let answers = answers(place.store.as_mut(), ledger, &content, session)?;
    if !rules.counts_total_loss {
        check_place(place.store.as_mut(), ledger, &answers, &content)?;
    }
    let mut seen = DurabilityCheck::default();
    let reasons: Vec<&str> = answers.iter().filter_map(Answer::reason).collect();
    seen.unreachable = reasons.len() as u64;
    if let Some(reason) = reasons.first() {
        seen.notes.push(format!("Unreachable: {}; {reason}", of_objects(reasons.len())));
    }
    for (object, answer) in ledger.objects_mut().iter_mut().zip(&answers) {
        seen.returned += u64::from(take_in(object, answer, now_s));
    }
    ledger.save()?;
    let begun = ledger.objects().iter().any(|object| object.state != ObjectState::Planned);
    if seen.unreachable == 0 {
        match write_missing(place, ledger, rules, &content, session, now_s) {
            Ok(written) => seen.written = written,
            Err(error) if begun && session.check().is_ok() => {
                seen.notes.push(format!("No further object was written: {}", error.message));
            }
            Err(error) => return Err(error),
        }
    }
    count(ledger, &mut seen);
    Ok(seen)
}

fn of_objects(number: usize) -> String {
    if number == 1 {
        "1 object".to_owned()
    } else {
        format!("{number} objects")
    }
}

impl Answer {
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Unreachable(reason) => Some(reason),
            _ => None,
        }
    }
}

/// The object that a number stands for; its bytes follow from the ledger's seed.
fn object(content: &Content, seed: u64, number: u64, bytes: u64) -> Object {
    let name = if number == MARK { "place".to_owned() } else { format!("{number:06}") };
    content.object(name, bytes, &mut Random::stream(seed, number))
}

fn answers(
    store: &mut dyn Store,
    ledger: &Ledger,
    content: &Content,
    session: Session,
) -> Result<Vec<Answer>> {
    let (mut answers, mut failures) = (Vec::new(), 0);
    for entry in ledger.objects() {
        session.check()?;
        let answer = if failures < FAILURES_IN_A_ROW {
            let expected = object(content, ledger.seed(), entry.number, entry.bytes);
            answer(store, &expected, &entry.sha256)
        } else {
            Answer::Unreachable("the store was not asked again".to_owned())
        };
        failures = if answer.reason().is_some() { failures + 1 } else { 0 };
        answers.push(answer);
    }
    session.check()?;
    Ok(answers)
}

/// Asks for one object. Damage has to be seen twice: bytes may be changed on the way.
fn answer(store: &mut dyn Store, object: &Object, sha256: &str) -> Answer {
    // The bytes have to come from the disk, not from the memory of this machine.
    let _ = store.drop_cache(object);
    match read(store, object, sha256) {
        Answer::Damaged => read(store, object, sha256),
        first => first,
    }
}

fn read(store: &mut dyn Store, object: &Object, sha256: &str) -> Answer {
    let unanswered = |error: ProbeError| match error.name {
        "object_vanished" => Answer::Lost,
        _ => Answer::Unreachable(error.message),
    };
    // First the size: a request for bytes that a shorter object lacks fails in as many ways as there are services.
    match store.size(object) {
        Ok(bytes) if bytes != object.bytes => return Answer::Damaged,
        Ok(_) => {}
        Err(error) => return unanswered(error),
    }
    let mut hash = Sha256::new();
    match store.read(object, &mut |piece| hash.update(piece)) {
        Ok(_) if hexadecimal(&hash.finalize()) == sha256 => Answer::Intact,
        Ok(_) => Answer::Damaged,
        Err(error) => unanswered(error),
    }
}

/// Refuses a place where nothing is, not even its mark: a disk that is not mounted, or another bucket,
/// looks like the loss of everything.
fn check_place(
    store: &mut dyn Store,
    ledger: &Ledger,
    answers: &[Answer],
    content: &Content,
) -> Result<()> {
    let known = ledger.objects().iter().zip(answers);
    let mut known = known.filter(|(object, _)| object.state != ObjectState::Planned).peekable();
    if known.peek().is_none() || !known.all(|(_, answer)| *answer == Answer::Lost) {
        return Ok(());
    }
    match store.size(&object(content, ledger.seed(), MARK, MARK_BYTES)) {
        Ok(_) => Ok(()),
        Err(_) => Err(ProbeError::new(
            FailureKind::Failed,
            "place_missing",
            "None of the objects is there, nor the mark of their place: a disk that is not mounted, another \
             place, or the loss of everything.",
            "Look at `directory`, `bucket` and `endpoint`; set `counts_total_loss` if all objects are lost.",
        )),
    }
}

/// Takes an answer into the ledger; returns whether the object came back.
fn take_in(object: &mut LedgerObject, answer: &Answer, now_s: u64) -> bool {
    let before = object.state;
    let state = match (answer, before) {
        (Answer::Unreachable(_), _) => return false,
        // A kill came between the writing and the ledger: what is there was written by nobody else.
        (Answer::Intact, ObjectState::Planned) => {
            object.written_s = now_s;
            ObjectState::Intact
        }
        (_, ObjectState::Planned) => return false,
        (Answer::Intact, _) => ObjectState::Intact,
        (Answer::Lost, _) => ObjectState::Lost,
        (Answer::Damaged, _) => ObjectState::Damaged,
    };
    if state == ObjectState::Intact {
        object.intact_s = now_s.max(object.intact_s);
    }
    if state != before {
        (object.state, object.since_s) = (state, now_s);
    }
    state == ObjectState::Intact && matches!(before, ObjectState::Lost | ObjectState::Damaged)
}

/// Writes what was planned, and new objects up to the number of those at risk. Each is read back at once.
fn write_missing(
    place: &mut LastingPlace,
    ledger: &mut Ledger,
    rules: &DurabilityRules,
    content: &Content,
    session: Session,
    now_s: u64,
) -> Result<u64> {
    let at_risk =
        |object: &&LedgerObject| matches!(object.state, ObjectState::Planned | ObjectState::Intact);
    let seed = ledger.seed();
    let missing =
        rules.objects.saturating_sub(ledger.objects().iter().filter(at_risk).count() as u64);
    for number in (ledger.next_number()..).take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        let planned = object(content, seed, number, rules.bytes);
        ledger.objects_mut().push(LedgerObject {
            number,
            bytes: rules.bytes,
            sha256: hexadecimal(&planned.digest),
            state: ObjectState::Planned,
            written_s: 0,
            intact_s: 0,
            since_s: 0,
        });
    }
    let planned: Vec<usize> = (0..ledger.objects().len())
        .filter(|index| ledger.objects()[*index].state == ObjectState::Planned)
        .collect();
    if planned.is_empty() {
        return Ok(0);
    }
    // Before the first is written, so that a kill leaves no object that nobody knows.
    ledger.save()?;
    place.prepare(planned.len() as u64 * rules.bytes)?;
    let store = place.store.as_mut();
    store.write(content, &object(content, seed, MARK, MARK_BYTES))?;
    let (mut written, mut outcome) = (0, Ok(()));
    for index in planned {
        let entry = ledger.objects()[index].clone();
        let new = object(content, seed, entry.number, entry.bytes);
        outcome = session.check().and_then(|()| write(store, content, &new, &entry.sha256));
        if outcome.is_err() {
            break;
        }
        let entry = &mut ledger.objects_mut()[index];
        entry.state = ObjectState::Intact;
        (entry.written_s, entry.intact_s, entry.since_s) = (now_s, now_s, now_s);
        written += 1;
    }
    ledger.save()?;
    outcome.map(|()| written)
}

fn write(store: &mut dyn Store, content: &Content, new: &Object, sha256: &str) -> Result<()> {
    store.write(content, new)?;
    match answer(store, new, sha256) {
        Answer::Intact => Ok(()),
        Answer::Unreachable(reason) => Err(ProbeError::new(
            FailureKind::Failed,
            "store_failed",
            reason,
            "See the log of the service.",
        )),
        Answer::Lost | Answer::Damaged => Err(ProbeError::new(
            FailureKind::Failed,
            "object_differs",
            format!("The object {} does not read back as it was written a moment ago.", new.name),
            "Check the store and the path to it.",
        )),
    }
}

fn count(ledger: &Ledger, seen: &mut DurabilityCheck) {
    let of = |state| ledger.objects().iter().filter(move |object| object.state == state);
    let number = |state| of(state).count() as u64;
    (seen.intact, seen.lost, seen.damaged) =
        (number(ObjectState::Intact), number(ObjectState::Lost), number(ObjectState::Damaged));
    let written = ledger.objects().iter().filter(|object| object.state != ObjectState::Planned);
    seen.exposure_s = written.map(|object| object.intact_s.saturating_sub(object.written_s)).sum();
    for (word, state) in [("Lost", ObjectState::Lost), ("Damaged", ObjectState::Damaged)] {
        let names: Vec<String> =
            of(state).take(10).map(|object| format!("{:06}", object.number)).collect();
        if !names.is_empty() {
            let more = if number(state) > 10 { ", …" } else { "" };
            seen.notes.push(format!(
                "{word}: {}{more} below {}.",
                names.join(", "),
                ledger.prefix()
            ));
        }
    }
}

/// Returns the check of a ledger whose store accepts no connection; `None` where nothing was written yet.
pub fn without_store(ledger: &Ledger, reason: &str) -> Option<DurabilityCheck> {
    let known = ledger.objects().iter().filter(|object| object.state != ObjectState::Planned);
    let unreachable = known.count() as u64;
    let notes = vec![format!("Unreachable: all objects; {reason}")];
    let mut seen = DurabilityCheck { unreachable, notes, ..DurabilityCheck::default() };
    count(ledger, &mut seen);
    (unreachable > 0).then_some(seen)
}
