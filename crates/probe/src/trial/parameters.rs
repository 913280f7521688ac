//! Parameters as types of this program: variants of an enumeration by their names, and structs by the
//! names of their fields.
use nephoscope_linux::clock;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::Spec;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};

/// Returns the parameter `seed`, or one from the clock if it is 0.
pub fn seed(params: &Params) -> u64 {
    match params.u64("seed") {
        0 => clock::realtime_ns(),
        seed => seed,
    }
}

/// Returns the variant that a choice names.
pub fn choice<T: DeserializeOwned>(params: &Params, id: &str) -> T {
    typed(&params.as_json()[id])
}

/// Returns the variants that a list of choices names; all that the spec allows for an empty one.
pub fn choices<T: DeserializeOwned>(params: &Params, spec: &Spec, id: &str) -> Vec<T> {
    typed(&json!(params.words(spec, id)))
}

/// Returns the parameters that a struct has as fields.
pub fn fields<T: DeserializeOwned>(params: &Params) -> T {
    typed(&json!(params.as_json()))
}

fn typed<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("the spec has another type: {error}"))
}
