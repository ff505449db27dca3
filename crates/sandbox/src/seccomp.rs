//! A filter on system calls, as the classic BPF program that the kernel takes (seccomp(2)): what namespaces do not shut.
//!
//! It denies by list. Namespaces and the missing capabilities are the walls; the filter takes away kernel surface that no
//! build tool or agent needs, and the few calls that reach around a namespace: keyrings, virtual-machine sockets, terminal
//! injection, new user namespaces.

use libc::{EAFNOSUPPORT, ENOSYS, EPERM};

/// `AUDIT_ARCH_*` of the machine this is built for (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Calls that fail with EPERM.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const DENIED: &[libc::c_long] = &[
    // Keyrings are not divided by any namespace but that of the user.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Kernel surface with a history.
    libc::SYS_bpf,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Namespaces and mounts: the sandbox stays as it was built.
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    // The machine.
    libc::SYS_acct,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
];

/// Address families that stay open: local, the Internet (there is only loopback) and routing questions about it. Notably not
/// virtual-machine sockets, which lead past the network namespace to the hypervisor.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Offsets in `struct seccomp_data`: the call, the architecture, the low half of each argument (both machines are little-endian).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

/// One instruction: `struct sock_filter`.
type Instruction = (u16, u8, u8, u32);

const fn load(offset: u32) -> Instruction {
    (0x20, 0, 0, offset)
}
const fn if_equal(k: u32, then: u8, otherwise: u8) -> Instruction {
    (0x15, then, otherwise, k)
}
const fn if_at_least(k: u32, then: u8, otherwise: u8) -> Instruction {
    (0x35, then, otherwise, k)
}
const fn if_any_bit(k: u32, then: u8, otherwise: u8) -> Instruction {
    (0x45, then, otherwise, k)
}
const ALLOW: Instruction = (0x06, 0, 0, 0x7fff_0000);
const fn fail(errno: i32) -> Instruction {
    (0x06, 0, 0, 0x0005_0000 | errno.cast_unsigned())
}

/// Returns the program as bytes, or nothing on machines whose call numbers are not known here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn program() -> Option<Vec<u8>> {
    None
}

/// Returns the program as bytes, or nothing on machines whose call numbers are not known here.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn program() -> Option<Vec<u8>> {
    let call = |n: libc::c_long| u32::try_from(n).unwrap_or(u32::MAX);
    let mut code = vec![
        // Calls in another machine's numbering would pass for others; programs built for it do not run.
        load(ARCHITECTURE),
        if_equal(ARCH, 1, 0),
        fail(ENOSYS),
        load(NUMBER),
        // The x32 numbering of x86-64.
        if_at_least(0x4000_0000, 0, 1),
        fail(ENOSYS),
    ];
    for denied in DENIED {
        code.extend([if_equal(call(*denied), 0, 1), fail(EPERM)]);
    }
    // Its flags lie in memory, where a filter cannot look. C libraries fall back to `clone`.
    code.extend([if_equal(call(libc::SYS_clone3), 0, 1), fail(ENOSYS)]);
    for creates in [libc::SYS_clone, libc::SYS_unshare] {
        code.extend([
            if_equal(call(creates), 0, 4),
            load(argument(0)),
            if_any_bit(libc::CLONE_NEWUSER.cast_unsigned(), 0, 1),
            fail(EPERM),
            ALLOW,
        ]);
    }
    code.extend([
        if_equal(call(libc::SYS_ioctl), 0, 5),
        load(argument(1)),
        // Both put characters into a terminal as if the user had typed them.
        if_equal(0x5412, 1, 0),
        if_equal(0x541c, 0, 1),
        fail(EPERM),
        ALLOW,
    ]);
    code.extend([if_equal(call(libc::SYS_socket), 1, 0), ALLOW, load(argument(0))]);
    for family in FAMILIES {
        code.extend([if_equal(family.cast_unsigned(), 0, 1), ALLOW]);
    }
    code.push(fail(EAFNOSUPPORT));
    Some(code.into_iter().flat_map(encode).collect())
}

fn encode((code, then, otherwise, k): Instruction) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (code.to_ne_bytes(), k.to_ne_bytes());
    [a, b, then, otherwise, c, d, e, f]
}
