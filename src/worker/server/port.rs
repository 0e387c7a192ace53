//! The port that a server is given, and who has it.

use std::net::{Ipv4Addr, TcpListener};

use crate::script::processes::{process, processes};

/// A port that nobody has now. Somebody may have it a moment later.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether nobody listens at `port` of this machine.
pub fn is_port_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Who listens at a port, as far as this user may see: `llama-server (process 12)`.
pub fn port_holder(port: u16) -> Option<String> {
    let holder = listener(port)?;
    let name = std::fs::read_to_string(format!("/proc/{holder}/comm")).unwrap_or_default();
    Some(format!("{} (process {holder})", crate::text::one_line(name.trim().to_owned())))
}

/// Whose the listener at a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The server's, or its children's.
    Ours,
    /// That of a process that was there before the server.
    Another(u32),
    /// It cannot be told: the process is another user's, or was started by the server elsewhere.
    Untold,
}

/// Whose it is, seen from the server that leads `group`.
pub(super) fn whose(port: u16, group: u32) -> Whose {
    let Some(leader) = process(group) else { return Whose::Untold };
    match listener(port).and_then(process) {
        Some(holder) if holder.group == group => Whose::Ours,
        Some(holder) if holder.began < leader.began => Whose::Another(holder.id),
        Some(_) | None => Whose::Untold,
    }
}

/// The process that listens at `port`.
fn listener(port: u16) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| {
            let inodes = table.lines().filter_map(|line| listening(line, port));
            inodes.map(|inode| format!("socket:[{inode}]")).collect::<Vec<_>>()
        })
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let holds = |id: u32| {
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).ok()?;
        let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        links
            .any(|link| link.to_str().is_some_and(|link| sockets.iter().any(|socket| socket == link)))
            .then_some(id)
    };
    processes().find_map(|stat| holds(stat.id))
}

/// The inode of a socket that listens at `port`, from its line of `/proc/net/tcp`.
fn listening(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == "0A";
    if is_it { fields.get(9).copied() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read() {
        let line = "   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0";
        assert_eq!(listening(line, 8080), Some("4242"));
        assert_eq!(listening(line, 8081), None);
        assert_eq!(listening(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(listening("  sl  local_address rem_address   st", 8080), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_listens_is_named() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        assert!(!is_port_free(port));
        let holder = port_holder(port).unwrap();
        assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
        drop(held);
        assert!(is_port_free(port) && port_holder(port).is_none());
    }
}
