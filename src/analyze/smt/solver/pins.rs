//! The pinned releases of cvc5's shared libraries: what may be opened, by its digest.
//!
//! The libraries are those of the Python package `cvc5`. The digests were taken from the files
//! that the package index hands out; a new release needs a new table.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The release, and the name of its directory in the cache.
pub const LIBRARY_VERSION: &str = "1.4.2";
/// Largest library that is read, in bytes.
pub(super) const MAX_LIBRARY: u64 = 64 << 20;

/// The system that polctl was built for, as the table names it. The packages for Linux are made
/// for its usual C library and no other.
pub(super) const OS: &str = if cfg!(all(target_os = "linux", target_env = "gnu")) {
    "linux"
} else if cfg!(target_os = "macos") {
    "macos"
} else {
    "this system"
};
/// The machine that polctl was built for.
pub(super) const MACHINE: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else if cfg!(target_arch = "aarch64") {
    "aarch64"
} else {
    "this machine"
};

/// The package for one system.
#[derive(Debug)]
pub(super) struct Wheel {
    os: &'static str,
    machine: &'static str,
    /// The platform tag, for pip.
    pub tag: &'static str,
    /// SHA-256 of the whole file.
    pub digest: &'static str,
    /// The folder of the libraries in the package.
    pub folder: &'static str,
    /// Their names with their SHA-256: the solver, the parser, then what these need.
    pub libraries: [(&'static str, &'static str); 6],
}

impl Wheel {
    /// The package for this system, where there is one.
    pub(super) fn here() -> Option<&'static Wheel> {
        WHEELS.iter().find(|wheel| (wheel.os, wheel.machine) == (OS, MACHINE))
    }

    /// Whether a directory holds exactly the pinned libraries. The name of the first that is not
    /// there or another one, where it does not.
    pub(super) fn check(&self, dir: &Path) -> Result<(), &'static str> {
        match self.libraries.iter().find(|(name, digest)| digest_of(&dir.join(name)).as_deref() != Some(digest)) {
            Some((name, _)) => Err(name),
            None => Ok(()),
        }
    }
}

/// SHA-256 in lower-case digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest_of(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_LIBRARY).read_to_end(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// One package for each system that it is made for.
const WHEELS: [Wheel; 4] = [
    Wheel {
        os: "linux",
        machine: "x86_64",
        tag: "manylinux2014_x86_64",
        digest: "fad09688fd0ee6ef6e8ce81fbf7e2ebaab466bd1b4bd6fefe0dd24ca772d089f",
        folder: "cvc5.libs",
        libraries: [
            ("libcvc5-558d13ae.so.1.4.2", "db4e5445fd31ee3cc3ab155a48ee2de1e09e545efe6634195e56705da75678bf"),
            ("libcvc5parser-2f6edf78.so.1.4.2", "23c0c0f1fa40cab556c8a0df97fe5d78da1f867a14ed69b0639c00c3c2ba4155"),
            ("libgmp-97ca9d68.so.10.5.0", "62acd6e32abcccd09c0ee6527e66916878f238c7c86a7f5d9c82ff8deebdf305"),
            ("libmpfr-10dcfb8d.so.6.2.2", "c9db513f411c378bcb0f96bfd0797457a85f3b5dda916dcc3382fc2f25ba567d"),
            ("libpoly-d9dd40de.so.0.2.1", "a0b7a9f88a1abdf48a29f6d306f51ab5ac1f2a1be986d8c2e64fe7079a9d3ac5"),
            ("libpolyxx-a817ce58.so.0.2.1", "c2e1ca72a58ab743d418f5faca71e09eb19fe500b43ef712d6c1a45de31e33d1"),
        ],
    },
    Wheel {
        os: "linux",
        machine: "aarch64",
        tag: "manylinux2014_aarch64",
        digest: "900375f5cd4771a7276f1e9f2fcd06899fae5a959e5abfba5d7c5b804f9da597",
        folder: "cvc5.libs",
        libraries: [
            ("libcvc5-97c8d730.so.1.4.2", "36062c28741a3f80cf94cbb93edf52fb00d08548e73e8ef81f3ffc2464a3c3d4"),
            ("libcvc5parser-586404d2.so.1.4.2", "ff8b39d73c2c6a06eea4f65fc0de85f4c6ad79f5829c2cb3dfde10a7eb87d05c"),
            ("libgmp-1fa5f074.so.10.5.0", "d0a995e86c4031627a999d3da6e995268ac4c6276a252be7e35b9ca70ed1369c"),
            ("libmpfr-172215c1.so.6.2.2", "541cecec008126af0736b81730f6e1c4bd4a0cc3f600b8fc5c10bcf3665e94b9"),
            ("libpoly-eb10d276.so.0.2.1", "4135126292d93cbba6558a468c2cb4b6c5b9614689c322f474abb23a74e1151a"),
            ("libpolyxx-19bd257c.so.0.2.1", "886d510cd11367a54ab5371b2f8b0345691cf5354d7f7d309302f17ff1467a06"),
        ],
    },
    Wheel {
        os: "macos",
        machine: "aarch64",
        tag: "macosx_11_0_arm64",
        digest: "6dded9cb06c8c87e21cf9a60d5c0590954cfb34178890beb5cce7922c91e2c0a",
        folder: "cvc5/.dylibs",
        libraries: [
            ("libcvc5.1.4.2.dylib", "7352cfa2add71663063174bd97d3fd0093d8bcb79bf5f72cd26c52dd4983f4da"),
            ("libcvc5parser.1.4.2.dylib", "003b2f417b52231b484544436caf574ab8bfc1720ea774b542c1a1c370ad3698"),
            ("libgmp.10.dylib", "13e0de6b2cdfa2eee58947c48a40617b6dbabc7f0f385e63312486cb835409b5"),
            ("libmpfr.6.dylib", "c15f2d20e70c3a6e79ef8ea0ed8277f7a614010fc2252637f9e5e0c729371c51"),
            ("libpoly.0.2.1.dylib", "86dfdb262be83f8fefcaeadacc4dbd22df027eeb4de480a9975323bf1993767c"),
            ("libpolyxx.0.2.1.dylib", "f474c7881f14358dce01e908952814e6aa5b18c43151020b874159d8ef5597bc"),
        ],
    },
    Wheel {
        os: "macos",
        machine: "x86_64",
        tag: "macosx_10_13_x86_64",
        digest: "35d28a657f7c91c17836187645cd660ef4c85f9d5bb25c3d290a587478e12511",
        folder: "cvc5/.dylibs",
        libraries: [
            ("libcvc5.1.4.2.dylib", "17b479042f90a873bf508d16ebe1fe4c81de4bd21f409b0f02df77fd1465c638"),
            ("libcvc5parser.1.4.2.dylib", "3437d5d6199e5cc53d3967fea23456ec0bb531419255573868bbd240f68e200d"),
            ("libgmp.10.dylib", "a97db433735e8f31fd49e4fa4a6f8275c4ac5163c804059e371c5ce9da9eac25"),
            ("libmpfr.6.dylib", "7b4d0cfbb5f55cfab6916fe773e24c43ccd70a570e0bfc538359449c323e2449"),
            ("libpoly.0.2.1.dylib", "9efab066f8ba71bc384ba494c1d2bb76399f4297ab678d15e1fc83c84decaed6"),
            ("libpolyxx.0.2.1.dylib", "8b36a93baa011ab02e8f08a39018fb9b574800b786ed463c785d4f61796d4f60"),
        ],
    },
];
