//! The arguments of a call.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The arguments of a call: a JSON object. Clones share it, because arguments can be large and a call is passed to many
/// places.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Arc<Value>")]
pub struct Arguments(Arc<Value>);

impl Arguments {
    /// Returns the shared value, which is an object.
    pub fn shared(&self) -> &Arc<Value> {
        &self.0
    }

    /// Returns the value to change it. It must remain an object. Copies it if it is shared.
    pub(super) fn value_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }

    /// Returns a copy of the value.
    pub fn to_value(&self) -> Value {
        Value::clone(&self.0)
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::from(Map::new())
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(members: Map<String, Value>) -> Self {
        Self(Arc::new(Value::Object(members)))
    }
}

impl FromIterator<(String, Value)> for Arguments {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self::from(Map::from_iter(members))
    }
}

/// Fails if the value is not an object.
impl TryFrom<Arc<Value>> for Arguments {
    type Error = NotAnObject;

    fn try_from(value: Arc<Value>) -> Result<Self, NotAnObject> {
        if value.is_object() { Ok(Self(value)) } else { Err(NotAnObject) }
    }
}

/// Fails if the value is not an object.
impl TryFrom<Value> for Arguments {
    type Error = NotAnObject;

    fn try_from(value: Value) -> Result<Self, NotAnObject> {
        Self::try_from(Arc::new(value))
    }
}

impl Deref for Arguments {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// Formats the arguments as JSON text.
impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error of arguments that are not a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the arguments are not a JSON object")]
pub struct NotAnObject;
