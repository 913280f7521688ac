//! A caller's parameters, checked against the spec: unknown names, wrong types and values out of
//! bounds are refused with a sentence that names the bound.
use crate::error::Error;
use crate::spec::{Param, ParamKind, Spec};
use serde_json::{json, Map, Value};

/// Returns the error for refused parameters; the sentence states the bound.
fn refused(sentence: String) -> Error {
    Error::usage(sentence, "Run the same program with `describe` for names and bounds.")
}

/// Parameters of one trial: every parameter of the spec is present, typed and within bounds.
#[derive(Clone, Debug)]
pub struct Params {
    values: Map<String, Value>,
}

impl Params {
    /// Checks `parameters` against `spec` and fills in the defaults.
    pub fn check(spec: &Spec, parameters: &Map<String, Value>) -> Result<Self, Error> {
        for name in parameters.keys() {
            if !spec.params.iter().any(|param| param.id == name) {
                let known: Vec<_> = spec.params.iter().map(|param| param.id).collect();
                return Err(refused(format!(
                    "{} has no parameter '{name}'; it has: {}.",
                    spec.id,
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                )));
            }
        }
        let mut values = Map::new();
        for param in spec.params {
            let value = match parameters.get(param.id) {
                Some(value) => checked(spec.id, param, value)?,
                None => json!(param)["default"].clone(),
            };
            values.insert(param.id.to_owned(), value);
        }
        Ok(Self { values })
    }

    // A parameter that the spec does not declare with that type is an error in our code.

    pub fn int(&self, id: &str) -> i64 {
        self.values[id].as_i64().unwrap_or_else(|| panic!("{id} is not an int in the spec"))
    }

    pub fn u64(&self, id: &str) -> u64 {
        self.values[id].as_u64().unwrap_or_else(|| panic!("{id} is no u64 in the spec"))
    }

    pub fn size(&self, id: &str) -> usize {
        usize::try_from(self.u64(id)).unwrap_or_else(|_| panic!("{id} is no usize in the spec"))
    }

    pub fn float(&self, id: &str) -> f64 {
        self.values[id].as_f64().unwrap_or_else(|| panic!("{id} is not a float in the spec"))
    }

    pub fn bool(&self, id: &str) -> bool {
        self.values[id].as_bool().unwrap_or_else(|| panic!("{id} is not a bool in the spec"))
    }

    pub fn text(&self, id: &str) -> &str {
        self.values[id].as_str().unwrap_or_else(|| panic!("{id} is not a text in the spec"))
    }

    pub fn ints(&self, id: &str) -> Vec<i64> {
        self.list(id).iter().filter_map(Value::as_i64).collect()
    }

    pub fn texts(&self, id: &str) -> Vec<&str> {
        self.list(id).iter().filter_map(Value::as_str).collect()
    }

    fn list(&self, id: &str) -> &[Value] {
        self.values[id].as_array().unwrap_or_else(|| panic!("{id} is not a list in the spec"))
    }

    /// A list of words; when it is empty, all words that the spec allows.
    pub fn words(&self, spec: &Spec, id: &str) -> Vec<String> {
        let list = self.list(id);
        if !list.is_empty() {
            return list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let param = spec.params.iter().find(|param| param.id == id);
        match param.map(|param| param.kind) {
            Some(ParamKind::ChoiceList { choices, .. }) => {
                choices.iter().map(|word| (*word).to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn as_json(&self) -> &Map<String, Value> {
        &self.values
    }
}

fn checked(spec_id: &str, param: &Param, value: &Value) -> Result<Value, Error> {
    let is_whole = |value: &Value, min, max| {
        value.as_i64().is_some_and(|number| (min..=max).contains(&number))
    };
    let is_word = |value: &Value, choices: &[&str]| {
        value.as_str().is_some_and(|word| choices.contains(&word))
    };
    let all = |is_item: &dyn Fn(&Value) -> bool| {
        value.as_array().is_some_and(|list| list.iter().all(is_item))
    };
    let (is_valid, wanted) = match param.kind {
        ParamKind::Int { min, max, .. } => {
            (is_whole(value, min, max), format!("a whole number from {min} to {max}"))
        }
        ParamKind::Float { min, max, .. } => {
            let is_within = value.as_f64().is_some_and(|number| (min..=max).contains(&number));
            (is_within, format!("a number from {min} to {max}"))
        }
        ParamKind::Bool { .. } => (value.is_boolean(), "true or false".to_owned()),
        ParamKind::Choice { choices, .. } => {
            (is_word(value, choices), format!("one of {}", choices.join(", ")))
        }
        ParamKind::Text { .. } => (value.is_string(), "a text".to_owned()),
        ParamKind::TextList { .. } => (all(&Value::is_string), "a list of texts".to_owned()),
        ParamKind::IntList { min, max, .. } => (
            all(&|item| is_whole(item, min, max)),
            format!("a list of whole numbers from {min} to {max}"),
        ),
        ParamKind::ChoiceList { choices, .. } => (
            all(&|item| is_word(item, choices)),
            format!("a list of words out of {}", choices.join(", ")),
        ),
    };
    if !is_valid {
        let id = param.id;
        return Err(refused(format!("{spec_id}: {id} must be {wanted}, not {value}.")));
    }
    Ok(match param.kind {
        ParamKind::Float { .. } => json!(value.as_f64()),
        _ => value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Resource;

    const SPEC: Spec = Spec {
        id: "test.spec",
        params: &[
            Param::int("size_bytes", 64, 1..=100),
            Param::choices("op", &["read", "write"]),
            Param::texts("words"),
        ],
        ..Spec::about(Resource::None)
    };

    fn check(values: Value) -> Result<Params, Error> {
        Params::check(&SPEC, values.as_object().unwrap())
    }

    #[test]
    fn defaults_fill_what_is_not_given() {
        let params = check(json!({})).unwrap();
        assert_eq!(params.int("size_bytes"), 64);
        assert_eq!(params.words(&SPEC, "op"), ["read", "write"]);
        assert!(params.texts("words").is_empty());
        assert_eq!(check(json!({"words": ["a b", ""]})).unwrap().texts("words"), ["a b", ""]);
    }

    #[test]
    fn the_sentence_names_the_parameter_the_bound_and_the_value() {
        let error = check(json!({"size_bytes": 101})).unwrap_err().message;
        assert_eq!(error, "test.spec: size_bytes must be a whole number from 1 to 100, not 101.");
        let error = check(json!({"sise": 1})).unwrap_err().message;
        assert_eq!(error, "test.spec has no parameter 'sise'; it has: size_bytes, op, words.");
    }

    #[test]
    fn wrong_types_are_refused() {
        for values in [
            json!({"size_bytes": "64"}),
            json!({"size_bytes": 6.5}),
            json!({"size_bytes": null}),
            json!({"op": "read"}),
            json!({"op": ["append"]}),
            json!({"words": "a b"}),
            json!({"words": ["a", 1]}),
        ] {
            assert!(check(values.clone()).is_err(), "{values} was accepted");
        }
    }
}
