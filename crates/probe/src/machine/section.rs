//! A named group of facts, each of which may be missing with a reason.
use nephoscope_linux::files::Fact;
use serde::Serialize;
use serde_json::{json, Map, Value};

/// A named group of facts on its way into the document.
#[derive(Debug)]
pub struct Section {
    pub(super) name: String,
    pub(super) facts: Map<String, Value>,
    pub(super) missing: Vec<Value>,
}

impl Section {
    /// An empty section; `name` is its key, and the first part of its facts' names in `missing`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), facts: Map::new(), missing: Vec::new() }
    }

    /// Adds a fact that may be missing.
    pub fn put<T: Serialize>(&mut self, fact: &str, value: Fact<T>) {
        let value = match value {
            Ok(value) => json!(value),
            Err(reason) => {
                let fact = format!("{}.{fact}", self.name);
                self.missing.push(json!({"fact": fact, "reason": reason}));
                Value::Null
            }
        };
        self.facts.insert(fact.to_owned(), value);
    }

    /// Adds a fact that is always known.
    pub fn set<T: Serialize>(&mut self, fact: &str, value: T) {
        self.facts.insert(fact.to_owned(), json!(value));
    }

    /// Adds other sections as a list under one key.
    pub fn list(&mut self, fact: &str, items: Vec<Section>) {
        let mut list = Vec::new();
        for item in items {
            list.push(Value::Object(item.facts));
            self.missing.extend(item.missing);
        }
        self.facts.insert(fact.to_owned(), Value::Array(list));
    }

    /// The facts, and the list of what is missing.
    #[cfg(test)]
    pub fn into_parts(self) -> (Map<String, Value>, Vec<Value>) {
        (self.facts, self.missing)
    }
}
