// The first process of a container whose program is started by a shell. A shell as first process would take no notice
// of SIGTERM, and as any other process it would end without the program behind it (of Debian's dash even
// `sh -c program` stays). So signals go to the innermost programs, as on a host, and what the program leaves behind is
// reaped (drivers/runtime/units/unit_processes.ts). What it calls beside the shell is in Debian and in busybox.
import { OTHER_WRAPPERS, PACKAGE_MANAGERS, SHELLS } from '../runtime/units/wrappers';

/** Name of the script of a release image, which the kernel gives to its process. */
const LAUNCH_NAME = 'launch';
const WRAPPERS = [...SHELLS, ...PACKAGE_MANAGERS, ...OTHER_WRAPPERS, LAUNCH_NAME];
/** Their script would handle the signals of this process otherwise than others expect. */
const SHELL_WORD = /^(\/\S*\/)?(sh|dash|bash|ash|ksh)$/;

/**
 * Variables that are set before the program starts have a prefix, since it gets those of a tenant with the same name.
 *
 * Shell function `innermost SIGNAL PID`: sends a signal to the innermost programs of a process, to each once. A script
 * that handles SIGTERM gets it first, and what it waits for at the next call: its trap runs only then.
 */
export const INNERMOST: readonly string[] = [
  'init_sent= init_late=',
  'innermost() {',
  '  name= children= handles= shell=',
  '  read -r name _ 2>/dev/null <"/proc/$2/comm"',
  String.raw`  words=$(tr '\0' '\n' 2>/dev/null <"/proc/$2/cmdline" | sed -n 1,2p)`,
  `  first=\${words%%"$init_newline"*} script=\${words#*"$init_newline"}`,
  '  script=${script##*/} script=${script%.js} script=${script%.cjs} script=${script%-cli} first=${first##*/}',
  `  case $first in ${SHELLS.join('|')}) shell=yes ;; esac`,
  `  case $name in ${WRAPPERS.join('|')}) shell=\${shell:-no} ;; esac`,
  `  case $script in ${PACKAGE_MANAGERS.join('|')}) shell=\${shell:-no} ;; esac`,
  '  [ -z "$shell" ] || read -r children 2>/dev/null <"/proc/$2/task/$2/children"',
  '  [ "$1$shell" != TERMyes ] || while read -r key value; do',
  // Bit 15 of the mask, of which a shell may not read all digits as a number.
  '    [ "$key" != SigCgt: ] || handles=$(((0x${value#????????} >> 14) & 1))',
  '  done 2>/dev/null <"/proc/$2/status"',
  '  case "$handles$init_sent" in 1*" $2 "*) ;; 1*) children= ;; esac',
  '  if [ -n "$children" ]; then',
  '    set -- "$1" "$2" "$init_sent"',
  '    for one in $children; do innermost "$1" "$one"; done',
  // A loop would start the next program for ever.
  '    [ -z "$init_late" ] || [ "$3" = "$init_sent" ] || kill -s "$1" "$2" 2>/dev/null',
  '    return',
  '  fi',
  '  case "$init_sent" in *" $2 "*) return ;; esac',
  '  init_sent="$init_sent $2 "',
  '  kill -s "$1" "$2" 2>/dev/null',
  '}',
  `init_newline='`,
  `'`,
];

/**
 * Lines at the end of a script that run `"$@"`, and end as it ends. At a terminal it becomes the program itself:
 * interactive shells are meant by the signals of the terminal.
 */
export const INIT_LINES: readonly string[] = [
  '[ ! -t 0 ] || exec "$@"',
  ...INNERMOST,
  'init_child= init_early= init_signalled= init_code=',
  'pass() {',
  '  init_signalled=yes',
  '  if [ -z "$init_child" ]; then init_early=$1; return; fi',
  '  innermost "$1" "$init_child"',
  '  [ "$1" = TERM ] && [ -z "$init_ending" ] || return',
  '  (follow) >/dev/null 2>&1 & init_ending=yes',
  '}',
  // A script may continue with its next program.
  'follow() {',
  '  turns=',
  '  while kill -0 "$init_child"; do',
  '    sleep 0.5 || sleep 1',
  '    turns=$turns.; [ ${#turns} -lt 4 ] || init_late=yes',
  '    innermost TERM "$init_child"',
  '  done',
  '}',
  ...['HUP', 'INT', 'QUIT', 'TERM'].map((name) => `trap 'pass ${name}' ${name}`),
  // What a shell starts in the background ignores two signals, and has no standard input.
  'init_ending= init_defaults=',
  '! env --default-signal=INT,QUIT true 2>/dev/null || init_defaults="env --default-signal=INT,QUIT"',
  'exec 3<&0',
  '$init_defaults "$@" <&3 3<&- &',
  'init_child=$!',
  'exec 3<&- </dev/null',
  '[ -z "$init_early" ] || pass "$init_early"',
  // A signal ends the wait before the program has ended; 127: an earlier wait has reported the end.
  'while :; do',
  '  init_signalled=',
  '  wait "$init_child"',
  '  last=$?',
  '  [ $last = 127 ] && [ -n "$init_code" ] || init_code=$last',
  '  [ -n "$init_signalled" ] || exit "$init_code"',
  'done',
];

/** The command with a first process before it, where it is a command of a shell. */
export function withInit(command: readonly string[]): string[] {
  const [shell = ''] = command;
  if (!SHELL_WORD.test(shell) || !command.includes('-c')) return [...command];
  return [shell, '-c', INIT_LINES.join('\n'), 'sh', ...command];
}
