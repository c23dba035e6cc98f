//! How reaching the agent fails, and whether the agent may have begun work by then.

use std::time::Duration;

/// Why there is no answer, or no whole one. The text is for the log, not for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection could be made: name resolution, TCP or TLS failed.
    #[error("the agent is unreachable: {0}")]
    Unreachable(String),
    /// All connections were busy for this long.
    #[error("no connection to the agent came free within {0:?}")]
    Overloaded(Duration),
    /// The deadline passed.
    #[error("the agent did not answer in time")]
    Timeout {
        /// Whether any of the request may have been written.
        sent: bool,
    },
    /// The connection broke, or what came over it was not HTTP.
    #[error("the connection to the agent broke: {cause}")]
    Broken {
        /// Whether any of the request may have been written.
        sent: bool,
        /// What was seen.
        cause: String,
    },
    /// The gateway has no memory left for the answer.
    #[error("no memory is left for the agent's answer; see limits.buffered")]
    NoRoom,
    /// The answer is larger than allowed.
    #[error("the agent's {0} is too large")]
    TooLarge(&'static str),
    /// The answer is in a content coding that is unknown or does not decode.
    #[error("the agent's answer cannot be decoded: {0}")]
    Undecodable(String),
}

impl Error {
    /// Whether the agent may have begun work; false only when it is certain that nothing was sent.
    pub fn may_have_started(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Overloaded(_) => false,
            Self::Timeout { sent } | Self::Broken { sent, .. } => *sent,
            Self::NoRoom | Self::TooLarge(_) | Self::Undecodable(_) => true,
        }
    }

    pub(super) fn broken(cause: impl Into<String>) -> Self {
        Self::Broken {
            sent: true,
            cause: cause.into(),
        }
    }

    /// The request names something that HTTP/2 cannot carry.
    pub(super) fn unsendable(cause: impl std::error::Error) -> Self {
        Self::Broken {
            sent: false,
            cause: chain(&cause),
        }
    }
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        if error.is_parse_too_large() {
            return Self::TooLarge("response head");
        }
        Self::broken(chain(&error))
    }
}

/// What the settings say cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// Not a URL under which an agent can be reached.
    #[error("{url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("TLS with agents: {0}")]
    Tls(String),
}

/// An error with all its causes: hyper's own words seldom name the cause.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
