//! `:allow`: the permissions of a script.

use super::lowerer::Lowerer;
use crate::spec::Permissions;
use crate::spec::reference;
use crate::spec::rules::{path_start, unknown_permission, useless_grant, wide_permission};
use crate::syntax::{Datum, DatumKind};

const KINDS: [&str; 5] = reference::names(&reference::PERMISSIONS);

impl Lowerer {
    pub(super) fn lower_permissions(&mut self, value: Datum) -> Permissions {
        let mut permissions = Permissions::default();
        let DatumKind::List(items) = value.kind else {
            self.report_wrong_value("allow", &value, "a plist such as `(:read [\"notes/\"])`");
            return permissions;
        };
        for entry in self.read_plist(items, &KINDS) {
            let Some(list) = permissions.list_mut(&entry.key) else {
                let at = self.at(entry.key_span);
                self.findings.push(unknown_permission::finding(at, &entry.key, &KINDS));
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
