// System calls that no program of a tenant must reach, and some that it must, by their numbers on x86-64.

const [EPERM, EINVAL, ESRCH, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT] = [1, 22, 3, 38, 97, 93];

/** Name, number and arguments of a call, and the error that it ends with; 0: it succeeds. */
const calls: [name: string, args: string, errno: number][] = [
  ['io_uring_setup', '425, 1, 0', ENOSYS],
  ['clone3', '435, 0, 0', ENOSYS],
  ['keyctl', '250, 0, -3, 0', EPERM],
  ['add_key', '248, 0, 0, 0, 0, 0', EPERM],
  ['bpf', '321, 0, 0, 0', EPERM],
  ['perf_event_open', '298, 0, 0, -1, -1, 0', EPERM],
  ['userfaultfd', '323, 0', EPERM],
  ['process_vm_readv', '310, $$, 0, 0, 0, 0, 0', EPERM],
  ['ptrace: attach', '101, 16, 1, 0, 0', EPERM],
  ['ptrace: seize', '101, 0x4206, 1, 0, 0', EPERM],
  ['ptrace: continue, of no child', '101, 7, 999999, 0, 0', ESRCH],
  ['unshare: user', '272, 0x10000000', EPERM],
  ['unshare: files', '272, 0x400', 0],
  ['clone: user', '56, 0x10000011, 0, 0, 0, 0', EPERM],
  ['setns', '308, 0, 0', EPERM],
  ['mount', '165, 0, 0, 0, 0, 0', EPERM],
  ['socket: vsock', '41, 40, 1, 0', EAFNOSUPPORT],
  ['socket: kernel crypto', '41, 38, 5, 0', EAFNOSUPPORT],
  ['socket: inet, unknown protocol', '41, 2, 1, 250', EPROTONOSUPPORT],
  ['ioctl: TIOCSTI', '16, 0, 0x5412, 0', EPERM],
  ['a call of x32', '0x40000000 + 39', ENOSYS],
  ['sched_yield', '24', 0],
  ['kill, of no signal', '62, $$, 999', EINVAL],
];

const attempt =
  'sub attempt { my ($name, @args) = @_; $! = 0; my $result = syscall(shift @args, @args); ' +
  'print "$name=", $result < 0 ? $! + 0 : 0, "\\n" }';

/** Prints name and error of each. In Perl, which every Debian has. */
export const HOSTILE_CALLS = [attempt, ...calls.map(([name, args]) => `attempt("${name}", ${args});`)].join(' ');
export const HOSTILE_CALLS_ANSWERED = calls.map(([name, , errno]) => `${name}=${errno}`);
