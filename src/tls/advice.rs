//! What to do about a handshake with an agent that failed, for the log.
use std::io;

use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};

/// What would help, where that is known.
pub fn advice(error: &io::Error) -> Option<&'static str> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "rustls may add to both")]
    Some(match error {
        Error::InvalidCertificate(bad) => match bad {
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "set backend.server_name to a name that the agent's certificate has, if it is the right agent"
            }
            // The latter where another authority has the same name.
            Bad::UnknownIssuer | Bad::BadSignature => {
                "the agent's certificate is of an authority that is not trusted: put the authority's certificate into \
                 backend.ca_file, if it is the right agent"
            }
            Bad::Expired | Bad::ExpiredContext { .. } => {
                "the agent has to renew its certificate; or is this machine's clock wrong?"
            }
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => "is this machine's clock wrong?",
            _ => "the agent needs another certificate",
        },
        Error::AlertReceived(alert) if of_certificate(*alert) => REFUSED,
        Error::InvalidMessage(_) => {
            "the agent does not speak TLS there: write http:// in backend.url, or the port of its TLS"
        }
        _ => return None,
    })
}

const REFUSED: &str = "the agent wants a certificate from the gateway, or another one: see backend.client_cert_file and \
                       backend.client_key_file";

/// Whether the agent broke off since it does not take the gateway's certificate, or the lack of one. By TLS 1.3 it says
/// so only after we may have sent something; it has not read that.
pub fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref::<Error>());
        if let Some(Error::AlertReceived(alert)) = tls.or_else(|| error.downcast_ref::<Error>())
            && of_certificate(*alert)
        {
            return Some(REFUSED);
        }
        next = error.source();
    }
    None
}

fn of_certificate(alert: Alert) -> bool {
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::HandshakeFailure
    )
}
