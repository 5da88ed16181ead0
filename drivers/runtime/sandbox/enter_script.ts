// The program that enters a running unit, from the host: perl, which Debian always has, and which makes system calls by
// their numbers (docs/decisions/0234). All that could be of use to the programs of the tenant is given up before the
// first process is theirs to see: file descriptors, capabilities, the user of the platform, and the calls that the
// filter of the unit refuses. No file of the tenant is opened or executed before that, and perl loads no module. Until
// it becomes the command it cannot be traced: the kernel gives its memory to nobody (PR_SET_DUMPABLE).
//
// Three processes: one stays outside of the process namespace and passes the exit code on; the second is inside, adopts
// what the command leaves behind, and ends it; the third becomes the command. Each dies with the one before.

type Call = 'setns' | 'prctl' | 'openat' | 'close' | 'ioctl' | 'setgroups' | 'setresgid' | 'setresuid' | 'capset';

const NUMBERS: Record<string, Record<Call, number> | undefined> = {
  x64: {
    ...{ setns: 308, prctl: 157, openat: 257, close: 3, ioctl: 16, setgroups: 116, setresgid: 119, setresuid: 117 },
    capset: 126,
  },
  arm64: {
    ...{ setns: 268, prctl: 167, openat: 56, close: 57, ioctl: 29, setgroups: 159, setresgid: 149, setresuid: 147 },
    capset: 91,
  },
};

/** The program, null where the numbers of this machine are not known here. */
export function enterScript(machine: string = process.arch): string | null {
  const numbers = NUMBERS[machine];
  if (!numbers) return null;
  const words = Object.entries(numbers).map(([name, number]) => `${name} => ${number}`);
  return `use strict; my %call = (${words.join(', ')});\n${PROGRAM}`;
}

// Arguments: the name of all processes around a unit; a process of the unit and when it started (proc_pid_stat(5));
// user, group and groups inside, or '' to stay who we are; capabilities, or '' where nothing is taken from units; the
// file with the filter, or ''; whether the unit has a namespace of processes. Standard input, output and error are
// those of the command; 3 has the directory, the number of its words, these, and variables.
const PROGRAM = String.raw`
my (undef, $pid, $start, $uid, $gid, $groups, $capabilities, $filter_file, $isolated) = @ARGV;
$0 = 'platform-unit';
sub fail { print STDERR "$_[0]\n"; exit 125 }
sub call { my $name = shift; my $result = syscall($call{$name}, @_); $result == -1 ? undef : $result }
sub must { my ($name, @words) = @_; my $result = call($name, @words);
  defined $result ? $result : fail("The platform could not enter the instance ($name: $!).") }
sub prctl { call('prctl', @_, (0) x (5 - @_)) }
sub text { my $text = ''; open(my $file, '<', $_[0]) or return ''; binmode $file; local $/; $text = <$file>; $text }
my $gone = 'The instance has ended.';

open(my $given, '<&=', 3) or fail('The platform gave no command.');
my ($directory, $count, @fields) = split /\0/, do { local $/; <$given> };
close $given;
my @command = splice @fields, 0, $count;
my $filter = $filter_file eq '' ? '' : text($filter_file);
fail('The filter of the instance is missing. Restart the application.') if $filter_file ne '' and $filter eq '';
opendir(my $open, '/proc/self/fd') or fail('The platform lacks /proc.');
my @others = grep { /^\d+$/ and $_ > 2 } readdir $open;
closedir $open;
call('close', $_ + 0) for @others;

# All that follows is about this one process, whatever its number stands for by now.
my $path = "/proc/$pid";
my $process = call('openat', -100, $path, 0x80000);
defined $process or fail($gone);
my $began = (fields("self/fd/$process"))[19];
(defined $began and $began eq $start) or fail($gone);
my %flag = (net => 0x40000000, cgroup => 0x02000000, ipc => 0x08000000, uts => 0x04000000, pid => 0x20000000,
  mnt => 0x00020000, user => 0x10000000);
my @joined;
my $user = readlink('/proc/self/ns/user');
sub join_user { my ($fd) = @_; my $name = readlink("/proc/self/fd/$fd");
  push @joined, [$fd, $flag{user}] if $name ne $user; $user = $name }
# Each by somebody who may: a member of the user namespace that owns it. That of files is the innermost.
for my $kind (qw(net cgroup ipc uts pid mnt user)) {
  my $own = readlink("/proc/self/ns/$kind");
  defined $own or next;
  my $file = "ns/$kind";
  my $fd = call('openat', $process, $file, 0x80000);
  defined $fd or fail($gone);
  my $theirs = readlink("/proc/self/fd/$fd");
  if ($kind eq 'user') { join_user($fd); next }
  fail($gone) if $own eq $theirs and $isolated and ($kind eq 'pid' or $kind eq 'mnt');
  next if $own eq $theirs;
  join_user(must('ioctl', $fd, 0xb701, 0));
  push @joined, [$fd, $flag{$kind}];
}
prctl(4, 0);
must('setgroups', 0, 0) if $> == 0;
must('setns', @$_) for @joined;
call('close', $_->[0]) for @joined;
call('close', $_ + 0) for grep { $_ > 2 } 3 .. 64;

my $keeps = $capabilities eq '';
my $mask = hex $capabilities;
if (!$keeps) {
  prctl(47, 4);
  for my $one (0 .. 63) { next if ($mask >> $one) & 1; last unless defined prctl(24, $one) }
}
if ($uid ne '') {
  my @groups = split /,/, $groups;
  my $packed = pack('L*', @groups);
  must('setgroups', scalar(@groups), $packed) if @groups;
  must('setresgid', ($gid + 0) x 3);
  must('setresuid', ($uid + 0) x 3);
}
if (!$keeps) {
  my ($low, $high) = ($mask & 0xffffffff, $mask >> 32);
  my $header = pack('Ll', 0x20080522, 0);
  my $sets = pack('L6', $low, $low, $low, $high, $high, $high);
  must('capset', $header, $sets);
  for my $one (0 .. 63) { prctl(47, 2, $one) if ($mask >> $one) & 1 }
  defined prctl(38, 1) or fail('The kernel has no no_new_privs.');
}
prctl(4, 0);
prctl(1, 9);
if ($filter ne '') {
  my $rules = pack('S x6 P', length($filter) / 8, $filter);
  defined prctl(22, 2, $rules) or fail("The filter of the instance could not be set ($!).");
}
umask 022;
my @signals = qw(INT QUIT HUP TERM TSTP TTIN TTOU);
$SIG{$_} = 'IGNORE' for @signals;

pipe(my $alive, my $held) or fail("The platform could not enter the instance (pipe: $!).");
my $inner = fork;
defined $inner or fail("The instance has no room for another process: $!.");
if ($inner) { close $alive; waitpid($inner, 0); exit code($?) }
close $held;
prctl(1, 9);
my $ready = '';
vec($ready, fileno($alive), 1) = 1;
exit 125 if select($ready, undef, undef, 0);
close $alive;
prctl(36, 1);
my $command = fork;
defined $command or fail("The instance has no room for another process: $!.");
if (!$command) {
  prctl(1, 9);
  $SIG{$_} = 'DEFAULT' for @signals;
  chdir $directory or do { print STDERR "The directory $directory does not exist.\n"; exit 126 };
  %ENV = ();
  for (@fields) { my ($name, $value) = split /=/, $_, 2; $ENV{$name} = $value }
  exec { $command[0] } @command or print STDERR "$command[0] could not be started: $!.\n";
  exit 127;
}
my $status;
while ((my $ended = waitpid(-1, 0)) > 0) { if ($ended == $command) { $status = $?; last } }
for my $round (1 .. 1000) {
  opendir(my $all, '/proc') or last;
  my @left = grep { /^\d+$/ and parent($_) == $$ } readdir $all;
  closedir $all;
  last unless @left;
  kill 'KILL', @left;
  waitpid($_, 0) for @left;
}
exit code($status);
sub fields { my $stat = text("/proc/$_[0]/stat"); split ' ', substr($stat, rindex($stat, ')') + 1) }
sub parent { (fields($_[0]))[1] || 0 }
sub code { my ($status) = @_; $status & 127 ? 128 + ($status & 127) : $status >> 8 }
`;
