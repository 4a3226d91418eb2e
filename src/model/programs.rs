//! What polctl knows about well-known programs.
//!
//! Three tables, each a plain list that a reviewer can read: options that may stand before a
//! sub-command, programs whose long options have one dash, and ways in which a program run
//! with elevated rights gives a shell or writes any file. A change here changes what rules
//! mean, so it raises [`super::FACTS_VERSION`].

/// An option that stands before the sub-command.
#[derive(Clone, Copy, Debug)]
pub struct Global {
    /// As written: `-C`, `--context`.
    pub option: &'static str,
    /// Whether the next word is its value (unless `=` is used).
    pub takes_value: bool,
    /// Whether a permitting rule may overlook it: it neither executes nor redirects anything.
    pub harmless: bool,
}

const fn g(option: &'static str, takes_value: bool, harmless: bool) -> Global {
    Global { option, takes_value, harmless }
}

/// Program, or program and first word (`docker compose`), with its global options.
const GLOBALS: &[(&str, &[Global])] = &[
    ("apt", &[g("-y", false, true), g("-q", false, true), g("-o", true, false), g("-c", true, false)]),
    (
        "apt-get",
        &[
            g("-y", false, true),
            g("-q", false, true),
            g("-qq", false, true),
            g("-o", true, false),
            g("-c", true, false),
        ],
    ),
    (
        "aws",
        &[
            g("--profile", true, true),
            g("--region", true, true),
            g("--output", true, true),
            g("--query", true, true),
            g("--color", true, true),
            g("--no-cli-pager", false, true),
            g("--no-paginate", false, true),
            g("--endpoint-url", true, false),
            g("--no-verify-ssl", false, false),
            g("--ca-bundle", true, false),
            g("--debug", false, false),
            g("--no-sign-request", false, true),
        ],
    ),
    (
        "cargo",
        &[
            g("-q", false, true),
            g("--quiet", false, true),
            g("-v", false, true),
            g("--verbose", false, true),
            g("--color", true, true),
            g("--locked", false, true),
            g("--offline", false, true),
            g("--frozen", false, true),
            g("-C", true, false),
            g("--config", true, false),
            g("-Z", true, false),
        ],
    ),
    (
        "docker",
        &[
            g("-D", false, true),
            g("--debug", false, true),
            g("-l", true, true),
            g("--log-level", true, true),
            g("-H", true, false),
            g("--host", true, false),
            g("-c", true, false),
            g("--context", true, false),
            g("--config", true, false),
            g("--tls", false, false),
            g("--tlscacert", true, false),
            g("--tlscert", true, false),
            g("--tlskey", true, false),
            g("--tlsverify", false, false),
        ],
    ),
    (
        "docker compose",
        &[
            g("-p", true, true),
            g("--project-name", true, true),
            g("--profile", true, true),
            g("--ansi", true, true),
            g("--progress", true, true),
            g("-f", true, false),
            g("--file", true, false),
            g("--env-file", true, false),
            g("--project-directory", true, false),
        ],
    ),
    (
        "gcloud",
        &[
            g("--project", true, true),
            g("--format", true, true),
            g("--verbosity", true, true),
            g("-q", false, true),
            g("--quiet", false, true),
            g("--account", true, false),
            g("--configuration", true, false),
            g("--impersonate-service-account", true, false),
        ],
    ),
    ("gh", &[g("-R", true, true), g("--repo", true, true)]),
    (
        "git",
        &[
            g("-C", true, true),
            g("--no-pager", false, true),
            g("-P", false, true),
            g("--no-optional-locks", false, true),
            g("--literal-pathspecs", false, true),
            g("--glob-pathspecs", false, true),
            g("--noglob-pathspecs", false, true),
            g("--icase-pathspecs", false, true),
            g("--no-replace-objects", false, true),
            g("-c", true, false),
            g("--config-env", true, false),
            g("--git-dir", true, false),
            g("--work-tree", true, false),
            g("--exec-path", false, false),
            g("-p", false, false),
            g("--paginate", false, false),
            g("--namespace", true, false),
            g("--bare", false, false),
            g("--attr-source", true, false),
        ],
    ),
    (
        "helm",
        &[
            g("-n", true, true),
            g("--namespace", true, true),
            g("--kube-context", true, true),
            g("--debug", false, true),
            g("--kubeconfig", true, false),
            g("--kube-apiserver", true, false),
            g("--kube-token", true, false),
            g("--kube-as-user", true, false),
        ],
    ),
    (
        "kubectl",
        &[
            g("-n", true, true),
            g("--namespace", true, true),
            g("--context", true, true),
            g("--cluster", true, true),
            g("--request-timeout", true, true),
            g("-v", true, true),
            g("--kubeconfig", true, false),
            g("-s", true, false),
            g("--server", true, false),
            g("--token", true, false),
            g("--as", true, false),
            g("--as-group", true, false),
            g("--user", true, false),
            g("--insecure-skip-tls-verify", false, false),
            g("--cache-dir", true, false),
        ],
    ),
    ("npm", &[g("-s", false, true), g("--silent", false, true), g("--prefix", true, false), g("-C", true, false)]),
    (
        "pnpm",
        &[
            g("-r", false, true),
            g("--filter", true, true),
            g("-F", true, true),
            g("-C", true, false),
            g("--dir", true, false),
        ],
    ),
    (
        "podman",
        &[
            g("--log-level", true, true),
            g("-r", false, false),
            g("--remote", false, false),
            g("--url", true, false),
            g("-c", true, false),
            g("--connection", true, false),
            g("--root", true, false),
        ],
    ),
    (
        "systemctl",
        &[
            g("--no-pager", false, true),
            g("-q", false, true),
            g("--quiet", false, true),
            g("--no-legend", false, true),
            g("--user", false, false),
            g("--system", false, true),
            g("-H", true, false),
            g("--host", true, false),
            g("-M", true, false),
            g("--machine", true, false),
            g("--root", true, false),
        ],
    ),
    ("terraform", &[g("-chdir", true, false)]),
    ("tmux", &[g("-L", true, true), g("-S", true, true), g("-f", true, false)]),
    ("yarn", &[g("--silent", false, true), g("--cwd", true, false)]),
];

/// Programs whose long options have one dash, so that `-delete` is one option and not six.
const SINGLE_DASH_LONG: &[&str] = &[
    "convert",
    "ffmpeg",
    "ffprobe",
    "find",
    "gcc",
    "g++",
    "clang",
    "go",
    "identify",
    "java",
    "javac",
    "ld",
    "magick",
    "openssl",
    "packer",
    "qemu-img",
    "qemu-system-x86_64",
    "scala",
    "terraform",
    "tofu",
    "xrandr",
];

/// A way in which a program gives a shell, runs another program or writes any file.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    /// Base name.
    pub program: &'static str,
    /// First words for which it holds; any when empty.
    pub sub_commands: &'static [&'static str],
    /// Options that it needs; when empty a free argument is enough.
    pub options: &'static [&'static str],
    /// The escape, as one types it.
    pub how: &'static str,
}

const fn e(
    program: &'static str,
    sub_commands: &'static [&'static str],
    options: &'static [&'static str],
    how: &'static str,
) -> Escape {
    Escape { program, sub_commands, options, how }
}

/// Escapes under elevated rights. Sources: the manual pages of each program.
const ESCAPES: &[Escape] = &[
    e("apt", &[], &[], "apt -o APT::Update::Pre-Invoke::=/bin/sh update"),
    e("apt-get", &[], &[], "apt-get -o APT::Update::Pre-Invoke::=/bin/sh update"),
    e("awk", &[], &[], "awk 'BEGIN { system(\"/bin/sh\") }'"),
    e("bash", &[], &[], "bash -c /bin/sh"),
    e("busybox", &[], &[], "busybox sh"),
    e("cat", &[], &[], "cat /etc/shadow"),
    e("chmod", &[], &[], "chmod 4755 /bin/sh"),
    e("chown", &[], &[], "chown agent /etc/sudoers"),
    e("cp", &[], &[], "cp FILE /etc/sudoers.d/x"),
    e("crontab", &[], &[], "crontab FILE"),
    e("curl", &[], &[], "curl -o /etc/sudoers.d/x URL"),
    e("dash", &[], &[], "dash -c /bin/sh"),
    e("dd", &[], &[], "dd of=/etc/sudoers.d/x"),
    e("dhclient", &[], &[], "dhclient -sf SCRIPT"),
    e("dmesg", &[], &["-H", "--human"], "dmesg -H, then !sh in the pager"),
    e(
        "docker",
        &["run", "exec", "cp", "build", "compose", "create"],
        &[],
        "docker run -v /:/host IMAGE chroot /host sh",
    ),
    e("dpkg", &[], &[], "dpkg -i PACKAGE (its scripts run as root)"),
    e("ed", &[], &[], "ed, then !sh"),
    e("emacs", &[], &[], "emacs --eval '(shell)'"),
    e("env", &[], &[], "env /bin/sh"),
    e("find", &[], &[], "find . -exec /bin/sh ';'"),
    e("gawk", &[], &[], "gawk 'BEGIN { system(\"/bin/sh\") }'"),
    e("gdb", &[], &[], "gdb -ex '!sh'"),
    e("git", &[], &[], "git -c core.pager=/bin/sh -p log"),
    e("install", &[], &[], "install -m 4755 FILE /usr/bin/x"),
    e("ionice", &[], &[], "ionice /bin/sh"),
    e("ip", &["netns"], &[], "ip netns exec NS /bin/sh"),
    e("journalctl", &[], &[], "journalctl, then !sh in the pager; journalctl --file reads any file"),
    e("less", &[], &[], "less FILE, then !sh"),
    e("ln", &[], &[], "ln -s FILE /etc/cron.d/x"),
    e("lua", &[], &[], "lua -e 'os.execute(\"/bin/sh\")'"),
    e("make", &[], &[], "make --eval='x:; /bin/sh' x"),
    e("man", &[], &[], "man -P /bin/sh man"),
    e("more", &[], &[], "more FILE, then !sh"),
    e("mount", &[], &[], "mount -o bind FILE /etc/sudoers"),
    e("mv", &[], &[], "mv FILE /etc/sudoers.d/x"),
    e("nano", &[], &[], "nano -s /bin/sh, then ^T"),
    e("nice", &[], &[], "nice /bin/sh"),
    e("nmap", &[], &[], "nmap --script FILE"),
    e("node", &[], &[], "node -e 'require(\"child_process\")…'"),
    e("nohup", &[], &[], "nohup /bin/sh"),
    e("npm", &[], &[], "npm install PACKAGE (its scripts run as root)"),
    e("nsenter", &[], &[], "nsenter -t 1 -a sh"),
    e("openssl", &[], &[], "openssl enc -in FILE -out /etc/sudoers.d/x"),
    e("perl", &[], &[], "perl -e 'exec \"/bin/sh\"'"),
    e("php", &[], &[], "php -r 'system(\"/bin/sh\");'"),
    e("pip", &[], &[], "pip install PACKAGE (its build script runs as root)"),
    e("psql", &[], &[], "psql -c '\\! /bin/sh'"),
    e("python", &[], &[], "python -c 'import os; os.system(\"/bin/sh\")'"),
    e("python3", &[], &[], "python3 -c 'import os; os.system(\"/bin/sh\")'"),
    e("rsync", &[], &[], "rsync -e 'sh -c …'; rsync FILE /etc/sudoers.d/"),
    e("ruby", &[], &[], "ruby -e 'exec \"/bin/sh\"'"),
    e("scp", &[], &[], "scp -S /bin/sh"),
    e("screen", &[], &[], "screen"),
    e("sed", &[], &[], "sed -n '1e exec sh' FILE"),
    e("setcap", &[], &[], "setcap cap_setuid+ep FILE"),
    e("setsid", &[], &[], "setsid /bin/sh"),
    e("sh", &[], &[], "sh -c /bin/sh"),
    e("socat", &[], &[], "socat - EXEC:/bin/sh"),
    e(
        "sort",
        &[],
        &["-o", "--output", "--compress-program", "-T"],
        "sort -o /etc/sudoers.d/x; sort --compress-program=sh",
    ),
    e("ssh", &[], &[], "ssh -o ProxyCommand='sh …' x"),
    e("strace", &[], &[], "strace /bin/sh"),
    e("stdbuf", &[], &[], "stdbuf -o0 /bin/sh"),
    e("su", &[], &[], "su"),
    e(
        "systemctl",
        &["link", "edit", "enable", "reenable", "set-environment", "import-environment", "revert", "set-property"],
        &[],
        "systemctl link /tmp/x.service",
    ),
    e("systemd-run", &[], &[], "systemd-run /bin/sh"),
    e("tar", &[], &[], "tar --checkpoint=1 --checkpoint-action=exec=/bin/sh"),
    e("taskset", &[], &[], "taskset 1 /bin/sh"),
    e("tcpdump", &[], &[], "tcpdump -z /tmp/x -W 1 -G 1 -w FILE"),
    e("tee", &[], &[], "tee /etc/sudoers.d/x"),
    e("time", &[], &[], "time /bin/sh"),
    e("timeout", &[], &[], "timeout 9 /bin/sh"),
    e("tmux", &[], &[], "tmux new /bin/sh"),
    e("unshare", &[], &[], "unshare /bin/sh"),
    e("unzip", &[], &[], "unzip FILE -d /etc"),
    e("useradd", &[], &[], "useradd -o -u 0 x"),
    e("usermod", &[], &[], "usermod -aG sudo agent"),
    e("vi", &[], &[], "vi, then :!sh"),
    e("view", &[], &[], "view, then :!sh"),
    e("vim", &[], &[], "vim -c ':!sh'"),
    e("watch", &[], &[], "watch -x /bin/sh"),
    e("wget", &[], &[], "wget -O /etc/sudoers.d/x URL; wget --use-askpass=SCRIPT"),
    e("xargs", &[], &[], "xargs /bin/sh"),
    e("xxd", &[], &[], "xxd -r FILE /etc/sudoers.d/x"),
    e("zip", &[], &[], "zip x.zip FILE -T -TT 'sh #'"),
    e("zsh", &[], &[], "zsh -c /bin/sh"),
    e("at", &[], &[], "at now, then the command"),
    e("batch", &[], &[], "batch, then the command"),
    e("capsh", &[], &[], "capsh runs other programs or scripts as root"),
    e("chroot", &[], &[], "chroot / sh"),
    e("csh", &[], &[], "csh runs other programs or scripts as root"),
    e("debugfs", &[], &[], "debugfs -w DEVICE, then write"),
    e("dnf", &[], &[], "dnf --setopt=…; package scripts run as root"),
    e("expect", &[], &[], "expect runs other programs or scripts as root"),
    e("fish", &[], &[], "fish runs other programs or scripts as root"),
    e("flock", &[], &[], "flock / sh"),
    e("ftp", &[], &[], "ftp runs other programs or scripts as root"),
    e("gcc", &[], &[], "gcc -wrapper sh,-s ."),
    e("gem", &[], &[], "gem runs other programs or scripts as root"),
    e("go", &[], &[], "go runs other programs or scripts as root"),
    e("gpg", &[], &[], "gpg runs other programs or scripts as root"),
    e("insmod", &[], &[], "insmod /tmp/x.ko"),
    e("java", &[], &[], "java runs other programs or scripts as root"),
    e("jrunscript", &[], &[], "jrunscript runs other programs or scripts as root"),
    e("ksh", &[], &[], "ksh runs other programs or scripts as root"),
    e("logrotate", &[], &[], "logrotate runs other programs or scripts as root"),
    e("ltrace", &[], &[], "ltrace runs other programs or scripts as root"),
    e("mawk", &[], &[], "mawk runs other programs or scripts as root"),
    e("modprobe", &[], &[], "modprobe -C FILE x"),
    e("mysql", &[], &[], "mysql runs other programs or scripts as root"),
    e("nawk", &[], &[], "nawk runs other programs or scripts as root"),
    e("ncat", &[], &[], "ncat runs other programs or scripts as root"),
    e("newgrp", &[], &[], "newgrp runs other programs or scripts as root"),
    e("nodejs", &[], &[], "nodejs runs other programs or scripts as root"),
    e("npx", &[], &[], "npx runs other programs or scripts as root"),
    e("pacman", &[], &[], "pacman runs other programs or scripts as root"),
    e("perf", &[], &[], "perf runs other programs or scripts as root"),
    e("pico", &[], &[], "pico runs other programs or scripts as root"),
    e("pip3", &[], &[], "pip3 runs other programs or scripts as root"),
    e("pipx", &[], &[], "pipx runs other programs or scripts as root"),
    e("pkexec", &[], &[], "pkexec runs other programs or scripts as root"),
    e("podman", &[], &[], "podman runs other programs or scripts as root"),
    e("R", &[], &[], "R runs other programs or scripts as root"),
    e("redis-cli", &[], &[], "redis-cli runs other programs or scripts as root"),
    e("rpm", &[], &[], "rpm -i PACKAGE (its scripts run as root)"),
    e("run-parts", &[], &[], "run-parts runs other programs or scripts as root"),
    e("runuser", &[], &[], "runuser runs other programs or scripts as root"),
    e("rvim", &[], &[], "rvim runs other programs or scripts as root"),
    e("script", &[], &[], "script -c sh"),
    e("sftp", &[], &[], "sftp runs other programs or scripts as root"),
    e("sg", &[], &[], "sg runs other programs or scripts as root"),
    e("snap", &[], &[], "snap install PACKAGE --dangerous"),
    e("sqlite3", &[], &[], "sqlite3 x '.shell sh'"),
    e("start-stop-daemon", &[], &[], "start-stop-daemon runs other programs or scripts as root"),
    e("sysctl", &[], &[], "sysctl kernel.core_pattern='|/tmp/x'"),
    e("tclsh", &[], &[], "tclsh runs other programs or scripts as root"),
    e("tcsh", &[], &[], "tcsh runs other programs or scripts as root"),
    e("truncate", &[], &[], "truncate -s 0 /etc/sudoers"),
    e("tshark", &[], &[], "tshark runs other programs or scripts as root"),
    e("update-alternatives", &[], &[], "update-alternatives --install /usr/bin/x x FILE 1"),
    e("vimdiff", &[], &[], "vimdiff runs other programs or scripts as root"),
    e("visudo", &[], &[], "visudo runs other programs or scripts as root"),
    e("wish", &[], &[], "wish runs other programs or scripts as root"),
    e("yum", &[], &[], "yum --setopt=…; package scripts run as root"),
    e("zypper", &[], &[], "zypper runs other programs or scripts as root"),
];

/// Number of rows of all tables; a test keeps the tables sorted and free of repetition.
pub const ENTRY_COUNT: usize = GLOBALS.len() + SINGLE_DASH_LONG.len() + ESCAPES.len();

/// Whether polctl knows where the sub-command of this program (or `docker compose`) stands.
pub fn has_globals(program: &str) -> bool {
    GLOBALS.iter().any(|(name, _)| *name == program)
}

/// The entry for `word` as an option before the sub-command of `program`; and whether the
/// value is part of the word already.
pub fn global_option(program: &str, word: &str) -> Option<(Global, bool)> {
    let (_, options) = GLOBALS.iter().find(|(name, _)| *name == program)?;
    for option in *options {
        if word == option.option {
            return Some((*option, false));
        }
        if let Some(tail) = word.strip_prefix(option.option) {
            let long = option.option.starts_with("--") || single_dash_long(program);
            if tail.starts_with('=') || (!long && option.takes_value) {
                return Some((*option, true));
            }
        }
    }
    None
}

/// Whether this program's long options have one dash.
pub fn single_dash_long(program: &str) -> bool {
    SINGLE_DASH_LONG.contains(&program)
}

/// Programs that give a shell by themselves, whatever their arguments.
const INTERACTIVE: &[&str] =
    &["ed", "emacs", "less", "man", "more", "nano", "pico", "rvim", "vi", "view", "vim", "vimdiff", "visudo"];

/// Whether a program gives a shell by itself, whatever its arguments.
pub fn is_interactive(program: &str) -> bool {
    INTERACTIVE.contains(&program)
}

/// The escapes of a program under elevated rights; `python3.11` is a `python`.
pub fn escapes(program: &str) -> impl Iterator<Item = &'static Escape> {
    let base = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned();
    let program = program.to_owned();
    ESCAPES.iter().filter(move |e| e.program == program || e.program == base)
}

/// The programs of which polctl knows options before the sub-command, and those options; an
/// option of `docker compose` is one of `docker`.
pub(crate) fn globals_of_programs() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    GLOBALS.iter().map(|(name, options)| (name.split(' ').next().unwrap_or(name), options.iter().map(|o| o.option)))
}

/// The single-dash programs, for the analysis.
pub(crate) const fn single_dash_programs() -> &'static [&'static str] {
    SINGLE_DASH_LONG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_options_are_found_in_each_spelling() {
        assert!(global_option("git", "-C").is_some_and(|(g, glued)| g.takes_value && !glued && g.harmless));
        assert!(global_option("kubectl", "--context=c").is_some_and(|(_, glued)| glued));
        assert!(global_option("kubectl", "-nfoo").is_some_and(|(_, glued)| glued));
        assert!(global_option("git", "--exec-path=/e").is_some_and(|(g, _)| !g.harmless));
        assert!(global_option("git", "--unknown").is_none());
        assert!(global_option("terraform", "-chdir=x").is_some());
    }

    #[test]
    fn no_program_stands_twice() {
        let mut names: Vec<&str> = GLOBALS.iter().map(|(n, _)| *n).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), GLOBALS.len());
    }
}
