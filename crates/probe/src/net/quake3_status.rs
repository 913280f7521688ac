//! The server status of games of the Quake 3 engine (`getstatus`): its messages.
use serde_json::{json, Value};
use std::collections::HashMap;

pub const REQUEST: &[u8] = b"\xFF\xFF\xFF\xFFgetstatus";
/// What every answer begins with.
pub const STATUS_HEAD: &[u8] = b"\xFF\xFF\xFF\xFFstatusResponse\n";

/// Returns what a server says of itself, by the names of the other protocol; null for what it does
/// not say. The first line has its variables, each after a backslash, and every other one a player:
/// score, ping and name. None where the datagram is no status.
pub fn parse(datagram: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(datagram.strip_prefix(STATUS_HEAD)?).into_owned();
    let (variables, players) = text.split_once('\n')?;
    let mut words = variables.strip_prefix('\\')?.split('\\');
    let mut values = HashMap::new();
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        values.insert(key, value);
    }
    let places = values.get("sv_maxclients").and_then(|count| count.parse::<u64>().ok());
    Some(json!({
        "name": values.get("sv_hostname"), "map": values.get("mapname"),
        "folder": values.get("gamename"), "game": values.get("version"),
        "players": players.lines().filter(|line| !line.is_empty()).count(), "places": places,
    }))
}

/// The answer of the far side, on which nobody plays.
pub fn respond() -> Vec<u8> {
    let variables = b"\\sv_hostname\\Nephoscope\\mapname\\none\\gamename\\nephoscope\\version\\Responder\\sv_maxclients\\0\n";
    [STATUS_HEAD, variables].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_s_status_is_read() {
        // Captured from OpenArena 0.8.8 with two bots, shortened.
        let bytes = b"\xFF\xFF\xFF\xFFstatusResponse\n\\com_protocol\\71\\sv_hostname\\A server\\version\\ioq3 1.36\\mapname\\oa_dm1\\sv_maxclients\\8\\gamename\\baseoa\\g_doWarmup\\0\n0 0 \"Arachna\"\n3 48 \"Beret\"\n";
        let facts = parse(bytes).unwrap();
        let expected = json!({
            "name": "A server", "map": "oa_dm1", "folder": "baseoa", "game": "ioq3 1.36",
            "players": 2, "places": 8,
        });
        assert_eq!(facts, expected);
        assert_eq!(parse(&bytes[..40]), None);
        assert_eq!(parse(b"\xFF\xFF\xFF\xFFinfoResponse\n\\hostname\\A server"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn what_a_server_does_not_say_is_null() {
        let facts = parse(b"\xFF\xFF\xFF\xFFstatusResponse\n\\mapname\\q3dm17\n").unwrap();
        assert_eq!((&facts["name"], &facts["places"]), (&Value::Null, &Value::Null));
        assert_eq!((&facts["map"], &facts["players"]), (&json!("q3dm17"), &json!(0)));
    }

    #[test]
    fn the_responder_s_status_is_read() {
        let facts = parse(&respond()).unwrap();
        assert_eq!((&facts["name"], &facts["players"]), (&json!("Nephoscope"), &json!(0)));
    }
}
