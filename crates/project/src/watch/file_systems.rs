//! File systems on which every change of a file in a watched folder causes a notification.
//!
//! On others, changes may be made elsewhere: by other machines (NFS, SMB), by the host of a virtual machine (9p, virtiofs),
//! by a program (FUSE), in a lower layer (overlayfs). A file system that is not listed counts as one of them.

use std::path::Path;

/// The magic numbers of `linux/magic.h`: btrfs, bcachefs, exFAT, ext2 to ext4, F2FS, FAT, ramfs, tmpfs, XFS, ZFS.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 10] = [
    0x9123_683e,
    0xca45_1a4e,
    0x2011_bab0,
    0xef53,
    0xf2f5_2010,
    0x4d44,
    0x8584_58f6,
    0x0102_1994,
    0x5846_5342,
    0x2fc1_2fc1,
];

/// Returns whether every change of a file in `folder` causes a notification.
#[cfg(target_os = "linux")]
pub(super) fn reports_all_changes(folder: &Path) -> bool {
    rustix::fs::statfs(folder)
        .is_ok_and(|found| u32::try_from(found.f_type).is_ok_and(|kind| LOCAL.contains(&kind)))
}

/// Returns false: not tested on other systems.
#[cfg(not(target_os = "linux"))]
pub(super) fn reports_all_changes(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_file_systems_do_not_count() {
        for folder in ["/proc", "/missing"] {
            assert!(!reports_all_changes(Path::new(folder)));
        }
    }
}
