//! Values by name, in the order in which they were written.
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Values by name, in the order in which they were written. Names are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedMap<T>(pub Vec<(String, T)>);

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> OrderedMap<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|entry| entry.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = OrderedMap<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = OrderedMap::default();
        while let Some((name, value)) = entries.next_entry::<String, T>()? {
            if map.get(&name).is_some() {
                return Err(A::Error::custom(format!("the name `{name}` is given twice")));
            }
            map.0.push((name, value));
        }
        Ok(map)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_preserved_and_names_are_unique() {
        let text = r#"{"b":1,"a":2}"#;
        let map: OrderedMap<u8> = serde_json::from_str(text).unwrap();
        assert_eq!(map.names().collect::<Vec<_>>(), ["b", "a"]);
        let twice = serde_json::from_str::<OrderedMap<u8>>(r#"{"b":1,"b":2}"#).unwrap_err();
        assert!(twice.to_string().contains("`b` is given twice"));
    }
}
