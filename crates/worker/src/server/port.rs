//! Free ports, and the process that listens on a port.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use deftool_process::{process, processes};

/// Ports below those that systems assign by themselves, from 32768 on Linux and from 49152 elsewhere.
const PORTS: Range<u16> = 20_000..32_768;

/// Returns a port that is free now. It is not one that the system could assign to another process before the server
/// listens on it, unless all tried ports are taken.
pub(super) fn free_port() -> std::io::Result<u16> {
    if let Some(port) = (0..100).map(|_| fastrand::u16(PORTS)).find(|port| is_port_free(*port)) {
        return Ok(port);
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether no process listens on `port` of the loopback address.
pub fn is_port_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns the process that listens on a port, if visible to this user: `llama-server (process 12)`.
pub fn port_holder(port: u16) -> Option<String> {
    let holder = listener(port)?;
    let name = std::fs::read_to_string(format!("/proc/{holder}/comm")).unwrap_or_default();
    Some(format!("{} (process {holder})", deftool_lang::text::one_line(name.trim().to_owned())))
}

/// The owner of the listener on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortOwner {
    /// The server or one of its children.
    Server,
    /// A process that started before the server.
    Other(u32),
    /// Unknown: a process of another user, or one that the server started in another group.
    Unknown,
}

/// Returns the owner of `port`, relative to the server that leads `group`.
pub(super) fn port_owner(port: u16, group: u32) -> PortOwner {
    let Some(leader) = process(group) else { return PortOwner::Unknown };
    match listener(port).and_then(process) {
        Some(holder) if holder.group == group => PortOwner::Server,
        Some(holder) if holder.began < leader.began => PortOwner::Other(holder.id),
        Some(_) | None => PortOwner::Unknown,
    }
}

/// Returns the id of the process that listens on `port`.
fn listener(port: u16) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| {
            let inodes = table.lines().filter_map(|line| listening_socket(line, port));
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

/// Returns the inode of a socket that listens on `port`, from a line of `/proc/net/tcp`.
fn listening_socket(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == "0A";
    if is_it { fields.get(9).copied() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_net_tcp_are_parsed() {
        let line = "   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0";
        assert_eq!(listening_socket(line, 8080), Some("4242"));
        assert_eq!(listening_socket(line, 8081), None);
        assert_eq!(listening_socket(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(listening_socket("  sl  local_address rem_address   st", 8080), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_listening_process_is_named() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        assert!(!is_port_free(port));
        let holder = port_holder(port).unwrap();
        assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
        drop(held);
        assert!(is_port_free(port) && port_holder(port).is_none());
    }
}
