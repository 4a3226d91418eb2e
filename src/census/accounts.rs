//! The accounts of a host, from its own `passwd` and `group` (passwd(5), group(5)): no name
//! service is asked, since a mounted image has none and a scan must not depend on one.

use std::collections::BTreeMap;

use super::access::Identity;

/// One account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// First group.
    pub gid: u32,
    /// Home directory, absolute.
    pub home: String,
}

/// Accounts and groups of a host.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// In the order of the file.
    pub accounts: Vec<Account>,
    groups: Vec<(String, u32, Vec<String>)>,
    user_names: BTreeMap<u32, String>,
    group_names: BTreeMap<u32, String>,
}

impl Accounts {
    /// Reads both files; lines that are none are left out, as the system does.
    pub fn parse(passwd: &[u8], group: &[u8]) -> Accounts {
        let (passwd, group) = (String::from_utf8_lossy(passwd), String::from_utf8_lossy(group));
        let mut out = Accounts {
            accounts: passwd.lines().filter_map(account).collect(),
            groups: group.lines().filter_map(members).collect(),
            ..Accounts::default()
        };
        for account in &out.accounts {
            out.user_names.entry(account.uid).or_insert_with(|| account.name.clone());
        }
        for (name, gid, _) in &out.groups {
            out.group_names.entry(*gid).or_insert_with(|| name.clone());
        }
        out
    }

    /// The user of this name or number, with all groups.
    pub fn identity(&self, user: &str) -> Option<Identity> {
        let number = user.parse().ok();
        let account = self.accounts.iter().find(|a| a.name == user);
        let account = account.or_else(|| self.accounts.iter().find(|a| Some(a.uid) == number));
        let Some(account) = account else {
            // A number without an account is a user all the same, one in no group.
            return number.map(|uid| Identity { name: uid.to_string(), uid, gids: Vec::new() });
        };
        let member = |names: &[String]| names.contains(&account.name);
        let further = self.groups.iter().filter(|(_, gid, names)| *gid != account.gid && member(names));
        let gids = std::iter::once(account.gid).chain(further.map(|(_, gid, _)| *gid)).collect();
        Some(Identity { name: account.name.clone(), uid: account.uid, gids })
    }

    /// The name of a user, or the number.
    pub fn user(&self, uid: u32) -> String {
        self.user_names.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    /// The name of a group, or the number.
    pub fn group(&self, gid: u32) -> String {
        self.group_names.get(&gid).cloned().unwrap_or_else(|| gid.to_string())
    }
}

fn account(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, _] = fields.as_slice() else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    (home.starts_with('/')).then(|| Account { name: (*name).to_owned(), uid, gid, home: tidy(home) })
}

/// Without slashes at the end or twice.
fn tidy(home: &str) -> String {
    let parts: Vec<&str> = home.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

fn members(line: &str) -> Option<(String, u32, Vec<String>)> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, gid, members] = fields.as_slice() else { return None };
    let members = members.split(',').filter(|m| !m.is_empty()).map(str::to_owned).collect();
    Some(((*name).to_owned(), gid.parse().ok()?, members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_groups() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\n# no line\nagent:x:1001:1001::/home//agent/:/bin/sh\nbad:x:y:1::/:\n";
        let group = "root:x:0:\nagent:x:1001:\ndocker:x:990:other,agent\nops:x:991:agents\n";
        let accounts = Accounts::parse(passwd.as_bytes(), group.as_bytes());
        assert_eq!(accounts.accounts.len(), 2);
        assert_eq!(accounts.accounts[1].home, "/home/agent");
        assert_eq!(accounts.identity("agent").unwrap().gids, [1001, 990]);
        assert_eq!(accounts.identity("1001"), accounts.identity("agent"));
        assert_eq!(accounts.identity("4000").unwrap().gids, [0u32; 0]);
        assert_eq!(accounts.identity("nobody-here"), None);
        assert_eq!(
            (accounts.user(0).as_str(), accounts.group(990).as_str(), accounts.user(7).as_str()),
            ("root", "docker", "7")
        );
    }
}
