//! A real `OpenBao` server for tests, without privileges, on a loopback port.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Run, command, finish, repository, tool};

/// User and group without rights.
const NOBODY: u32 = 65534;

/// A policy that can sign with one key, and nothing more; as in `docs/signing.md`.
pub const SIGN_ONLY: &str = r#"
path "transit/sign/release" {
  capabilities        = ["update"]
  required_parameters = ["input"]
  allowed_parameters  = { "input" = [] }
}
"#;

/// A policy for `--also-vault`; as in `docs/signing.md`.
pub const VERIFY_ONLY: &str = r#"
path "transit/verify/release" {
  capabilities        = ["update"]
  required_parameters = ["input", "signature"]
  allowed_parameters  = { "input" = [], "signature" = [] }
}
path "transit/keys/release" {
  capabilities = ["read"]
}
"#;

/// A server that ends with this value.
pub struct Bao {
    child: Child,
    /// Its files.
    pub home: tempfile::TempDir,
    /// Its address.
    pub address: String,
    /// The root token.
    pub root: String,
    /// What no output may hold.
    secrets: Mutex<Vec<String>>,
}

impl Drop for Bao {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that nobody listens on at this moment.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The server's binary, where a user without rights can reach it.
fn binary(home: &Path) -> PathBuf {
    let script = repository().join("scripts/openbao");
    let output = tool(script.to_str().unwrap(), "bash", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let path = repository().join(path);
    let reachable = path
        .ancestors()
        .skip(1)
        .all(|dir| std::fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0));
    if reachable || !rustix::process::getuid().is_root() {
        return path;
    }
    let copy = home.join("bao");
    std::fs::copy(&path, &copy).unwrap();
    copy
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    home
}

fn start(home: &Path, args: &[&str], variables: &[(&str, &str)]) -> Child {
    let log = std::fs::File::create(home.join("log")).unwrap();
    let mut server = Command::new(binary(home));
    server.args(args).env_clear().env("HOME", home).envs(variables.iter().copied()).current_dir(home);
    server.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    if rustix::process::getuid().is_root() {
        chown(home, Some(NOBODY), Some(NOBODY)).unwrap();
        for entry in std::fs::read_dir(home).unwrap() {
            chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        server.uid(NOBODY).gid(NOBODY);
    }
    server.spawn().unwrap()
}

impl Bao {
    /// A server in development mode with TLS, and a transit key `release`.
    pub fn dev() -> Self {
        let home = home();
        let port = free_port();
        let root = format!("root-{:016x}", u64::from(port) << 32 | u64::from(std::process::id()));
        let listen = format!("127.0.0.1:{port}");
        let certificates = home.path().to_str().unwrap().to_owned();
        let args = [
            "server",
            "-dev",
            "-dev-no-store-token",
            "-dev-tls",
            &format!("-dev-tls-cert-dir={certificates}"),
            &format!("-dev-listen-address={listen}"),
        ];
        let child = start(home.path(), &args, &[("BAO_DEV_ROOT_TOKEN_ID", &root), ("VAULT_DEV_ROOT_TOKEN_ID", &root)]);
        let secrets = Mutex::new(vec![root.clone()]);
        let bao = Bao { child, home, address: format!("https://{listen}"), root, secrets };
        bao.wait(|status| status == 200);
        bao.admin("POST", "sys/mounts/transit", &json!({"type": "transit"}));
        bao.admin("POST", "transit/keys/release", &json!({"type": "ed25519"}));
        bao
    }

    /// A server with raft storage, neither initialised nor unsealed, without TLS. `join` is
    /// the address of the one whose cluster it joins.
    pub fn raft(join: Option<&str>) -> Self {
        let home = home();
        let (port, cluster) = (free_port(), free_port());
        let address = format!("http://127.0.0.1:{port}");
        let join = join.map_or_else(String::new, |leader| format!("retry_join {{ leader_api_addr = \"{leader}\" }}"));
        std::fs::create_dir(home.path().join("raft")).unwrap();
        std::fs::write(
            home.path().join("config.hcl"),
            format!(
                "storage \"raft\" {{\n path = \"{}/raft\"\n node_id = \"n{port}\"\n {join}\n}}\n\
                 listener \"tcp\" {{\n address = \"127.0.0.1:{port}\"\n cluster_address = \"127.0.0.1:{cluster}\"\n tls_disable = true\n}}\n\
                 api_addr = \"{address}\"\ncluster_addr = \"https://127.0.0.1:{cluster}\"\n\
                 disable_standby_reads = true\n",
                home.path().display()
            ),
        )
        .unwrap();
        let config = format!("-config={}/config.hcl", home.path().display());
        let child = start(home.path(), &["server", &config], &[]);
        let bao = Bao { child, home, address, root: String::new(), secrets: Mutex::new(Vec::new()) };
        bao.wait(|status| status != 0);
        bao
    }

    /// Waits until `sys/health` answers with a status that is wanted.
    pub fn wait(&self, wanted: impl Fn(u16) -> bool) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_mins(1) {
            if self.try_admin("", "GET", "sys/health", &Value::Null).is_ok_and(|(status, _)| wanted(status)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!(
            "OpenBao does not answer:\n{}",
            std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
        );
    }

    /// The certificate of its authority.
    pub fn ca(&self) -> PathBuf {
        self.home.path().join("vault-ca.pem")
    }

    /// A request with the root token that must succeed.
    #[track_caller]
    pub fn admin(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_admin(&self.root, method, path, body).unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// A request with any token: status and answer.
    pub fn try_admin(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), reqwest::Error> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let ca =
                std::fs::read(self.ca()).map(|pem| reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default());
            let client = reqwest::Client::builder()
                .tls_certs_only(ca.unwrap_or_default())
                .no_proxy()
                .timeout(Duration::from_secs(20))
                .build()?;
            let url = format!("{}/v1/{path}", self.address);
            let mut request = client.request(method.parse().unwrap(), url);
            if !token.is_empty() {
                request = request.header("X-Vault-Token", token);
            }
            if !body.is_null() {
                request = request.body(body.to_string());
            }
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            Ok((status, serde_json::from_str(&answer.text().await?).unwrap_or(Value::Null)))
        })
    }

    /// Remembers something that no output may hold.
    pub fn secret(&self, text: &str) -> String {
        self.secrets.lock().unwrap().push(text.to_owned());
        text.to_owned()
    }

    /// A token with this policy (its name is `name`).
    pub fn token(&self, name: &str, policy: &str) -> String {
        self.admin("POST", &format!("sys/policies/acl/{name}"), &json!({"policy": policy}));
        let answer = self.admin("POST", "auth/token/create", &json!({"policies": [name], "ttl": "10m"}));
        self.secret(answer["auth"]["client_token"].as_str().unwrap())
    }

    /// Role id and a secret id of a new `AppRole` with this policy.
    pub fn approle(&self, name: &str, policy: &str, uses: u32) -> (String, String) {
        if self.try_admin(&self.root, "GET", "auth/approle/role?list=true", &Value::Null).unwrap().0 == 404
            || !self.admin("GET", "sys/auth", &Value::Null)["data"].as_object().unwrap().contains_key("approle/")
        {
            self.admin("POST", "sys/auth/approle", &json!({"type": "approle"}));
        }
        self.admin("POST", &format!("sys/policies/acl/{name}"), &json!({"policy": policy}));
        let role = json!({"token_policies": [name], "token_ttl": "5m", "secret_id_num_uses": uses});
        self.admin("POST", &format!("auth/approle/role/{name}"), &role);
        let id = self.admin("GET", &format!("auth/approle/role/{name}/role-id"), &Value::Null);
        let secret = self.admin("POST", &format!("auth/approle/role/{name}/secret-id"), &json!({}));
        (id["data"]["role_id"].as_str().unwrap().to_owned(), self.secret(secret["data"]["secret_id"].as_str().unwrap()))
    }

    /// The public half of a version of `release`.
    pub fn public(&self, version: u32) -> String {
        let key = self.admin("GET", "transit/keys/release", &Value::Null);
        key["data"]["keys"][version.to_string()]["public_key"].as_str().unwrap().to_owned()
    }

    /// Stops the process (it keeps its port), or lets it go on.
    pub fn hold(&self, stop: bool) {
        let signal = if stop { rustix::process::Signal::STOP } else { rustix::process::Signal::CONT };
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Runs the executable, with the token in its environment; fails when any output holds a
    /// secret.
    pub fn run(&self, token: &str, args: &[&str]) -> Run {
        let mut command = self.prepared(args);
        if !token.is_empty() {
            command.env("VAULT_TOKEN", token);
        }
        self.finish(command)
    }

    /// The executable with address, authority and key.
    pub fn prepared(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("VAULT_ADDR", &self.address).env("RUST_LOG", "trace");
        if self.ca().exists() {
            command.env("VAULT_CACERT", self.ca());
        }
        command
    }

    /// Runs a command; fails when any output holds a secret.
    pub fn finish(&self, command: Command) -> Run {
        let run = finish(command);
        for secret in self.secrets.lock().unwrap().iter() {
            assert!(!run.all().contains(secret.as_str()), "a secret is in the output:\n{}", run.all());
        }
        run
    }
}
