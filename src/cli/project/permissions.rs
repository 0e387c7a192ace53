//! Descriptions of permissions.

use deftool_lang::spec::Permissions;

/// Returns the permissions as in `read notes/; net api.example.com`.
pub(in crate::cli) fn describe_permissions(permissions: &Permissions) -> String {
    let Permissions { net, read, write, run, env } = permissions;
    let kinds = [("net", net), ("read", read), ("write", write), ("run", run), ("env", env)];
    let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
    kinds.map(|(kind, names)| format!("{kind} {}", names.join(", "))).collect::<Vec<_>>().join("; ")
}
