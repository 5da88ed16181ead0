// Filters of seccomp(2): which system calls the kernel refuses to a unit. Programs of classic BPF over struct
// seccomp_data (number of the call, architecture, six arguments), as bubblewrap reads them from `--seccomp`. Refused
// are about the same calls as by container engines: those that need privileges, or that reach beyond the unit.
import os from 'node:os';

/** Where bubblewrap finds the filter of a unit. */
export const FILTER_FD = 8;

type Instruction = [code: number, ifTrue: number, ifFalse: number, value: number];

/** Offsets in struct seccomp_data; of an argument the low half. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (position: number): number => 16 + 8 * position;

const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const ifEqual = (value: number, ifTrue: number, ifFalse: number): Instruction => [0x15, ifTrue, ifFalse, value];
const ifAtLeast = (value: number, ifTrue: number, ifFalse: number): Instruction => [0x35, ifTrue, ifFalse, value];
const ifAnyBit = (bits: number, ifTrue: number, ifFalse: number): Instruction => [0x45, ifTrue, ifFalse, bits];
const allow: Instruction = [0x06, 0, 0, 0x7fff0000];
const fail = (errno: number): Instruction => [0x06, 0, 0, 0x00050000 | errno];
const succeed = fail(0);

const { EPERM, ENOSYS, EAFNOSUPPORT } = os.constants.errno;
const CLONE_NEWUSER = 0x10000000;
const X32_CALLS = 0x40000000;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: not AF_VSOCK, which leads to the hypervisor, nor AF_ALG, AF_PACKET, … */
const FAMILIES = [1, 2, 10, 16];
/** ioctl(2): they put input into a terminal. */
const TERMINAL_REQUESTS = [0x5412, 0x541c];
/** PTRACE_ATTACH and PTRACE_SEIZE. PTRACE_TRACEME stays allowed: programs that a debugger starts use it. */
const ATTACHING = [16, 0x4206];

interface Machine {
  /** AUDIT_ARCH of linux/audit.h. */
  architecture: number;
  calls: Record<string, number | undefined>;
}

/** Numbers that all architectures share. */
const shared = {
  ...{ io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427, open_tree: 428, move_mount: 429 },
  ...{ fsopen: 430, fsconfig: 431, fsmount: 432, fspick: 433, clone3: 435, pidfd_getfd: 438, mount_setattr: 442 },
  ...{ quotactl_fd: 443, open_tree_attr: 467 },
};

const machines: Record<string, Machine | undefined> = {
  x64: {
    architecture: 0xc000003e,
    calls: {
      ...shared,
      ...{ chown: 92, fchown: 93, lchown: 94, setuid: 105, setgid: 106, setreuid: 113, setregid: 114 },
      ...{ setresuid: 117, setresgid: 119, setfsuid: 122, setfsgid: 123, fchownat: 260 },
      ...{ ioctl: 16, socket: 41, clone: 56, ptrace: 101, syslog: 103, setgroups: 116, uselib: 134, pivot_root: 155 },
      ...{ acct: 163, mount: 165, umount2: 166, swapon: 167, swapoff: 168, reboot: 169, iopl: 172, ioperm: 173 },
      ...{ init_module: 175, delete_module: 176, quotactl: 179, lookup_dcookie: 212, kexec_load: 246, add_key: 248 },
      ...{ request_key: 249, keyctl: 250, unshare: 272, perf_event_open: 298, open_by_handle_at: 304, setns: 308 },
      ...{ process_vm_readv: 310, process_vm_writev: 311, kcmp: 312, finit_module: 313, kexec_file_load: 320 },
      ...{ bpf: 321, userfaultfd: 323 },
    },
  },
  arm64: {
    architecture: 0xc00000b7,
    calls: {
      ...shared,
      ...{ fchownat: 54, fchown: 55, setregid: 143, setgid: 144, setreuid: 145, setuid: 146, setresuid: 147 },
      ...{ setresgid: 149, setfsuid: 151, setfsgid: 152 },
      ...{ lookup_dcookie: 18, ioctl: 29, umount2: 39, mount: 40, pivot_root: 41, quotactl: 60, acct: 89, unshare: 97 },
      ...{ kexec_load: 104, init_module: 105, delete_module: 106, syslog: 116, ptrace: 117, reboot: 142 },
      ...{ setgroups: 159, socket: 198, add_key: 217, request_key: 218, keyctl: 219, clone: 220, swapon: 224 },
      ...{ swapoff: 225, perf_event_open: 241, open_by_handle_at: 265, setns: 268, process_vm_readv: 270 },
      ...{ process_vm_writev: 271, kcmp: 272, finit_module: 273, bpf: 280, userfaultfd: 282, kexec_file_load: 294 },
    },
  },
};

const refused = [
  ...['acct', 'add_key', 'bpf', 'delete_module', 'finit_module', 'init_module', 'ioperm', 'iopl', 'kcmp'],
  ...['kexec_file_load', 'kexec_load', 'keyctl', 'lookup_dcookie', 'open_by_handle_at', 'perf_event_open'],
  ...['pidfd_getfd', 'process_vm_readv', 'process_vm_writev', 'quotactl', 'quotactl_fd', 'reboot'],
  ...['request_key', 'swapoff', 'swapon', 'syslog', 'uselib', 'userfaultfd'],
];
/** Fail with ENOSYS: programs then fall back to older calls. */
const missing = ['io_uring_setup', 'io_uring_enter', 'io_uring_register'];
const namespaces = [
  ...['fsconfig', 'fsmount', 'fsopen', 'fspick', 'mount', 'mount_setattr', 'move_mount', 'open_tree'],
  ...['open_tree_attr', 'pivot_root', 'setns', 'umount2'],
];

/**
 * The filter of a unit, null where the numbers of this machine are not known here. `nested`: it may make namespaces and
 * mount in them, since it makes a sandbox within its own. `oneUser`: it is of an image, in a user namespace with a
 * single id: calls that change owners are answered as by `ownersFilter`.
 */
export function unitFilter({
  nested = false,
  oneUser = false,
  machine = process.arch,
}: { nested?: boolean; oneUser?: boolean; machine?: string } = {}): Buffer | null {
  const known = machines[machine];
  if (!known) return null;
  const rules = [
    ...refuse(known, refused, EPERM),
    ...refuse(known, missing, ENOSYS),
    ...rule(known, 'socket', [load(argument(0)), ...oneOf(FAMILIES, allow), fail(EAFNOSUPPORT)]),
    ...rule(known, 'ptrace', [load(argument(0)), ...oneOf(ATTACHING, fail(EPERM)), allow]),
    ...rule(known, 'ioctl', [load(argument(1)), ...oneOf(TERMINAL_REQUESTS, fail(EPERM)), allow]),
    ...(oneUser ? ownersRules(known) : []),
  ];
  return assembled(known, nested ? rules : [...rules, ...noNamespaces(known)], fail(ENOSYS));
}

/** Calls that give files or processes to other users and groups. */
const owners = [
  ...['chown', 'fchown', 'lchown', 'fchownat', 'setuid', 'setgid', 'setreuid', 'setregid', 'setgroups'],
  ...['setresuid', 'setresgid', 'setfsuid', 'setfsgid'],
];

/**
 * Answers what would change owners with success, though nothing changes, and lets all else through: for a user
 * namespace with a single user id, in which there are no others.
 */
export function ownersFilter(machine: string = process.arch): Buffer {
  const known = machines[machine];
  if (!known) return bytesOf(allow);
  return assembled(known, ownersRules(known), allow);
}

function ownersRules(machine: Machine): Instruction[] {
  return owners.flatMap((call) => rule(machine, call, [succeed]));
}

// The flags of clone3 are in memory, where a filter cannot see them: a C library that finds it missing calls clone.
function noNamespaces(machine: Machine): Instruction[] {
  const newUser = [load(argument(0)), ifAnyBit(CLONE_NEWUSER, 0, 1), fail(EPERM), allow];
  return [
    ...refuse(machine, namespaces, EPERM),
    ...refuse(machine, ['clone3'], ENOSYS),
    ...rule(machine, 'clone', newUser),
    ...rule(machine, 'unshare', newUser),
  ];
}

function refuse(machine: Machine, calls: readonly string[], errno: number): Instruction[] {
  return calls.flatMap((call) => rule(machine, call, [fail(errno)]));
}

/** `then` ends with an answer: behind it, the number of the call is no longer loaded. */
function rule({ calls }: Machine, call: string, then: Instruction[]): Instruction[] {
  const number = calls[call];
  return number === undefined ? [] : [ifEqual(number, 0, then.length), ...then];
}

function oneOf(values: readonly number[], answer: Instruction): Instruction[] {
  return values.flatMap((value) => [ifEqual(value, 0, 1), answer]);
}

/** `foreign`: for calls by the numbers of another architecture, which mean something else. */
function assembled({ architecture }: Machine, rules: Instruction[], foreign: Instruction): Buffer {
  const x32 = architecture === machines.x64?.architecture ? [ifAtLeast(X32_CALLS, 0, 1), foreign] : [];
  const program = [load(ARCHITECTURE), ifEqual(architecture, 1, 0), foreign, load(NUMBER), ...x32, ...rules, allow];
  return Buffer.concat(program.map(bytesOf));
}

/** struct sock_filter of linux/filter.h; both architectures are little-endian. */
function bytesOf([code, ifTrue, ifFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
