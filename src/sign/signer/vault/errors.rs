//! From what the client crate says to a refusal that says what to do.
//!
//! Texts of the server and of the client are dropped: they can hold a request, a URL or a
//! token. Only statuses and kinds are looked at.

use vaultrs::error::ClientError;

use crate::sign::error::VaultError;

/// What was asked of Vault, for messages and for statuses that mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Login,
    Sign,
    Verify,
    ReadKey,
    Capabilities,
    LookUp,
}

impl Asked {
    const fn words(self) -> &'static str {
        match self {
            Asked::Login => "the `AppRole` login",
            Asked::Sign => "signing with the key",
            Asked::Verify => "verifying with the key",
            Asked::ReadKey => "reading the key",
            Asked::Capabilities => "asking for the token's capabilities",
            Asked::LookUp => "looking up the token",
        }
    }
}

/// Where and with which key it was asked.
pub(super) struct Place<'a> {
    pub(super) address: &'a str,
    pub(super) mount: &'a str,
    pub(super) key: &'a str,
    pub(super) seconds: u64,
}

impl Place<'_> {
    pub(super) fn error(&self, asked: Asked, error: &ClientError) -> VaultError {
        match error {
            ClientError::APIError { code, .. } => self.status(asked, *code),
            ClientError::RestClientError { source } => self.rest(asked, source),
            ClientError::ResponseEmptyError | ClientError::ResponseDataEmptyError => answer(asked, "it is empty"),
            _ => answer(asked, "it cannot be read"),
        }
    }

    fn rest(&self, asked: Asked, error: &rustify::errors::ClientError) -> VaultError {
        use rustify::errors::ClientError as Rest;
        match error {
            Rest::ServerResponseError { code, .. } => self.status(asked, *code),
            Rest::RequestError { source, .. } | Rest::ResponseError { source } => {
                match source.downcast_ref::<reqwest::Error>() {
                    Some(error) => self.transport(asked, error),
                    None => answer(asked, "it cannot be read"),
                }
            }
            _ => answer(asked, "it is not the JSON that was expected"),
        }
    }

    fn transport(&self, asked: Asked, error: &reqwest::Error) -> VaultError {
        let address = self.address.to_owned();
        if error.is_timeout() {
            VaultError::Timeout { address, seconds: self.seconds }
        } else if is_tls(error) {
            VaultError::Tls { address }
        } else if error.is_connect() || error.is_request() {
            VaultError::Unreachable { address }
        } else {
            answer(asked, "it was cut off")
        }
    }

    fn status(&self, asked: Asked, status: u16) -> VaultError {
        let address = self.address.to_owned();
        let (key, mount) = (self.key.to_owned(), self.mount.to_owned());
        match (status, asked) {
            (300..=399, _) => VaultError::Redirect { address, status },
            (400 | 403, Asked::Login) => VaultError::Login { status },
            (403, _) => VaultError::Denied { what: asked.words().to_owned() },
            (404, _) => VaultError::KeyMissing { key, mount, status },
            // OpenBao answers 500 when a derived key gets no context.
            (400 | 500, Asked::Sign | Asked::Verify) => VaultError::KeyRefused { key, mount, status },
            (413, _) => VaultError::TooLarge,
            (429, _) => VaultError::Busy { address },
            (472 | 473 | 503, _) => VaultError::Sealed { address },
            _ => VaultError::Status { what: asked.words().to_owned(), status },
        }
    }
}

/// An answer that is not what it should be.
pub(super) fn answer(asked: Asked, why: &'static str) -> VaultError {
    VaultError::Answer { what: asked.words().to_owned(), why }
}

/// Whether TLS refused: somewhere below is an error of `rustls`.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error is wrapped in others of its kind, and names as source what is in those.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}
