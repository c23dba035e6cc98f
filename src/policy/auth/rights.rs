//! What a caller may do: which operations, by which routes.
use crate::a2a::Op;

/// What a caller may do. By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    routes: Option<Vec<String>>,
    operations: Option<Vec<Op>>,
}

impl Rights {
    /// Only these, where they are given.
    pub fn new(routes: Option<Vec<String>>, operations: Option<Vec<Op>>) -> Self {
        Self { routes, operations }
    }

    /// Whether this may be done by this route, named by its path in the settings.
    pub fn allow(&self, op: Op, route: &str) -> bool {
        let routes = self.routes.as_ref();
        let operations = self.operations.as_ref();
        routes.is_none_or(|all| all.iter().any(|r| r == route))
            && operations.is_none_or(|all| all.contains(&op))
    }
}
