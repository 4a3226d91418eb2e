//! The policy that the hook decides by: the bundle of a verified set.

use std::io::Read as _;
use std::path::Path;

use crate::cli::args::HookArgs;
use crate::cli::envelope::envelope_name;
use crate::compile::{BUNDLE_NAME, MAX_BUNDLE, sha256_hex};
use crate::decide::Bundle;
use crate::sign::{EnvelopeAt, Request, Rollback, Timestamp, verify};

/// Reads the bundle. With a trust file only from a set that verifies against it.
///
/// # Errors
///
/// One sentence: what is missing, changed, or not verified.
pub(super) fn bundle(args: &HookArgs) -> Result<Bundle, String> {
    let Some(trust) = &args.trust else {
        if !args.unverified {
            return Err(
                "no trust file is given (`--trust FILE`), so nothing says that the policy is the reviewed one".into()
            );
        }
        return unverified(&args.policy);
    };
    let rollback = args.state.clone().map_or(Rollback::FloorOnly, Rollback::State);
    let now =
        Timestamp::from_seconds(jiff::Timestamp::now().as_second()).ok_or("the clock cannot be read as a date")?;
    let verified = verify(&Request {
        dir: &args.policy,
        envelope: EnvelopeAt::Inside(envelope_name(args.envelope.as_deref(), &args.policy)),
        trust,
        rollback,
        expect: None,
        ignored: &[".git".to_owned()],
        online: None,
        now,
    })
    .map_err(|error| format!("the policy is not verified: {error}"))?;
    let policy_id = verified.payload().policy_id.to_string();
    let bytes = verified.into_file(BUNDLE_NAME).ok_or_else(|| {
        format!("the signed policy has no `{BUNDLE_NAME}`; run `polctl compile --bundle` before signing")
    })?;
    let bundle = Bundle::read(bytes).map_err(|error| format!("{error}; compile and sign it again"))?;
    // The signature is over the set; that the bundle is made of it was checked when it was signed.
    if bundle.head().policy_id != policy_id {
        return Err("the bundle is of another policy than the signature says; compile and sign it again".into());
    }
    Ok(bundle)
}

/// A bundle that nobody signed: it must at least be made from the files beside it.
fn unverified(dir: &Path) -> Result<Bundle, String> {
    let bytes = read(&dir.join(BUNDLE_NAME))?;
    let bundle = Bundle::read(bytes).map_err(|error| format!("{error}; run `polctl compile --bundle` again"))?;
    for (name, size, digest) in &bundle.head().sources {
        let source = read(&dir.join(name))?;
        if u64::try_from(source.len()).ok() != Some(*size) || sha256_hex(&source) != *digest {
            return Err(format!(
                "`{name}` is not what the bundle was compiled from; run `polctl compile --bundle` again"
            ));
        }
    }
    Ok(bundle)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let file = std::fs::File::open(path).map_err(|error| format!("`{shown}` cannot be opened: {error}"))?;
    let mut bytes = Vec::new();
    file.take(MAX_BUNDLE + 1).read_to_end(&mut bytes).map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BUNDLE {
        return Err(format!("`{shown}` is larger than {} MiB", MAX_BUNDLE >> 20));
    }
    Ok(bytes)
}
