//! Things by name, in the order in which they were written.
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Things by name, in the order in which they were written. No name is given twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The thing of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|entry| entry.0 == name).map(|entry| &entry.1)
    }

    /// Names and things, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, thing)| (name.as_str(), thing))
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.0.as_str())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.len()))?;
        for (name, thing) in self.iter() {
            map.serialize_entry(name, thing)?;
        }
        map.end()
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Named<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a map of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut named = Named::default();
        while let Some((name, thing)) = map.next_entry::<String, T>()? {
            if named.get(&name).is_some() {
                return Err(A::Error::custom(format!("the name `{name}` is given twice")));
            }
            named.0.push((name, thing));
        }
        Ok(named)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_a_name_stands_once() {
        let text = r#"{"b":1,"a":2}"#;
        let named: Named<u8> = serde_json::from_str(text).unwrap();
        assert_eq!(named.names().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(serde_json::to_string(&named).unwrap(), text);
        let twice = serde_json::from_str::<Named<u8>>(r#"{"b":1,"b":2}"#).unwrap_err();
        assert!(twice.to_string().contains("`b` is given twice"));
    }
}
