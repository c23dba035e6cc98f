//! Routes: agents below paths of their own, the address of each made from the path of the call.

use std::collections::BTreeSet;
use std::fmt;

use http::uri::{Authority, Scheme};

use super::face::Face;
use super::metadata::MetadataRule;
use super::url::{self, is_plain};

/// Calls below a path go to an agent of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where clients find the agent, below our own address.
    pub path: Template,
    /// Where it is.
    pub backend: Target,
    /// The parameter that names the agent, where one agent is to have a context for itself.
    pub agent_parameter: Option<String>,
    /// What is written into the metadata of messages to it.
    pub metadata: Vec<MetadataRule>,
    /// What its clients see.
    pub face: Face,
}

/// An agent's address, with parameters in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// The host, with the port where it was given.
    pub authority: Authority,
    /// The path.
    pub path: Template,
}

/// A path whose segments are literal or parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Segment>);

/// One segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Just this; nothing in it needs percent-encoding.
    Literal(String),
    /// Any one segment, known by this name in both templates.
    Parameter(String),
}

impl Template {
    /// The segments; none for the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The template of a route: not the root, and not what a v0.3 REST client would append.
    pub(super) fn of_route(text: &str) -> Result<Self, String> {
        let template = Self::parse(text)?;
        match template.0.last() {
            None => Err("the root is not for a route; use backend.url for it".to_owned()),
            Some(Segment::Literal(last)) if last == "v1" => {
                Err("a path must not end in `v1`, which means v0.3 REST".to_owned())
            }
            Some(Segment::Literal(_) | Segment::Parameter(_)) => Ok(template),
        }
    }

    /// The template as a key: two with the same shape would match the same paths.
    pub(super) fn shape(&self) -> String {
        let part = |segment: &Segment| match segment {
            Segment::Literal(text) => format!("/{text}"),
            Segment::Parameter(_) => "/{}".to_owned(),
        };
        self.0.iter().map(part).collect()
    }

    /// The names of its parameters.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.0.iter().filter_map(Segment::name).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "/" {
            return Ok(Self(Vec::new()));
        }
        let path = text.strip_prefix('/');
        let path = path.ok_or("a path begins with a slash")?;
        let segments: Result<Vec<_>, _> = path.split('/').map(Segment::parse).collect();
        let template = Self(segments?);
        let parameter = |segment: &&Segment| matches!(segment, Segment::Parameter(_));
        if template.names().len() < template.0.iter().filter(parameter).count() {
            return Err("a parameter stands in it twice".to_owned());
        }
        Ok(template)
    }
}

impl Segment {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Parameter(name) => Some(name),
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(name) = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
        {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(word) {
                return Err("the name of a parameter is made of letters, digits and `_`");
            }
            return Ok(Self::Parameter(name.to_owned()));
        }
        match text {
            "" => Err("a path must not have empty segments, nor end in a slash"),
            "." | ".." => Err("a path must not contain `.` or `..` segments"),
            text if text.contains(['{', '}']) => {
                Err("a parameter is a whole segment, such as {id}")
            }
            // Encoded text could be written in two ways, and only one of them would match.
            text if !text.bytes().all(is_plain) => {
                Err("a path holds no `%`, `?`, `#`, nor what would need encoding")
            }
            text => Ok(Self::Literal(text.to_owned())),
        }
    }
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, authority, path) = url::split(text)?;
        let path = Template::parse(path)?;
        Ok(Self {
            scheme,
            authority,
            path,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Literal(text) => write!(f, "/{text}"),
            Segment::Parameter(name) => write!(f, "/{{{name}}}"),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_segments() {
        let text = "/workspaces/{workspace_id}/a2a";
        let template = Template::of_route(text).expect("valid");
        let expected = [
            Segment::Literal("workspaces".to_owned()),
            Segment::Parameter("workspace_id".to_owned()),
            Segment::Literal("a2a".to_owned()),
        ];
        assert_eq!(template.segments(), expected);
        assert_eq!(template.to_string(), text);
        assert_eq!(template.shape(), "/workspaces/{}/a2a");
        assert!(Template::of_route("/v1/agents/{x}").is_ok());
        let target = Target::parse("https://host:81/x/{workspace_id}").expect("valid");
        assert_eq!(target.to_string(), "https://host:81/x/{workspace_id}");
        assert!(Target::parse("https://host").is_ok());
    }

    #[test]
    fn templates_that_could_mislead_are_refused() {
        for text in [
            "",
            "/",
            "a",
            "/a/",
            "//a",
            "/a//b",
            "/.",
            "/a/../b",
            "/a%20b",
            "/a?b",
            "/a#b",
            "/a b",
            "/\u{e4}",
            "/x{id}",
            "/{id}x",
            "/{}",
            "/{a-b}",
            "/{id}/{id}",
            "/{id",
            "/id}",
            "/{{id}}",
            "/a/v1",
            "/v1",
            "/a\\b",
        ] {
            assert!(Template::of_route(text).is_err(), "{text}");
        }
        for text in [
            "/x/{id}",
            "https://{id}/x",
            "https://host/x/",
            "https://host/?a={id}",
            "https://host/x%20/{id}",
            "https://u:p@host/{id}",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
