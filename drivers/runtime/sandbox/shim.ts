// The shim: the outermost process of a unit, outside of the sandbox and of the control group of the unit.
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { memoryEventsFile, procsFiles, type Group } from '../cgroup';
import { OUTPUT_READER } from '../run_directory';
import { cleanEnvironment } from './sandbox';

// $1 run directory, $2 file with oom_kill or '', $3 number of cgroup.procs files, these files, command. It may run as
// root: only builtins and programs of the system, and no variable of a tenant. Foreground, because shells let
// background commands ignore SIGINT; signals to the shim itself wait until the command has ended, its traps are not
// inherited. `handle` gets its name when it is whole: on a full disk an empty one would stay, and no later shim could
// become the unit. A unit with input reads from a FIFO. A process beside it holds the FIFO open for writing, so that
// the end of a writer is not the end of the input; it inherits 9, since a client may write and leave before it runs. It
// ends with a line in `stdin_end`, which is open before a client can open the FIFO: what ends the input before that
// process runs waits there. It is in the group of the unit and names its TMPDIR, so it goes with the unit.
//
// The program writes to FIFOs, which processes beside it copy into the files: of a file, a program that opens
// /dev/stdout anew would truncate what was there. They are outside of its group, are not meant by signals, and end with
// its last process; where the disk is full, they drop what comes, so that the program goes on. The shim keeps the FIFOs
// open meanwhile, so that a program is not ended because its reader was. What holds them open behind the end of the
// program, without a sandbox, delays the record of it by two seconds.
const copyOutput = `trap '' TERM INT HUP QUIT; until cat; do timeout 1 cat >/dev/null; done`;
const shim = `
trap : TERM INT HUP QUIT
dir=$1 oom=$2 count=$3; shift 3
hold='exec 3<&- 6<&- 7<&- 8>"$1/stdin" 9<&-; read -r _ <&1'
start= boot= first=
if [ -r /proc/$$/stat ]; then
  read -r stat < /proc/$$/stat
  read -r boot < /proc/sys/kernel/random/boot_id
  start=$(set -- \${stat##*) }; echo "\${20}")
else
  start=$(LC_ALL=C ps -o lstart= -p $$ | tr -s ' ' _ | sed 's/^_//; s/_$//')
fi
draft=$dir/handle.$$
echo "$$ $start $boot" > "$draft" && ln "$draft" "$dir/handle" || first=no
rm -f "$draft"
[ "$first" != no ] || exit 0
copy() { exec /bin/sh -c "${copyOutput}" ${OUTPUT_READER} 2>/dev/null 3<&- 4>&- 5>&- 6<&- 7>&- 8<&- 9<&-; }
readers=
if [ -p "$dir/stdout" ]; then
  exec 1<>"$dir/stdout" 9<"$dir/stdout"
  copy <&9 >&4 & readers=$!
  exec 0<>"$dir/stderr" 9<"$dir/stderr"
  copy <&9 >&5 & readers="$readers $!"
  exec 9<&-
fi
(
  trap - TERM INT HUP QUIT
  exec </dev/null >/dev/null
  while [ "$count" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; count=$((count - 1)); done
  echo 500 > /proc/self/oom_score_adj
  ulimit -c 0
  if [ -p "$dir/stdin" ]; then
    exec 1<>"$dir/stdin_end" 9<>"$dir/stdin"
    (exec env TMPDIR="$dir/tmp" /bin/sh -c "$hold" platform-unit "$dir" </dev/null 4>&- 5>&- &)
    exec <"$dir/stdin" 9<&-
  fi
  if [ -n "$readers" ]; then exec >"$dir/stdout" 2>"$dir/stderr"; else exec >&4 2>&5; fi
  exec "$@" 4>&- 5>&-
)
code=$? kills=0
[ -p "$dir/stdin_end" ] && echo 1<>"$dir/stdin_end"
if [ -n "$readers" ]; then
  exec </dev/null >/dev/null
  (i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); done; kill -9 $readers) & watch=$!
  wait $readers
  kill -9 $watch
  wait $watch
fi
if [ -n "$oom" ]; then while read -r key value; do [ "$key" = oom_kill ] && kills=$value; done < "$oom"; fi
echo "$code $kills" > "$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"
`;

/**
 * Starts the shim. It puts the command into `group`, and notes whether the kernel killed for memory in `counted`.
 * @param fds from 3 on: script, output, errors, and what the command reads beside them
 */
export function spawnShim({ runDirectory, group, counted, command, fds }: Shim): ChildProcess {
  const groupFiles = group === null ? [] : procsFiles(group);
  const events = counted === null ? '' : memoryEventsFile(counted);
  const words = [runDirectory, events, String(groupFiles.length), ...groupFiles, ...command];
  const child = spawn('/bin/sh', ['-c', shim, 'platform-unit', ...words], {
    cwd: '/',
    env: cleanEnvironment,
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', ...fds],
  });
  child.on('error', () => undefined); // the caller sees that no handle appears
  child.unref();
  return child;
}

interface Shim {
  runDirectory: string;
  group: Group | null;
  counted: Group | null;
  command: readonly string[];
  fds: Exclude<StdioOptions, string>;
}

// An unlinked file, in memory if the host has such a directory: no other process can open it, and if this process is
// killed at any moment, no partial file is left behind.
export function unlinkedFile(runDirectory: string, text: string): number {
  const directory = temporaryDirectory() ?? mkdtempSync(path.join(runDirectory, '.variables-'));
  try {
    const fd = openSync(path.join(directory, 'script'), 'wx+', 0o600);
    rmSync(directory, { recursive: true });
    const bytes = Buffer.from(text);
    // Written at an explicit position, so that the shared file offset stays at the beginning for the reader.
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, at);
    return fd;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function temporaryDirectory(): string | null {
  try {
    return os.platform() === 'linux' ? mkdtempSync('/dev/shm/platform-') : null;
  } catch {
    return null;
  }
}
