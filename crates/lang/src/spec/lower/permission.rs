//! `:allow`: the permissions of a script.

use super::lowerer::Lowerer;
use crate::spec::Permissions;
use crate::spec::reference::Plist;
use crate::spec::rules::{path_start, useless_grant, wide_permission};
use crate::syntax::Datum;

impl Lowerer {
    pub(super) fn lower_permissions(&mut self, value: Datum) -> Permissions {
        let mut permissions = Permissions::default();
        let items = self.take_plist("allow", value, "(:read [\"notes/\"])").unwrap_or_default();
        for entry in self.read_plist(items, Plist::Permissions) {
            let Some(list) = permissions.list_mut(&entry.key) else {
                self.report_unknown_key(Plist::Permissions, &entry.key, entry.key_span);
                continue;
            };
            let grants = self.take_strings(&entry.key, entry.value).unwrap_or_default();
            for grant in &grants {
                let at = self.at(grant.span);
                let is_path = matches!(entry.key.as_str(), "read" | "write");
                let finding = if is_path { path_start::check(at, grant) } else { None };
                let finding = finding.or_else(|| useless_grant::check(at, &entry.key, grant));
                self.findings.extend(finding.or_else(|| wide_permission::check(at, &entry.key, grant)));
            }
            *list = grants.into_iter().map(|grant| grant.value).collect();
        }
        permissions
    }
}
